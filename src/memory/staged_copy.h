// StagedCopy: a copy between a device and unpinned host memory, for Staging; and StagedChunk, one chunk of it on its
// way through a block.
//
// Ownership: the caller of Staging::Post owns the copy, and may use it again once it is done.
// Threads:   plain values. While a copy is posted, the caller's members and the chunks are constant, and the lock of
//            the ring guards the rest of the progress.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/detail/table.h"
#include "src/driver/driver.h"
#include "src/memory/chunks.h"

namespace penstock::memory {

using BlockId = detail::Id<struct StagingBlockTag>;

// How far a posted copy has come.
class CopyProgress {
 public:
  CopyProgress() = default;
  CopyProgress(const driver::CopyOp& op, size_t chunk_bytes);

  const Chunks& chunks() const { return chunks_; }
  // How many of its chunks may be on their way from one device at once.
  int most_under_way() const { return most_under_way_; }

  size_t not_begun() const { return chunks_.count() - begun_; }
  size_t Begin() { return begun_++; }  // returns the index of the chunk
  // Returns whether the copy has ended with these chunks, which were the last.
  bool End(size_t chunks) { return (not_ended_ -= chunks) == 0; }

  // Threads that copy from or to the host's side touch it.
  void Touch() { ++touched_by_; }
  void Release() { --touched_by_; }
  bool touched() const { return touched_by_ > 0; }

  void Withdraw() { withdrawn_ = true; }
  bool withdrawn() const { return withdrawn_; }

 private:
  Chunks chunks_;
  size_t begun_ = 0, not_ended_ = 0;  // chunks
  int most_under_way_ = 0;
  int touched_by_ = 0;  // threads
  bool withdrawn_ = false;
};

struct StagedCopy {
  driver::CopyOp op;  // kHostToDevice or kDeviceToHost, not empty, with `tag.fault`; the host's side is any memory
  int device = 0;  // the driver's index
  void (*done)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;

  CopyProgress progress{};  // kept by Staging

  bool is_upload() const { return op.kind == driver::CopyKind::kHostToDevice; }
  bool failed() const { return op.tag.fault->failed(); }
};

struct StagedChunk {
  StagedCopy* copy = nullptr;
  size_t index = 0;  // among the copy's chunks
  BlockId block;
  bool wanted = true;  // the host copies it; false: what a download brought is no longer needed

  // A copy between its places in the box. Call it only before the chunk has ended.
  driver::CopyOp op() const { return copy->progress.chunks()[index]; }
};

}  // namespace penstock::memory
