#include "src/memory/chunk_schedule.h"

namespace penstock::memory {

ChunkSchedule::ChunkSchedule(const Sizes& sizes) : sizes_(sizes), free_to_fill_(sizes.workers) {
  const BlockId first_for_downloads = sizes.workers * sizes.blocks_per_worker;
  for (BlockId b = 0; b < first_for_downloads; ++b) free_to_fill_[OwnerOf(b)].push_back(b);
  for (BlockId b = first_for_downloads; b < sizes.blocks(); ++b) free_for_downloads_.push_back(b);
  filled_.reserve(sizes.blocks());
  arrived_.reserve(sizes.blocks());
}

SkippedChunks ChunkSchedule::Withdraw(StagedCopy& copy) {
  copy.progress.Withdraw();
  return (copy.is_upload() ? uploads_ : downloads_).Remove(copy);
}

ChunkSchedule::HostCopy ChunkSchedule::BeginCopy(WorkerId w) {
  if (!FillsNext(w)) return {.chunk = BeginEmpty(), .given_up = {}};
  const SkippedChunks given_up = uploads_.TakeFailed();
  return {.chunk = given_up.copy == nullptr ? BeginFill(w) : StagedChunk(), .given_up = given_up};
}

bool ChunkSchedule::FillsNext(WorkerId w) {
  if (!CanFill(w)) return false;
  if (!CanEmpty()) return true;
  if (sizes_.workers == 1) return filled_last_ = !filled_last_;
  return w % 3 != 1;
}

StagedChunk ChunkSchedule::BeginFill(WorkerId w) {
  const BlockId block = free_to_fill_[w].back();  // the block filled last is still in the caches
  free_to_fill_[w].pop_back();
  const StagedChunk chunk = uploads_.Begin(block);
  chunk.copy->progress.Touch();
  return chunk;
}

StagedChunk ChunkSchedule::BeginEmpty() {
  StagedChunk chunk = arrived_.front();
  arrived_.erase(arrived_.begin());
  chunk.wanted = !chunk.copy->progress.withdrawn() && !chunk.copy->failed();
  if (chunk.wanted) chunk.copy->progress.Touch();
  return chunk;
}

ChunkSchedule::EndedCopy ChunkSchedule::EndCopy(const StagedChunk& chunk) {
  CopyProgress& progress = chunk.copy->progress;
  EndedCopy ended;
  if (chunk.wanted) {
    progress.Release();
    ended.untouched = progress.withdrawn() && !progress.touched();
  }
  if (chunk.copy->is_upload()) {
    filled_.push_back(chunk);
  } else {
    free_for_downloads_.push_back(chunk.block);
    ended.ended = progress.End(1);
  }
  return ended;
}

// A copy that has failed needs no block, only to be given up.
bool ChunkSchedule::CanBeginDownload() const {
  const StagedCopy* const first = downloads_.first();
  if (first == nullptr) return false;
  if (first->failed()) return true;
  return !free_for_downloads_.empty() && downloads_under_way_ < first->progress.most_under_way() * sizes_.devices;
}

SkippedChunks ChunkSchedule::TakeChunks(std::vector<StagedChunk>& chunks) {
  chunks.swap(filled_);
  const SkippedChunks given_up = downloads_.TakeFailed();
  while (given_up.copy == nullptr && CanBeginDownload() && !downloads_.first()->failed()) {
    chunks.push_back(downloads_.Begin(free_for_downloads_.back()));
    free_for_downloads_.pop_back();
    ++downloads_under_way_;
  }
  return given_up;
}

bool ChunkSchedule::Arrived(const StagedChunk& chunk) {
  if (chunk.copy->is_upload()) return Refused(chunk);
  --downloads_under_way_;
  arrived_.push_back(chunk);
  return false;
}

bool ChunkSchedule::Refused(const StagedChunk& chunk) {
  if (chunk.copy->is_upload()) {
    free_to_fill_[OwnerOf(chunk.block)].push_back(chunk.block);
  } else {
    --downloads_under_way_;
    free_for_downloads_.push_back(chunk.block);
  }
  return chunk.copy->progress.End(1);
}

}  // namespace penstock::memory
