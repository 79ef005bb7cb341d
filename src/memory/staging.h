// Staging: copies between devices and unpinned host memory, by several host threads through a ring of pinned blocks.
//
// A copy is cut into chunks (chunks.h). For an upload, a thread fills a block, which is then copied to the device. For
// a download, a few copies into blocks are always in flight, and a thread empties each block when its copy is complete.
// So host and link work concurrently, and several threads keep up with the link where one does not.
//
// One thread feeds the devices and makes all driver calls (FeedingThread). A ring whose threads each submit the blocks
// they have filled moves up to a quarter less (docs/performance.md), apparently because the driver has left their
// caches by then. All others copy (HostCopier); the feeding thread copies only if there are few threads. ChunkSchedule
// decides what each thread does next, and the threads wait for each other in ChunkExchange.
//
// Ownership: owns its threads, blocks, streams and events. All posted copies must be done before it is destroyed.
// Threads:   any thread may Post, which never blocks. A staging thread (or Withdraw) calls `done` with no lock held; it
//            must return soon, since every other copy waits for it. Threads sleep while there is nothing to do.
// Ordering:  the host must know, before it posts a copy, that everything the copy needs has happened. When `done` is
//            called, the copy is complete and visible to the callee, and neither side is touched any more.
// Errors:    the first failure goes to op.tag.fault; after a copy's run has failed, none of its chunks is begun. `done`
//            is called nevertheless, and only when nothing of the copy is in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"
#include "src/memory/chunk_exchange.h"
#include "src/memory/feeding_thread.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staged_copy.h"
#include "src/memory/staging_blocks.h"

namespace penstock::memory {

struct StagingOptions {
  int threads = 2;  // for both directions together; at least 1
  size_t chunk_bytes = size_t{1} << 20;  // lower limit if a copy has several chunks per thread
  size_t block_bytes = size_t{4} << 20;  // chunk size of large copies, at least chunk_bytes
  int node = -1;  // NUMA node of the blocks; -1: the pool's node
  std::function<void(int thread)> begin = [](int) {};  // called first on each thread, with its index from 0
};

// Bytes of the copies that were posted.
struct StagedBytes {
  int64_t up = 0, down = 0;
};

class Staging {
 public:
  // The driver notifies `event_count` if it notifies completions.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(driver::Driver& driver, PinnedPool& pool,
                                                         host::EventCount& event_count, const StagingOptions& options);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void Post(StagedCopy& copy);
  // For a caller that will not wait for a posted copy: begins no further chunk, and returns when the host's side is no
  // longer touched. It waits for threads that copy a chunk on the host, but not for the device. `done` is called when
  // the device has finished the chunks in flight, or here if there are none.
  void Withdraw(StagedCopy& copy) { exchange_.Withdraw(copy); }

  int threads() const { return static_cast<int>(threads_.size()); }
  StagedBytes posted() const {
    return {up_bytes_.load(std::memory_order_relaxed), down_bytes_.load(std::memory_order_relaxed)};
  }

 private:
  Staging(driver::Driver& driver, host::EventCount& event_count, const StagingOptions& options);

  absl::Status Make(PinnedPool& pool);
  absl::Status StartThreads();
  void Run(int thread);
  size_t ChunkBytes(const driver::CopyOp& op) const;

  const StagingOptions options_;
  const bool feeder_copies_;
  const ChunkSchedule::Sizes sizes_;
  ChunkExchange exchange_;
  StagingBlocks blocks_;
  FeedingThread feeding_;
  std::vector<std::thread> threads_;  // the first one feeds
  std::atomic<int64_t> up_bytes_{0}, down_bytes_{0};  // of posted copies
};

}  // namespace penstock::memory
