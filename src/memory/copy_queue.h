// CopyQueue: the posted copies of one direction that have chunks left to begin, first in, first out.
//
// Threads: single-threaded; ChunkSchedule has one for each direction.
#pragma once

#include <cstddef>
#include <vector>

#include "src/memory/staged_copy.h"

namespace penstock::memory {

// Chunks of a copy that will not be begun. They must be ended, since the copy is done only when all of its chunks are.
struct SkippedChunks {
  StagedCopy* copy = nullptr;  // null: there are none
  size_t count = 0;
};

class CopyQueue {
 public:
  bool empty() const { return copies_.empty(); }
  void Push(StagedCopy& copy) { copies_.push_back(&copy); }
  // Null if the queue is empty.
  const StagedCopy* first() const { return copies_.empty() ? nullptr : copies_.front(); }
  // Begins the next chunk of the first copy, in that block. The queue must not be empty.
  StagedChunk Begin(BlockId block);
  // Removes the first copy if its run has failed.
  SkippedChunks TakeFailed();
  // Removes the copy if it has chunks left to begin.
  SkippedChunks Remove(const StagedCopy& copy);

 private:
  using Copies = std::vector<StagedCopy*>;
  SkippedChunks RemoveAt(Copies::iterator at);

  Copies copies_;
};

}  // namespace penstock::memory
