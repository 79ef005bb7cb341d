// FeedingThread: the thread of a staging ring that makes all driver calls. It submits full blocks, keeps copies into
// free ones in flight, and sees which have ended.
//
// Each direction of a device has one stream: copies on several streams would alternate on the link with pauses that
// cost a quarter of it.
//
// Ownership: owns the streams; borrows the exchange and the blocks. Nothing may be under way when it is destroyed.
// Threads:   Run belongs to one thread; everything else happens before it begins or after it has ended.
// Errors:    Make returns those of the driver. An error of a later call goes to the fault of the copy it was made for.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/table.h"
#include "src/driver/current_device.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"
#include "src/memory/chunk_exchange.h"
#include "src/memory/host_copier.h"
#include "src/memory/staging_blocks.h"

namespace penstock::memory {

class FeedingThread {
 public:
  FeedingThread(driver::Driver& driver, host::EventCount& event_count, ChunkExchange& exchange,
                const StagingBlocks& blocks)
      : driver_(driver), event_count_(event_count), exchange_(exchange), blocks_(blocks) {}
  ~FeedingThread();
  FeedingThread(const FeedingThread&) = delete;
  FeedingThread& operator=(const FeedingThread&) = delete;

  // Makes the streams. Call it once, when the blocks have been made.
  absl::Status Make();
  // It copies as this worker, too, when it has nothing to feed.
  void CopyAs(WorkerId worker) { copier_.emplace(exchange_, blocks_, worker); }
  // Feeds until the exchange is stopped.
  void Run();

 private:
  struct Submitted {
    StagedChunk chunk;
    bool recorded = false;  // the block's event, after the copy
  };
  // One direction of one device.
  struct Lane {
    driver::Stream stream;
    std::vector<Submitted> under_way;  // oldest first
  };
  struct Lanes {
    Lane up, down;
  };

  bool Await();
  bool Poll();
  bool FeedOrCopy();
  bool Feed();
  bool SubmitChunks();
  void Submit(const StagedChunk& chunk);
  bool Collect();
  bool Collect(Lane& lane);
  bool IsComplete(Submitted& oldest, driver::Stream stream);
  Lane& LaneOf(const StagedCopy& copy) { return copy.is_upload() ? lanes_[copy.device].up : lanes_[copy.device].down; }

  driver::Driver& driver_;
  host::EventCount& event_count_;
  ChunkExchange& exchange_;
  const StagingBlocks& blocks_;
  std::optional<HostCopier> copier_;
  detail::Table<detail::Id<struct StagingDeviceTag>, Lanes> lanes_;
  std::vector<StagedChunk> to_submit_;
  driver::CurrentDevice* current_ = nullptr;  // valid while it runs
};

}  // namespace penstock::memory
