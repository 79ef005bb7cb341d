// ChunkSchedule: which chunk a thread of the staging ring takes next, and which block the chunk goes through. It is the
// arithmetic of the ring, without its threads, lock and memory.
//
// The block of an upload goes from its worker, which fills it, to the feeding thread, which submits it, and comes back
// when the device has read it; so the block stays in the caches of the worker's core. The block of a download is
// submitted first, and then any worker empties it.
//
// Copies are taken up in posting order, separately for each direction. If a worker could fill a block and empty one, a
// worker that is alone does either in turn. Of several, two of three fill, since filling takes the host about twice as
// long as emptying.
//
// Ownership: borrows each posted copy until all of its chunks have ended.
// Threads:   single-threaded; ChunkExchange guards it. Allocates only when more copies are posted than ever before.
// Errors:    no chunk of a copy is begun after its run has failed. The copy is given up instead, and the caller ends
//            the chunks that are left.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/detail/table.h"
#include "src/memory/copy_queue.h"
#include "src/memory/staged_copy.h"

namespace penstock::memory {

using WorkerId = detail::Id<struct StagingWorkerTag>;  // a thread that copies on the host

class ChunkSchedule {
 public:
  struct Sizes {
    int workers = 1;
    int blocks_per_worker = 1;  // to be filled
    int download_blocks = 1;
    int devices = 1;
    int blocks() const { return workers * blocks_per_worker + download_blocks; }
  };
  explicit ChunkSchedule(const Sizes& sizes);

  void Post(StagedCopy& copy) { (copy.is_upload() ? uploads_ : downloads_).Push(copy); }
  // Begins no further chunk of the copy.
  SkippedChunks Withdraw(StagedCopy& copy);

  // For the workers.
  bool CanFill(WorkerId w) const { return !uploads_.empty() && !free_to_fill_[w].empty(); }
  bool CanEmpty() const { return !arrived_.empty(); }
  bool CanCopy(WorkerId w) const { return CanEmpty() || CanFill(w); }
  struct HostCopy {
    StagedChunk chunk;  // to be copied, unless its copy is null
    SkippedChunks given_up;
  };
  // Only if CanCopy.
  HostCopy BeginCopy(WorkerId w);
  struct EndedCopy {
    bool ended = false;  // all chunks of the copy have ended
    bool untouched = false;  // it was withdrawn, and the host's side is no longer touched
  };
  EndedCopy EndCopy(const StagedChunk& chunk);

  // For the feeding thread.
  bool CanSubmit() const { return !filled_.empty() || CanBeginDownload(); }
  // Moves what is to be submitted to `chunks`, which must be empty: full blocks, and downloads into free ones.
  SkippedChunks TakeChunks(std::vector<StagedChunk>& chunks);
  // The device has copied the chunk. Both return whether all chunks of the copy have ended.
  bool Arrived(const StagedChunk& chunk);
  // The chunk was taken, but will not be copied.
  bool Refused(const StagedChunk& chunk);

  // The worker that fills the block of an upload, and how many such blocks it has.
  WorkerId OwnerOf(BlockId block) const { return block % sizes_.workers; }
  int FreeToFill(WorkerId w) const { return static_cast<int>(free_to_fill_[w].size()); }
  bool HasUploads() const { return !uploads_.empty(); }
  int workers() const { return sizes_.workers; }

 private:
  bool FillsNext(WorkerId w);
  StagedChunk BeginFill(WorkerId w);
  StagedChunk BeginEmpty();
  bool CanBeginDownload() const;

  const Sizes sizes_;
  CopyQueue uploads_, downloads_;
  detail::Table<WorkerId, std::vector<BlockId>> free_to_fill_;
  std::vector<BlockId> free_for_downloads_;
  std::vector<StagedChunk> filled_;  // uploads to submit
  std::vector<StagedChunk> arrived_;  // downloads to empty, oldest first
  int downloads_under_way_ = 0;
  bool filled_last_ = true;  // for a worker that is alone
};

}  // namespace penstock::memory
