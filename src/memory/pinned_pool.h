// PinnedPool: page-locked host memory handed out in blocks from a few large slabs.
//
// Pinning is slow (17-33 ms for 64 MiB) and blocks other CUDA calls, so the pool takes it in slabs of a fixed size and
// keeps them until it ends. Blocks are cut first-fit; neighbours that are both free are one again. A block larger than
// a slab gets a slab of its own, which later serves any block that fits.
//
// Ownership: a block keeps its pool alive; the pool frees its slabs when the last block and the last handle are gone.
//            That must happen before the driver ends, and may block while a GPU-side wait is pending.
// Threads:   thread-safe. One mutex, never held while memory is pinned or freed; threads that need a new slab while
//            another thread pins one wait for it and look again.
// Errors:    ResourceExhausted over the budget, with bytes asked for, in use, reserved and allowed; the driver's error
//            where it refuses. A call that fails changes nothing.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"

namespace penstock::memory {

inline constexpr size_t kPinnedAlignment = 256;

struct PinnedPoolOptions {
  size_t slab_bytes = size_t{32} << 20;  // rounded up to kPinnedAlignment
  size_t budget_bytes = 0;               // of all slabs together; 0: none
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

  void* data() const { return data_; }    // kPinnedAlignment-aligned; null in an empty handle
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

  // Uninitialized memory. Zero bytes get an address of their own.
  absl::StatusOr<PinnedBlock> Allocate(size_t bytes);

  // Frees the slabs no block lies in; returns their bytes. May block while a GPU-side wait is pending.
  size_t Trim();

  size_t slabs() const;
  size_t bytes_in_use() const;    // of blocks, each rounded up to kPinnedAlignment
  size_t bytes_reserved() const;  // of slabs
  size_t peak_bytes() const;      // the most that was ever in use

 private:
  friend class PinnedBlock;
  struct Slab {
    std::byte* base = nullptr;  // null: trimmed, its place in the list is free
    size_t bytes = 0;
    std::map<size_t, size_t> free;  // offset -> bytes; neighbours never touch
  };

  PinnedPool(driver::Driver& driver, PinnedPoolOptions options);
  PinnedBlock Take(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<size_t> NextSlabBytes(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<PinnedBlock> Grow(size_t slab_bytes, size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void Return(const PinnedBlock& block);
  size_t CountSlabs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoRoom(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  driver::Driver& driver_;
  const PinnedPoolOptions options_;

  mutable base::Mutex mu_;
  base::CondVar grown_;
  bool growing_ ABSL_GUARDED_BY(mu_) = false;  // one thread is pinning a slab
  std::vector<Slab> slabs_ ABSL_GUARDED_BY(mu_);
  size_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  size_t reserved_ ABSL_GUARDED_BY(mu_) = 0;   // with the slab being pinned
  size_t peak_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::memory
