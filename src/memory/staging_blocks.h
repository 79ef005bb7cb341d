// StagingBlocks: the pinned blocks of a staging ring, each with an event of every device.
//
// Ownership: owns the events, and holds the pinned memory. No copy may use them when it is destroyed.
// Threads:   immutable after Make. ChunkSchedule decides which thread may use a block's memory.
// Errors:    Make returns those of the pool and the driver.
#pragma once

#include "absl/status/status.h"
#include "penstock/detail/table.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staged_copy.h"

namespace penstock::memory {

class StagingBlocks {
 public:
  explicit StagingBlocks(driver::Driver& driver) : driver_(driver) {}
  ~StagingBlocks();
  StagingBlocks(const StagingBlocks&) = delete;
  StagingBlocks& operator=(const StagingBlocks&) = delete;

  // Call it once. `node` as in PinnedPool::Allocate.
  absl::Status Make(PinnedPool& pool, int count, size_t block_bytes, int node);

  int count() const { return blocks_.count(); }
  void* memory(BlockId block) const { return blocks_[block].memory.data(); }
  driver::Event event(BlockId block, int device) const { return blocks_[block].events[device]; }

 private:
  struct Block {
    PinnedBlock memory;
    detail::Table<detail::Id<struct StagingDeviceTag>, driver::Event> events;
  };

  driver::Driver& driver_;
  detail::Table<BlockId, Block> blocks_;
};

}  // namespace penstock::memory
