#include "src/driver/host/host_capture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/node_op.h"

namespace penstock::driver::host {

absl::Status HostCaptures::Begin(Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  PENSTOCK_ASSIGN_OR_RETURN(const int priority, scheduler_.PriorityOf(stream));
  base::MutexLock lock(mu_);
  const auto [at, begun] = captures_.try_emplace(
      stream.bits, Capture{.nodes = GraphNodes(device, GraphNodes::Kind::kCaptured), .priority = priority});
  if (!begun) {
    const absl::Status refused = absl::FailedPreconditionError("the stream captures already; end that first");
    if (at->second.broken.ok()) {
      at->second.broken = absl::FailedPreconditionError(absl::StrCat(
          "a call was refused while the stream captured, and the graph lacks it: BeginCapture; ", refused.message()));
    }
    return refused;
  }
  open_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<GraphNodes> HostCaptures::End(Stream stream) {
  base::MutexLock lock(mu_);
  const auto taken = captures_.extract(stream.bits);
  if (taken.empty()) return absl::FailedPreconditionError("the stream does not capture; begin that first");
  open_.fetch_sub(1, std::memory_order_relaxed);
  PENSTOCK_RETURN_IF_ERROR(taken.mapped().broken);
  return std::move(taken.mapped().nodes);
}

void HostCaptures::Drop(Stream stream) {
  base::MutexLock lock(mu_);
  if (captures_.erase(stream.bits) != 0) open_.fetch_sub(1, std::memory_order_relaxed);
}

bool HostCaptures::IsCapturing(Stream stream) {
  if (open_.load(std::memory_order_relaxed) == 0) return false;
  base::MutexLock lock(mu_);
  return captures_.count(stream.bits) != 0;
}

absl::Status HostCaptures::Keep(Stream stream, const NodeOp& op) {
  if (IsPeerCopy(op)) return Refuse(stream, "a copy between devices");
  base::MutexLock lock(mu_);
  const auto at = captures_.find(stream.bits);
  if (at == captures_.end()) return absl::FailedPreconditionError("the stream's capture ended meanwhile");
  at->second.nodes.Append(op, at->second.priority);
  return absl::OkStatus();
}

absl::Status HostCaptures::Refuse(Stream stream, const char* call) {
  if (!IsCapturing(stream)) return absl::OkStatus();
  absl::Status refused = absl::FailedPreconditionError(
      absl::StrCat("a capture takes copies on one device, fills and kernels, and it was broken by ", call));
  base::MutexLock lock(mu_);
  const auto at = captures_.find(stream.bits);
  if (at != captures_.end() && at->second.broken.ok()) at->second.broken = refused;
  return refused;
}

}  // namespace penstock::driver::host
