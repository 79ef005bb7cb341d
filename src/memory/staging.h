// Staging: copies between devices and unpinned host memory, by several host threads through a ring of pinned blocks.
//
// A copy is cut into chunks (chunks.h). For an upload, a thread fills a block, which is then copied to the device. For
// a download, a few copies into blocks are always in flight, and a thread empties each block when its copy is complete.
// So host and link work concurrently, and several threads keep up with the link where one does not. Each direction of a
// device has one stream: copies on several streams would alternate on the link with pauses that cost a quarter of it.
//
// One thread feeds the devices and makes all driver calls. A ring whose threads each submit the blocks they have filled
// moves up to a quarter less (docs/performance.md), apparently because the driver has left their caches by then. The
// feeding thread itself copies only if there are few threads.
//
// Copies are taken up in posting order, separately for each direction. Filling a block takes the host about twice as
// long as emptying one, which bypasses the caches; so two of three threads look for blocks to fill first, the others
// for blocks to empty. A thread fills its own blocks, which stay in its core's caches.
//
// Ownership: owns its threads, blocks, streams and events. All posted copies must be done before it is destroyed.
// Threads:   any thread may Post, which never blocks. A staging thread (or Withdraw) calls `done` with no lock held; it
//            must return soon, since every other copy waits for it. Threads sleep while there is nothing to do.
// Ordering:  the host must know, before it posts a copy, that everything the copy needs has happened. When `done` is
//            called, the copy is complete and visible to the callee, and neither side is touched any more.
// Errors:    the first failure goes to op.tag.fault; after a copy's run has failed, none of its chunks is begun. `done`
//            is called nevertheless, and only when nothing of the copy is in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/current_device.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"
#include "src/memory/chunks.h"
#include "src/memory/pinned_pool.h"

namespace penstock::memory {

struct StagingOptions {
  int threads = 2;  // for both directions together; at least 1
  size_t chunk_bytes = size_t{1} << 20;  // lower limit if a copy has several chunks per thread
  size_t block_bytes = size_t{4} << 20;  // chunk size of large copies, at least chunk_bytes
  int node = -1;  // NUMA node of the blocks; -1: the pool's node
  std::function<void(int thread)> begin = [](int) {};  // called first on each thread, with its index from 0
};

// One copy. The caller of Post owns it, and may use it again once it is done.
struct StagedCopy {
  driver::CopyOp op;  // kHostToDevice or kDeviceToHost, not empty, with `tag.fault`; the host's side is any memory
  int device = 0;  // the driver's index
  void (*done)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;

 private:
  friend class Staging;
  Chunks chunks;  // constant while posted
  size_t next = 0;  // next chunk; this and `left` are guarded by Staging::mu_
  size_t left = 0;  // chunks that have not ended
  size_t most_under_way = 0;
  // Also guarded by Staging::mu_.
  size_t touched_by = 0;  // threads that are copying from or to the host's side
  bool withdrawn = false;
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
  void Withdraw(StagedCopy& copy);

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  enum Direction : uint8_t { kUp, kDown };
  // First in, first out: copies with chunks left to begin.
  using Queue = std::vector<StagedCopy*>;
  struct Block {
    PinnedBlock memory;
    std::vector<driver::Event> events;  // one per device
    size_t owner = 0;  // the thread that fills it; unused for blocks that are emptied
    // Used by the thread that has the block.
    StagedCopy* copy = nullptr;
    driver::CopyOp chunk;
    bool wanted = false;  // for downloads: the bytes are still needed
    bool recorded = false;
  };
  // A copying thread.
  struct Worker {
    std::vector<size_t> free;  // blocks to fill
    bool asleep = false;
  };
  struct Signal {
    base::CondVar wake;
    std::atomic<size_t> free{0};  // Worker::free.size(), readable without the lock
  };
  // One direction of one device; used by the feeding thread.
  struct Lane {
    driver::Stream stream;
    std::vector<size_t> under_way;  // blocks, oldest first
  };
  using Lanes = std::array<Lane, 2>;

  Staging(driver::Driver& driver, host::EventCount& event_count, const StagingOptions& options);

  static Direction DirectionOf(const StagedCopy& copy);
  absl::Status MakeResources(PinnedPool& pool);
  absl::Status MakeBlock(PinnedPool& pool);
  absl::Status StartThreads();
  size_t ChunkBytes(const driver::CopyOp& op) const;
  StagedCopy* TakeFailed(Direction direction, size_t* skipped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool EndOne(StagedCopy& copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndSkipped(StagedCopy& copy, size_t count);
  void End(StagedCopy& copy);
  void NoteChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wake(size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NotifySubmissionThread();

  // On copying threads; `w` is an index of workers_.
  void Copy(size_t w);
  bool AwaitCopy(size_t w);
  bool Spin(size_t w);
  bool MayCopy(size_t w) const;
  bool CanCopy(size_t w) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CopyOne(size_t w);
  Direction NextFor(size_t w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t BeginFill(size_t w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t BeginEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Copied(size_t index, Direction direction);

  // On the feeding thread (staging_feed.cc).
  void Feed();
  bool AwaitFeed();
  bool FeedOrCopy();
  bool FeedOnce();
  bool SubmitChunks();
  bool CanBeginDown() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t BeginDown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Submit(size_t index, Direction direction);
  bool Collect();
  bool IsComplete(Block& block, const Lane& lane);
  void Arrived(size_t index, Direction direction);
  void Refused(size_t index, Direction direction);

  driver::Driver& driver_;
  host::EventCount& event_count_;
  const StagingOptions options_;
  const bool feeder_copies_;
  std::vector<Block> blocks_;
  std::vector<std::thread> threads_;  // the first one feeds

  // Used by the feeding thread.
  std::vector<std::unique_ptr<Lanes>> lanes_;  // one per device
  std::vector<size_t> to_submit_;  // blocks
  driver::CurrentDevice* current_ = nullptr;  // valid while the feeding thread runs

  base::Mutex mu_;
  base::CondVar feed_, untouched_;
  std::array<Queue, 2> queues_ ABSL_GUARDED_BY(mu_);
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mu_);  // the first one is the feeding thread's, if it copies
  // Blocks: full ones to submit, those that a download has filled, and free ones for downloads.
  std::vector<size_t> filled_ ABSL_GUARDED_BY(mu_), external_deps_met_ ABSL_GUARDED_BY(mu_),
      free_down_ ABSL_GUARDED_BY(mu_);
  size_t downloads_under_way_ ABSL_GUARDED_BY(mu_) = 0;
  size_t asleep_ ABSL_GUARDED_BY(mu_) = 0;  // workers
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Direction turn_ ABSL_GUARDED_BY(mu_) = kUp;  // for a worker that is alone
  // For threads that spin without the lock, or need not take it.
  std::deque<Signal> signals_;  // one per worker
  std::atomic<bool> can_feed_{false}, can_fill_{false}, can_empty_{false};  // hints; checked again under mu_
  std::atomic<int> spinning_{0};  // threads that look without sleeping; a hint
  std::atomic<size_t> busy_{0};  // copies posted that have not ended
};

}  // namespace penstock::memory
