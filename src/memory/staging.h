// Staging: copies between devices and host memory that is not pinned, by several host threads through a ring of pinned
// blocks.
//
// A copy is cut into chunks (chunks.h). On the way in a thread fills a block and submits its copy to the device; on the
// way out a few copies into blocks are always under way, and a thread empties each once it is complete. So host and
// link work at once, and several threads keep up with the link where one does not. Each direction of a device has one
// stream: copies on several streams take turns on the link with pauses that cost a quarter of it.
//
// Copies are taken up in the order they were posted, each direction for itself. Filling a block takes the host about
// twice as long as emptying one, which goes past the caches; so two threads of three look for blocks to fill first, the
// others for blocks to empty. Threads that find neither leave the cores alone: spinning beside those who copy, or
// asking the driver what is under way, slows them down. One watches for all.
//
// Ownership: owns its threads, blocks, streams and events. What it was given must be done before it goes.
// Threads:   Post from any thread; it never blocks. `done` is called by a staging thread (or in Withdraw), with no lock
//            held. Threads sleep while there is nothing to do.
// Ordering:  the host knows that all the copy needs has happened before it is posted; when `done` is called, all of it
//            has happened and is visible to the callee, and neither side is touched any more.
// Errors:    the first failure goes to op.tag.fault; of a copy whose run has failed no further chunk is begun.
//            `done` is called all the same, and only when nothing of it is under way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/host/bell.h"
#include "src/memory/chunks.h"
#include "src/memory/pinned_pool.h"

namespace penstock::memory {

struct StagingOptions {
  int threads = 2;  // for both directions together; at least 1
  size_t chunk_bytes = size_t{1} << 20;  // of a copy that has several for each thread no less than this
  size_t block_bytes = size_t{4} << 20;  // at least chunk_bytes: chunks of large copies
  int blocks = 0;  // at least 2; 0: enough for every thread
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
  // `bell` is rung by the driver, where that rings.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(driver::Driver& driver, PinnedPool& pool, host::Bell& bell,
                                                         const StagingOptions& options);
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
    // Of whoever took it.
    StagedCopy* copy = nullptr;
    driver::CopyOp chunk;
    bool recorded = false;
  };
  // One direction of one device.
  struct Lane {
    driver::Stream stream;  // fed under `mu`
    base::Mutex mu;
    std::vector<size_t> under_way ABSL_GUARDED_BY(mu);  // blocks, oldest first
    std::atomic<size_t> count{0};  // of these, for who need not look
  };
  using Lanes = std::array<Lane, 2>;

  Staging(driver::Driver& driver, host::Bell& bell, const StagingOptions& options);
  // A thread.
  struct Worker {
    Direction first;  // where it looks first
    bool watches = false;
  };

  static Direction DirectionOf(const StagedCopy& copy);
  absl::Status MakeResources(PinnedPool& pool);
  absl::Status StartThreads();
  void Work(int index);
  bool Rest(Worker& self);
  bool Spin();
  void AwaitRing(Worker& self);
  void Poll(Worker& self);
  void StopWatching(Worker& self);
  void Wake(size_t threads) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Step(Worker& self);
  bool Fill(Worker& self);
  bool Empty(Worker& self);
  bool Retire(Worker& self);
  bool CanBegin(Direction direction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Begin(Direction direction, size_t* block);
  size_t Take(Direction direction, StagedCopy& copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool BeginTouch(StagedCopy& copy);
  void EndTouch(StagedCopy& copy);
  bool Submit(size_t block, Direction direction);
  static bool Enter(Lane& lane, bool waits)
      ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, lane.mu) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool TakeComplete(const Worker& self, Direction direction, size_t* block);
  bool IsComplete(Block& block, const Lane& lane);
  void NoteArrival(Direction direction);
  void GiveBack(size_t block, Direction direction);
  bool EndChunks(StagedCopy& copy, size_t count);
  size_t ChunkBytes(const driver::CopyOp& op) const;

  driver::Driver& driver_;
  host::Bell& bell_;
  const StagingOptions options_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Lanes>> lanes_;  // a device each
  std::vector<std::thread> threads_;

  base::Mutex mu_;
  base::CondVar posted_, untouched_;
  std::array<Queue, 2> queues_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> free_ ABSL_GUARDED_BY(mu_);  // blocks
  std::array<size_t, 2> taken_ ABSL_GUARDED_BY(mu_){};  // blocks, by direction
  size_t downloads_under_way_ ABSL_GUARDED_BY(mu_) = 0;
  size_t asleep_ ABSL_GUARDED_BY(mu_) = 0;
  bool watched_ ABSL_GUARDED_BY(mu_) = false;  // a thread watches what is under way
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // For who spins without the lock, or need not take it.
  std::atomic<bool> can_begin_{false}, watched_hint_{false};
  std::atomic<int> spinning_{0};
  std::atomic<size_t> busy_{0};  // copies posted that have not ended
};

}  // namespace penstock::memory
