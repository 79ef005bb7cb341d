#include "src/memory/copy_queue.h"

#include <algorithm>

namespace penstock::memory {

StagedChunk CopyQueue::Begin(BlockId block) {
  StagedCopy* const copy = copies_.front();
  const StagedChunk chunk{.copy = copy, .index = copy->progress.Begin(), .block = block};
  if (copy->progress.not_begun() == 0) copies_.erase(copies_.begin());
  return chunk;
}

SkippedChunks CopyQueue::TakeFailed() {
  return !copies_.empty() && copies_.front()->failed() ? RemoveAt(copies_.begin()) : SkippedChunks();
}

SkippedChunks CopyQueue::Remove(const StagedCopy& copy) {
  const auto at = std::find(copies_.begin(), copies_.end(), &copy);
  return at != copies_.end() ? RemoveAt(at) : SkippedChunks();
}

SkippedChunks CopyQueue::RemoveAt(Copies::iterator at) {
  const SkippedChunks skipped{.copy = *at, .count = (*at)->progress.not_begun()};
  copies_.erase(at);
  return skipped;
}

}  // namespace penstock::memory
