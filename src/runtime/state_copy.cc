// StateCore's copies: how Set, Read and Reset move bytes once it is their turn.
#include <algorithm>
#include <cstring>

#include "penstock/status_macros.h"
#include "src/host/progress.h"
#include "src/runtime/runtime_core.h"
#include "src/runtime/state_call.h"
#include "src/runtime/state_core.h"

namespace penstock::runtime {
namespace {

class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceRef& device) : device_(device), token_(device.driver->MakeCurrent(device.local)) {}
  ~CurrentDevice() { device_.driver->RestoreCurrent(token_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const DeviceRef& device_;
  const int token_;
};

}  // namespace

size_t StateCore::ChunkBytes(size_t index) const { return std::min(kChunk, bytes_ - index * kChunk); }

// Copies between the State and host memory by chunks, each through the pinned block of its number modulo 2: while one
// is on its way, the other is filled or emptied.
absl::Status StateCore::Copy(Call& call, const std::byte* from, std::byte* to, Deadline deadline) const {
  const size_t chunks = (bytes_ + kChunk - 1) / kChunk;
  const auto arrived = [&](size_t c) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(AwaitCopy(c % 2, deadline));
    if (to != nullptr) std::memcpy(to + c * kChunk, call.blocks[c % 2].data(), ChunkBytes(c));
    return absl::OkStatus();
  };
  for (size_t c = 0; c < chunks; ++c) {
    if (c >= 2) PENSTOCK_RETURN_IF_ERROR(arrived(c - 2));
    if (c < 2) {
      PENSTOCK_ASSIGN_OR_RETURN(
          call.blocks[c],
          runtime_->pinned(device_.driver_index).Allocate(ChunkBytes(c), runtime_->NodeOf(device_.info)));
    }
    if (from != nullptr) std::memcpy(call.blocks[c % 2].data(), from + c * kChunk, ChunkBytes(c));
    if (from != nullptr) call.place().written.store(true, std::memory_order_relaxed);
    PENSTOCK_RETURN_IF_ERROR(SubmitChunk(c, call.blocks[c % 2].data(), from != nullptr));
  }
  for (size_t c = chunks - std::min<size_t>(chunks, 2); c < chunks; ++c) PENSTOCK_RETURN_IF_ERROR(arrived(c));
  return absl::OkStatus();
}

absl::Status StateCore::SubmitChunk(size_t index, void* block, bool in) const {
  auto* own = static_cast<std::byte*>(memory_) + index * kChunk;
  driver::CopyOp op;
  op.kind = in ? driver::CopyKind::kHostToDevice : driver::CopyKind::kDeviceToHost;
  op.dst = in ? own : block;
  op.src = in ? block : own;
  op.width = ChunkBytes(index);
  const CurrentDevice current(device_);
  PENSTOCK_RETURN_IF_ERROR(device_.driver->Copy(stream_, op));
  return device_.driver->Record(events_[index % 2], stream_);
}

absl::Status StateCore::Zero(Call& call, Deadline deadline) const {
  if (bytes_ == 0) return absl::OkStatus();
  call.place().written.store(true, std::memory_order_relaxed);
  driver::FillOp op;
  op.dst = memory_;
  op.count = bytes_;
  {
    const CurrentDevice current(device_);
    PENSTOCK_RETURN_IF_ERROR(device_.driver->Fill(stream_, op));
    PENSTOCK_RETURN_IF_ERROR(device_.driver->Record(events_[0], stream_));
  }
  return AwaitCopy(0, deadline);
}

absl::Status StateCore::AwaitCopy(size_t event, Deadline deadline) const {
  absl::StatusOr<bool> complete = false;
  host::WaitForProgress(runtime_->bell(), device_.driver->rings(), deadline.at(), [&] {
    complete = device_.driver->Query(events_[event]);
    return !complete.ok() || *complete;
  });
  PENSTOCK_RETURN_IF_ERROR(complete.status());
  if (*complete) return absl::OkStatus();
  return absl::DeadlineExceededError("the deadline passed while its contents were being copied");
}

}  // namespace penstock::runtime
