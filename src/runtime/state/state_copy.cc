// StateCore's copies: how Set, Read and Reset move bytes after the users before them have drained.
#include <algorithm>
#include <cstring>

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/host/progress.h"
#include "src/memory/staging.h"
#include "src/runtime/core/pointer_attributes.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/state/state_call.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {
namespace {

constexpr char kLate[] = "the deadline passed while its contents were being copied";

}  // namespace

size_t StateCore::ChunkBytes(size_t index) const { return std::min(kChunk, bytes_ - index * kChunk); }

absl::Status StateCore::Copy(Call& call, const std::byte* from, std::byte* to, Deadline deadline) const {
  PENSTOCK_ASSIGN_OR_RETURN(memory::Staging* const ring, RingFor(from != nullptr ? from : to));
  return ring != nullptr ? CopyByRing(*ring, call, from, to, deadline) : CopyByBlocks(call, from, to, deadline);
}

// A lack of pinned memory or threads for a ring is no failure: the two blocks are slower, but sufficient.
absl::StatusOr<memory::Staging*> StateCore::RingFor(const void* contents) const {
  if (bytes_ <= static_cast<size_t>(runtime_->staging().from_bytes())) return nullptr;
  PENSTOCK_ASSIGN_OR_RETURN(const auto memory, InspectAll(*device_.driver, contents, bytes_));
  if (memory.kind != driver::PointerInfo::Kind::kPageable) return nullptr;
  absl::StatusOr<memory::Staging*> ring = runtime_->staging().For(device_);
  if (absl::IsResourceExhausted(ring.status())) return nullptr;
  return ring;
}

// The State's stream and events are not used: every earlier user has drained, and later ones wait for the end.
absl::Status StateCore::CopyByRing(memory::Staging& ring, Call& call, const std::byte* from, std::byte* to,
                                   Deadline deadline) const {
  memory::StagedCopy& copy = call.staged;
  copy.op = OpOf(0, bytes_, from, to);
  copy.op.tag.fault = &call.fault;
  copy.device = device_.local;
  copy.done = &Call::EndInRing;
  copy.context = &call;
  if (from != nullptr) call.place().written.store(true, std::memory_order_relaxed);
  call.ring.Begin();
  ring.Post(copy);
  const bool over = host::WaitForProgress(runtime_->event_count(), device_.driver->notifies_completion(), deadline.at(),
                                          [&] { return call.ring.over(); });
  if (over) return call.fault.failed() ? call.fault.status() : absl::OkStatus();
  ring.Withdraw(copy);
  runtime_->CopyLeft();
  if (!call.ring.Leave()) runtime_->LeftCopyEnded();
  return absl::DeadlineExceededError(kLate);
}

// Copies in chunks, chunk i through pinned block i % 2: while one is being copied, the other is filled or emptied.
absl::Status StateCore::CopyByBlocks(Call& call, const std::byte* from, std::byte* to, Deadline deadline) const {
  const size_t chunks = (bytes_ + kChunk - 1) / kChunk;
  const driver::CopyKind kind = from != nullptr ? driver::CopyKind::kHostToDevice : driver::CopyKind::kDeviceToHost;
  const auto arrived = [&](size_t c) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(AwaitCopy(c % 2, deadline));
    if (to != nullptr) std::memcpy(to + c * kChunk, call.blocks[c % 2].data(), ChunkBytes(c));
    return absl::OkStatus();
  };
  for (size_t c = 0; c < chunks; ++c) {
    if (c >= 2) PENSTOCK_RETURN_IF_ERROR(arrived(c - 2));
    if (c < 2) {
      PENSTOCK_ASSIGN_OR_RETURN(call.blocks[c],
                                runtime_->device_set()
                                    .pinned(device_.driver_index)
                                    .Allocate(ChunkBytes(c), runtime_->device_set().NodeOf(device_.info)));
    }
    if (from != nullptr) std::memcpy(call.blocks[c % 2].data(), from + c * kChunk, ChunkBytes(c));
    if (from != nullptr) call.place().written.store(true, std::memory_order_relaxed);
    PENSTOCK_RETURN_IF_ERROR(SubmitChunk(c, call.blocks[c % 2].data(), kind));
  }
  for (size_t c = chunks - std::min<size_t>(chunks, 2); c < chunks; ++c) PENSTOCK_RETURN_IF_ERROR(arrived(c));
  return absl::OkStatus();
}

driver::CopyOp StateCore::OpOf(size_t at, size_t bytes, const void* from, void* to) const {
  std::byte* const own = static_cast<std::byte*>(memory_) + at;
  driver::CopyOp op;
  op.kind = from != nullptr ? driver::CopyKind::kHostToDevice : driver::CopyKind::kDeviceToHost;
  op.dst = from != nullptr ? own : to;
  op.src = from != nullptr ? from : own;
  op.width = bytes;
  return op;
}

absl::Status StateCore::SubmitChunk(size_t index, void* block, driver::CopyKind kind) const {
  const driver::CopyOp op =
      OpOf(index * kChunk, ChunkBytes(index), kind == driver::CopyKind::kHostToDevice ? block : nullptr, block);
  const driver::CurrentDevice current(*device_.driver, device_.local);
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
    const driver::CurrentDevice current(*device_.driver, device_.local);
    PENSTOCK_RETURN_IF_ERROR(device_.driver->Fill(stream_, op));
    PENSTOCK_RETURN_IF_ERROR(device_.driver->Record(events_[0], stream_));
  }
  return AwaitCopy(0, deadline);
}

absl::Status StateCore::AwaitCopy(size_t event, Deadline deadline) const {
  absl::StatusOr<bool> complete = false;
  host::WaitForProgress(runtime_->event_count(), device_.driver->notifies_completion(), deadline.at(), [&] {
    complete = device_.driver->Query(events_[event]);
    return !complete.ok() || *complete;
  });
  PENSTOCK_RETURN_IF_ERROR(complete.status());
  if (*complete) return absl::OkStatus();
  return absl::DeadlineExceededError(kLate);
}

}  // namespace penstock::runtime
