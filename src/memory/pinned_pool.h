// PinnedPool: page-locked host memory handed out in blocks from a few large slabs.
//
// Pinning is slow (17-33 ms for 64 MiB) and blocks other CUDA calls, so the pool takes it in slabs of a fixed size and
// keeps them. Blocks are cut first-fit; neighbours that are both free are one again. A block larger than a slab gets a
// slab of its own, which later serves any block that fits. A slab lies on a NUMA node: a block is cut from the node it
// is asked for on, or a slab is pinned there; another node's memory serves when the budget is spent.
//
// A thread of the pool's own, made when there is first something for it to do, pins the next slab when a block has left
// less than a quarter of one free, and frees slabs that no block has lain in for a while (PinnedPoolOptions::idle), but
// for one of each node, kept for quick reuse. Such a slab goes between `idle` and twice that later. After the last
// return of a block the thread begins at most one timed sleep; then it sleeps for good.
//
// Ownership: a block keeps its pool alive; the pool frees its slabs when the last block and the last handle are gone.
//            That must happen before the driver ends, and may block while a GPU-side wait is pending.
// Threads:   thread-safe. One mutex, never held while memory is pinned or freed; threads that need a new slab while
//            another thread pins one wait for it and look again.
// Errors:    ResourceExhausted over the budget, with bytes asked for, in use, reserved and allowed; the driver's error
//            where it refuses. A call that fails changes nothing. Slabs that no block lies in are given back before.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/pinned_gauges.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_budget.h"
#include "src/memory/slab_list.h"

namespace penstock::memory {

// Where the pool takes the time from, and how its thread sleeps until then. Tests bring their own.
class PoolClock {
 public:
  virtual ~PoolClock() = default;
  virtual TimePoint Now() { return std::chrono::steady_clock::now(); }
  // Returns when `changed` is notified, or at `until`, or for no reason.
  virtual void WaitUntil(base::CondVar& changed, base::Mutex& mu, TimePoint until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    changed.WaitUntil(mu, until);
  }
};

struct PinnedPoolOptions {
  size_t slab_bytes = size_t{32} << 20;  // rounded up to kPinnedAlignment
  std::shared_ptr<PinnedBudget> budget{};  // of all slabs together, shared with other pools; null: none
  std::chrono::steady_clock::duration idle = std::chrono::seconds(10);  // how long a slab must have been free to go
  int node = -1;  // of blocks that name none; -1: wherever there is room
  // Calls its argument while the memory that this thread allocates comes from the node. Null: there is one node.
  std::function<void(int node, const std::function<void()>& allocate)> on_node{};
  std::function<void()> returned{};  // called without a lock when a block has returned that a PinnedPool::Waiter awaits
  std::shared_ptr<PoolClock> clock{};  // null: steady_clock
};

class PinnedPool;

// One block. Destroying it returns the memory at once: whoever gave it to a device waits for the device first. Debug
// builds fill it with 0xDD then.
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
  size_t bytes() const { return bytes_; }  // as asked for

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

  // Uninitialized memory, on `node` if it can be (-1: on the pool's). Zero bytes get an address of their own.
  absl::StatusOr<PinnedBlock> Allocate(size_t bytes, int node = -1);

  // Frees the slabs no block lies in and waits for those that the pool's thread is freeing; returns their bytes. May
  // block while a GPU-side wait is pending.
  size_t Trim();
  // Ends the pool's thread. From then on slabs are pinned by whoever needs them and freed by Trim and the destructor.
  void EndThread();

  PinnedGauges gauges() const;
  // Why so many bytes cannot be had: ResourceExhausted with the numbers.
  absl::Status NoRoomFor(size_t bytes) const;

  // While it lives, blocks that return are announced (PinnedPoolOptions::returned). Counts as one wait.
  class Waiter {
   public:
    explicit Waiter(PinnedPool& pool);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   private:
    PinnedPool& pool_;
  };
  int64_t returned() const;  // blocks, so far

 private:
  friend class PinnedBlock;
  static constexpr TimePoint kNever = TimePoint::max();

  // What the pool's thread does next, without the lock: pin a slab, free slabs, or end (neither).
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
  bool TakeGrowth(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool NextJob(Job& job) ABSL_LOCKS_EXCLUDED(mu_);
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
  size_t reserved_ ABSL_GUARDED_BY(mu_) = 0;  // with slabs being pinned or freed
  size_t freeing_ ABSL_GUARDED_BY(mu_) = 0;  // of those, being freed
  size_t peak_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t waits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t returned_ ABSL_GUARDED_BY(mu_) = 0;
  int waiters_ ABSL_GUARDED_BY(mu_) = 0;

  std::vector<int> ahead_ ABSL_GUARDED_BY(mu_);  // nodes where the next slab is wanted
  TimePoint trim_at_ ABSL_GUARDED_BY(mu_) = kNever;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::memory
