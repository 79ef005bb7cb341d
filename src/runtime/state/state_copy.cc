// StateCore's copies: how Set, Read and Reset move bytes after the users before them have drained.
#include <algorithm>
#include <cstring>
#include <string>

#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/current_device.h"
#include "src/host/progress.h"
#include "src/memory/staging.h"
#include "src/runtime/core/pointer_attributes.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/state/state_call.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {
namespace {

size_t BytesOf(const driver::CopyOp& chunk) { return chunk.width * chunk.height * chunk.depth; }

}  // namespace

absl::Status StateCore::CutShort(const char* why) {
  return absl::DeadlineExceededError(std::string(why) + " while its contents were being copied");
}

absl::Status StateCore::Copy(Call& call, const StateRequest& request, Deadline deadline) const {
  if (request.box.bytes() == 0) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(memory::Staging* const ring, RingFor(request));
  return ring != nullptr ? CopyByRing(*ring, call, request, deadline) : CopyByBlocks(call, request, deadline);
}

// A lack of pinned memory or threads for a ring is no failure: the two blocks are slower, but sufficient.
absl::StatusOr<memory::Staging*> StateCore::RingFor(const StateRequest& request) const {
  const size_t bytes = request.box.bytes();
  if (bytes <= static_cast<size_t>(runtime_->staging().from_bytes())) return nullptr;
  PENSTOCK_ASSIGN_OR_RETURN(const auto memory, InspectAll(*device_.driver, request.contents(), bytes));
  if (memory.kind != driver::PointerInfo::Kind::kPageable) return nullptr;
  absl::StatusOr<memory::Staging*> ring = runtime_->staging().For(device_);
  if (absl::IsResourceExhausted(ring.status())) return nullptr;
  return ring;
}

// The State's stream and events are not used: every earlier user has drained, and later ones wait for the end.
void StateCore::PostToRing(memory::Staging& ring, Call& call, const StateRequest& request) const {
  memory::StagedCopy& copy = call.staged;
  copy.op = OpOf(request);
  copy.op.tag.fault = &call.fault;
  copy.device = device_.local;
  copy.done = &Call::EndInRing;
  copy.context = &call;
  if (request.writes) call.place().written.store(true, std::memory_order_relaxed);
  call.ring.Begin();
  ring.Post(copy);
}

absl::Status StateCore::CopyByRing(memory::Staging& ring, Call& call, const StateRequest& request,
                                   Deadline deadline) const {
  PostToRing(ring, call, request);
  const bool over = host::WaitForProgress(runtime_->event_count(), device_.driver->notifies_completion(), deadline.at(),
                                          [&] { return call.ring.over(); });
  if (over) return call.fault.failed() ? call.fault.status() : absl::OkStatus();
  ring.Withdraw(call.staged);
  runtime_->CopyLeft();
  if (!call.ring.Leave()) runtime_->LeftCopyEnded();
  return CutShort(kDeadlinePassed);
}

// Copies in chunks, chunk i through pinned block i % 2: while one is being copied, the other is filled or emptied.
absl::Status StateCore::CopyByBlocks(Call& call, const StateRequest& request, Deadline deadline) const {
  const memory::Chunks chunks(OpOf(request), kChunk);
  const auto arrived = [&](size_t c) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(AwaitCopy(c % 2, deadline));
    EmptyBlock(call, request, chunks, c);
    return absl::OkStatus();
  };
  for (size_t c = 0; c < chunks.count(); ++c) {
    if (c >= 2) PENSTOCK_RETURN_IF_ERROR(arrived(c - 2));
    PENSTOCK_RETURN_IF_ERROR(SubmitChunk(call, request, chunks, c));
  }
  for (size_t c = chunks.count() - std::min<size_t>(chunks.count(), 2); c < chunks.count(); ++c) {
    PENSTOCK_RETURN_IF_ERROR(arrived(c));
  }
  return absl::OkStatus();
}

// The caller's memory is dense, so each chunk's is contiguous.
absl::Status StateCore::SubmitChunk(Call& call, const StateRequest& request, const memory::Chunks& chunks,
                                    size_t index) const {
  const driver::CopyOp chunk = chunks[index];
  memory::PinnedBlock& block = call.blocks[index % 2];
  if (index < 2) {
    PENSTOCK_ASSIGN_OR_RETURN(
        block, runtime_->device_set()
                   .pinned(device_.driver_index)
                   .Allocate(std::min(kChunk, request.box.bytes()), runtime_->device_set().NodeOf(device_.info)));
  }
  if (request.writes) {
    std::memcpy(block.data(), chunk.src, BytesOf(chunk));
    call.place().written.store(true, std::memory_order_relaxed);
  }
  const driver::CurrentDevice current(*device_.driver, device_.local);
  PENSTOCK_RETURN_IF_ERROR(device_.driver->Copy(
      stream_, request.writes ? memory::OutOfBlock(chunk, block.data()) : memory::IntoBlock(chunk, block.data())));
  return device_.driver->Record(events_[index % 2], stream_);
}

void StateCore::EmptyBlock(Call& call, const StateRequest& request, const memory::Chunks& chunks, size_t index) {
  if (request.writes) return;
  const driver::CopyOp chunk = chunks[index];
  std::memcpy(chunk.dst, call.blocks[index % 2].data(), BytesOf(chunk));
}

driver::CopyOp StateCore::OpOf(const StateRequest& request) const {
  const StateBox& box = request.box;
  std::byte* const own = static_cast<std::byte*>(memory_) + box.at;
  driver::CopyOp op;
  op.width = box.width, op.height = box.height, op.depth = box.depth;
  op.dst_pitch = op.src_pitch = box.width;
  op.dst_slice = op.src_slice = box.width * box.height;
  if (request.writes) {
    op.kind = driver::CopyKind::kHostToDevice;
    op.dst = own, op.src = request.from;
    op.dst_pitch = box.pitch, op.dst_slice = box.slice;
  } else {
    op.kind = driver::CopyKind::kDeviceToHost;
    op.dst = request.to, op.src = own;
    op.src_pitch = box.pitch, op.src_slice = box.slice;
  }
  return driver::Collapse(op);
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
  return CutShort(kDeadlinePassed);
}

}  // namespace penstock::runtime
