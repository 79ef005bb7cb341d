// Staging: copies between devices and host memory that is not pinned, by several host threads through a ring of pinned
// blocks.
//
// A copy is cut into chunks (chunks.h). On the way in a thread fills a block, which is then copied to the device; on
// the way out a few copies into blocks are always under way, and a thread empties each once it is complete. So host and
// link work at once, and several threads keep up with the link where one does not. Each direction of a device has one
// stream: copies on several streams take turns on the link with pauses that cost a quarter of it.
//
// One thread feeds the devices: all that is asked of the driver, it asks. A ring whose threads each submit what they
// have filled moves up to a quarter less (docs/performance.md); it seems that they have nothing of the driver left in
// their caches by then. It copies itself only where threads are few.
//
// Copies are taken up in the order they were posted, each direction for itself. Filling a block takes the host about
// twice as long as emptying one, which goes past the caches; so two threads of three look for blocks to fill first, the
// others for blocks to empty. A thread fills blocks of its own, which stay in its core's caches.
//
// Ownership: owns its threads, blocks, streams and events. What it was given must be done before it goes.
// Threads:   Post from any thread; it never blocks. `done` is called by a staging thread (or in Withdraw), with no lock
//            held, and must return soon: every other copy waits for it. Threads sleep while there is nothing to do.
// Ordering:  the host knows that all the copy needs has happened before it is posted; when `done` is called, all of it
//            has happened and is visible to the callee, and neither side is touched any more.
// Errors:    the first failure goes to op.tag.fault; of a copy whose run has failed no further chunk is begun.
//            `done` is called all the same, and only when nothing of it is under way.
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
  size_t chunk_bytes = size_t{1} << 20;  // of a copy that has several for each thread no less than this
  size_t block_bytes = size_t{4} << 20;  // at least chunk_bytes: chunks of large copies
  int node = -1;  // whose memory the blocks are; -1: that of the pool
  std::function<void(int thread)> begin = [](int) {};  // called first in each of them, from 0
};

// One copy. Whoever posts it owns it; it may be used again once it is done.
struct StagedCopy {
  driver::CopyOp op;  // kHostToDevice or kDeviceToHost, not empty, `tag.fault` set; the host's side is any memory
  int device = 0;  // of the driver
  void (*done)(void* context, int64_t arg) = nullptr;
  void* context = nullptr;
  int64_t arg = 0;

 private:
  friend class Staging;
  Chunks chunks;  // constant while posted
  size_t next = 0;  // chunk; with `left` guarded by Staging::mu_
  size_t left = 0;  // chunks that have not ended
  size_t most_under_way = 0;
  // Guarded by Staging::mu_ too.
  size_t touched_by = 0;  // threads that copy from or to the host's side
  bool withdrawn = false;
};

class Staging {
 public:
  // `event count` is rung by the driver, where that rings.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(driver::Driver& driver, PinnedPool& pool,
                                                         host::EventCount& event_count, const StagingOptions& options);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void Post(StagedCopy& copy);
  // For who will not wait for a posted copy: no further chunk is begun, and when this returns the host's side is not
  // touched any more. It waits for threads that copy a chunk on the host, not for the device; `done` comes once the
  // device is through with what is under way, or is called here where nothing is.
  void Withdraw(StagedCopy& copy);

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  enum Direction : uint8_t { kUp, kDown };
  // First in, first out: copies that have chunks left to begin.
  using Queue = std::vector<StagedCopy*>;
  struct Block {
    PinnedBlock memory;
    std::vector<driver::Event> events;  // a device each
    size_t owner = 0;  // the thread that fills it; of blocks that are emptied, none
    // Of whoever has it.
    StagedCopy* copy = nullptr;
    driver::CopyOp chunk;
    bool wanted = false;  // on the way out: somebody still wants the bytes
    bool recorded = false;
  };
  // A thread that copies.
  struct Worker {
    std::vector<size_t> free;  // blocks to fill
    bool asleep = false;
  };
  struct Signal {
    base::CondVar wake;
    std::atomic<size_t> free{0};  // Worker::free.size(), for who need not take the lock
  };
  // One direction of one device: of the thread that feeds.
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

  // Threads that copy, `w` of workers_.
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

  // The thread that feeds (staging_feed.cc).
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

  // Of the thread that feeds.
  std::vector<std::unique_ptr<Lanes>> lanes_;  // a device each
  std::vector<size_t> to_submit_;  // blocks
  driver::CurrentDevice* current_ = nullptr;  // while it lives

  base::Mutex mu_;
  base::CondVar feed_, untouched_;
  std::array<Queue, 2> queues_ ABSL_GUARDED_BY(mu_);
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mu_);  // the first one is the submission thread's, if it copies
  // Blocks: full ones to submit, those that were copied into, and free ones for the way out.
  std::vector<size_t> filled_ ABSL_GUARDED_BY(mu_), external_deps_met_ ABSL_GUARDED_BY(mu_),
      free_down_ ABSL_GUARDED_BY(mu_);
  size_t downloads_under_way_ ABSL_GUARDED_BY(mu_) = 0;
  size_t asleep_ ABSL_GUARDED_BY(mu_) = 0;  // workers
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Direction turn_ ABSL_GUARDED_BY(mu_) = kUp;  // of a worker that is alone
  // For who spins without the lock, or need not take it.
  std::deque<Signal> signals_;  // a worker each
  std::atomic<bool> can_feed_{false}, can_fill_{false}, can_empty_{false};  // hints; checked again under mu_
  std::atomic<int> spinning_{0};  // threads that look without sleeping; a hint
  std::atomic<size_t> busy_{0};  // copies posted that have not ended
};

}  // namespace penstock::memory
