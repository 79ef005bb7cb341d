// PinnedPool: page-locked host memory handed out in blocks from a few large slabs.
//
// Pinning is slow (17-33 ms for 64 MiB) and blocks other CUDA calls, so the pool pins slabs of a fixed size and keeps
// them. Blocks are cut first-fit, and adjacent free ranges are merged. A block larger than a slab gets a slab of its
// own, which later serves any block that fits. Each slab lies on one NUMA node. A block is cut from a slab on the
// requested node, or a slab is pinned there; when the budget is spent, another node's memory serves.
//
// The pool has a thread, started when it is first needed. It pins the next slab when a block has left less than a
// quarter of one free. It also frees slabs that have had no block for a while (PinnedPoolOptions::idle), except one per
// node, kept for quick reuse; such a slab is freed between `idle` and twice that time later. After the last block has
// returned, the thread begins at most one timed sleep, then sleeps indefinitely.
//
// Ownership: a block keeps its pool alive; the pool frees its slabs when the last block and the last handle are gone.
//            That must happen before the driver ends, and may block while a GPU-side wait is pending.
// Threads:   thread-safe. One mutex, never held while memory is pinned or freed. If another thread is pinning a slab,
//            threads that need one wait for it and look again.
// Errors:    ResourceExhausted over the budget, with the bytes requested, in use, reserved and allowed; the
//            driver's error if it refuses. A call that fails changes nothing. Slabs without blocks are freed
//            before a call fails.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/pinned_gauges.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_budget.h"
#include "src/memory/slab_list.h"
#include "src/memory/tuning.h"

namespace penstock::memory {

// The pool's source of time, and the timed sleep of its thread. Tests provide their own.
class PoolClock {
 public:
  virtual ~PoolClock() = default;
  virtual TimePoint Now() { return std::chrono::steady_clock::now(); }
  // Returns when `changed` is notified, at `until`, or spuriously.
  virtual void WaitUntil(base::CondVar& changed, base::Mutex& mu, TimePoint until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    changed.WaitUntil(mu, until);
  }
};

struct PinnedPoolOptions {
  size_t slab_bytes = kSlabBytes;  // rounded up to kPinnedAlignment
  std::shared_ptr<PinnedBudget> budget{};  // for all slabs, shared with other pools; null: no limit
  std::chrono::steady_clock::duration idle = std::chrono::seconds(10);  // minimum idle time of a freed slab
  int node = -1;  // for blocks that name none; -1: wherever there is space
  // Calls its argument while memory that this thread allocates comes from the node. Null: there is only one node.
  std::function<void(int node, const std::function<void()>& allocate)> on_node{};
  std::function<void()> returned{};  // called without a lock when a block that a PinnedPool::Waiter awaits has returned
  std::shared_ptr<PoolClock> clock{};  // null: steady_clock
};

class PinnedPool;

// One block. Destroying it returns the memory immediately, so a holder that gave it to a device must wait for the
// device first. Debug builds fill it with 0xCD before and with 0xDD then.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(PinnedBlock&& other) noexcept { Swap(other); }
  PinnedBlock& operator=(PinnedBlock other) noexcept {
    Swap(other);
    return *this;
  }
  ~PinnedBlock();

  void* data() const { return data_; }  // kPinnedAlignment-aligned; null in an empty handle
  size_t bytes() const { return bytes_; }  // as requested

 private:
  friend class PinnedPool;
  PinnedBlock(std::shared_ptr<PinnedPool> pool, size_t slab, void* data, size_t bytes)
      : pool_(std::move(pool)), slab_(slab), data_(data), bytes_(bytes) {}
  void Swap(PinnedBlock& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(slab_, other.slab_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  std::shared_ptr<PinnedPool> pool_;
  size_t slab_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  static std::shared_ptr<PinnedPool> Create(driver::Driver& driver, PinnedPoolOptions options);
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Allocates uninitialized memory, on `node` if possible (-1: the pool's node). Zero bytes get an
  // address of their own.
  absl::StatusOr<PinnedBlock> Allocate(size_t bytes, int node = -1);

  // Frees the slabs without blocks, waits for those that the pool's thread is freeing, and returns their bytes. May
  // block while a GPU-side wait is pending.
  size_t Trim();
  // Ends the pool's thread. From then on, threads that need slabs pin them, and Trim and the destructor free them.
  void EndThread();

  PinnedGauges gauges() const;
  // Describes why this many bytes are not available: ResourceExhausted with the numbers.
  absl::Status NoRoomFor(size_t bytes) const;

  // While it lives, returning blocks are announced (PinnedPoolOptions::returned). Counts as one wait.
  class Waiter {
   public:
    explicit Waiter(PinnedPool& pool);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   private:
    PinnedPool& pool_;
  };
  int64_t returned() const;  // blocks returned so far

 private:
  friend class PinnedBlock;
  static constexpr TimePoint kNever = TimePoint::max();

  // A job of the pool's thread, done without the lock: pin a slab, or free slabs.
  struct Job {
    size_t slab_bytes = 0;
    int node = -1;
    std::vector<Slab> idle{};
  };

  PinnedPool(driver::Driver& driver, PinnedPoolOptions options);
  absl::StatusOr<PinnedBlock> TryAllocate(size_t bytes, int node) ABSL_LOCKS_EXCLUDED(mu_);
  PinnedBlock Take(size_t bytes, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Return(const PinnedBlock& block) ABSL_LOCKS_EXCLUDED(mu_);

  size_t Reserve(size_t least, size_t wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Unreserve(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<void*> Pin(size_t slab_bytes, int node) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AddSlab(const absl::StatusOr<void*>& memory, size_t bytes, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Free(const std::vector<Slab>& slabs) ABSL_LOCKS_EXCLUDED(mu_);

  void GrowAheadOf(size_t bytes, int node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ShortOn(int node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  TimePoint NextTrim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Job> TakeGrowth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Job> NextJob() ABSL_LOCKS_EXCLUDED(mu_);
  void Work();

  absl::Status NoRoom(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  driver::Driver& driver_;
  const PinnedPoolOptions options_;

  mutable base::Mutex mu_;
  base::CondVar changed_;  // a slab has come or gone, or the thread has something to do
  bool growing_ ABSL_GUARDED_BY(mu_) = false;  // one thread is pinning a slab
  SlabList slabs_ ABSL_GUARDED_BY(mu_);
  size_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  size_t reserved_ ABSL_GUARDED_BY(mu_) = 0;  // includes slabs being pinned or freed
  size_t freeing_ ABSL_GUARDED_BY(mu_) = 0;  // the part of these being freed
  size_t peak_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t waits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t returned_ ABSL_GUARDED_BY(mu_) = 0;
  int waiters_ ABSL_GUARDED_BY(mu_) = 0;

  std::vector<int> ahead_ ABSL_GUARDED_BY(mu_);  // nodes that want their next slab
  TimePoint trim_at_ ABSL_GUARDED_BY(mu_) = kNever;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::memory
