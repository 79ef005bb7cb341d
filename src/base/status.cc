#include "src/base/status.h"

#include <cstdio>

#include "absl/strings/cord.h"

namespace penstock::base {
namespace {
constexpr char kFaultUrl[] = "penstock.dev/fault";
constexpr char kNodeUrl[] = "penstock.dev/node";

absl::Status WithText(const absl::Status& status, std::string_view text) {
  if (status.ok()) return status;
  absl::Status out(status.code(), Av(text));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}
}  // namespace

absl::Status WithFault(absl::Status status, DeviceFault fault) {
  if (status.ok()) return status;
  char text[48];
  std::snprintf(text, sizeof(text), "cuda=%d fatal=%d", fault.cuda_code, fault.fatal ? 1 : 0);
  status.SetPayload(kFaultUrl, absl::Cord(text));
  return status;
}

std::optional<DeviceFault> FaultOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFaultUrl);
  if (!payload) return std::nullopt;
  DeviceFault fault;
  int fatal = 0;
  if (std::sscanf(std::string(*payload).c_str(), "cuda=%d fatal=%d", &fault.cuda_code, &fatal) != 2)
    return std::nullopt;
  fault.fatal = fatal != 0;
  return fault;
}

bool IsFatal(const absl::Status& status) {
  const std::optional<DeviceFault> fault = FaultOf(status);
  return fault && fault->fatal;
}

absl::Status WithNode(absl::Status status, int32_t node) {
  if (status.ok() || node < 0) return status;
  char text[16];
  std::snprintf(text, sizeof(text), "%d", node);
  status.SetPayload(kNodeUrl, absl::Cord(text));
  return status;
}

int32_t TakeNode(absl::Status& status) {
  const auto payload = status.GetPayload(kNodeUrl);
  if (!payload) return -1;
  status.ErasePayload(kNodeUrl);
  return static_cast<int32_t>(std::stol(std::string(*payload)));
}

absl::Status Prefixed(std::string_view prefix, const absl::Status& status) {
  return WithText(status, std::string(prefix) + ": " + Str(status.message()));
}

absl::Status Suffixed(const absl::Status& status, std::string_view suffix) {
  return WithText(status, Str(status.message()) + std::string(suffix));
}

}  // namespace penstock::base
