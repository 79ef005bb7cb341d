// The pinned pool's slabs and free lists. See pinned_pool.h.
#include "src/memory/pinned_pool.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"

namespace penstock::memory {
namespace {

constexpr size_t kLargest = SIZE_MAX / 2;  // sums of two sizes cannot overflow

// `bytes` is at most kLargest.
size_t RoundUp(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
}

PinnedPoolOptions Rounded(PinnedPoolOptions options) {
  options.slab_bytes = RoundUp(std::min(options.slab_bytes, kLargest));
  return options;
}

}  // namespace

PinnedBlock::~PinnedBlock() {
  if (pool_ == nullptr) return;
#ifndef NDEBUG
  std::memset(data_, 0xDD, bytes_);
#endif
  pool_->Return(*this);
}

std::shared_ptr<PinnedPool> PinnedPool::Create(driver::Driver& driver, PinnedPoolOptions options) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(driver, options));
}

PinnedPool::PinnedPool(driver::Driver& driver, PinnedPoolOptions options)
    : driver_(driver), options_(Rounded(options)) {}

PinnedPool::~PinnedPool() {
  base::MutexLock lock(mu_);  // nobody else is left: for the analysis
  assert(in_use_ == 0);
  for (const Slab& slab : slabs_) {
    if (slab.base != nullptr) driver_.FreePinned(slab.base);
  }
}

absl::StatusOr<PinnedBlock> PinnedPool::Allocate(size_t bytes) {
  size_t slab_bytes = 0;
  {
    base::MutexLock lock(mu_);
    if (bytes > kLargest) return NoRoom(bytes);
    for (;;) {
      if (PinnedBlock block = Take(bytes); block.data() != nullptr) return block;
      if (!growing_) break;
      grown_.Wait(mu_);
    }
    PENSTOCK_ASSIGN_OR_RETURN(slab_bytes, NextSlabBytes(bytes));
    reserved_ += slab_bytes;
    growing_ = true;
  }
  return Grow(slab_bytes, bytes);
}

// Pins a slab, without the lock, and cuts the block from it before anybody else can. Only the thread that set growing_
// is here.
absl::StatusOr<PinnedBlock> PinnedPool::Grow(size_t slab_bytes, size_t bytes) {
  const absl::StatusOr<void*> memory = driver_.AllocatePinned(slab_bytes);
  base::MutexLock lock(mu_);
  growing_ = false;
  grown_.NotifyAll();
  if (!memory.ok()) {
    reserved_ -= slab_bytes;
    return base::Prefixed("pinned pool", memory.status());
  }
  assert(reinterpret_cast<uintptr_t>(*memory) % kPinnedAlignment == 0);
  auto place = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& slab) { return slab.base == nullptr; });
  if (place == slabs_.end()) place = slabs_.insert(place, Slab());
  *place = {static_cast<std::byte*>(*memory), slab_bytes, {{0, slab_bytes}}};
  return Take(bytes);
}

size_t PinnedPool::Trim() {
  std::vector<Slab> idle;
  size_t bytes = 0;
  {
    base::MutexLock lock(mu_);
    for (Slab& slab : slabs_) {
      if (slab.free.empty() || slab.free.begin()->second != slab.bytes) continue;
      bytes += slab.bytes;
      idle.push_back(std::exchange(slab, Slab()));
    }
  }
  for (const Slab& slab : idle) driver_.FreePinned(slab.base);
  base::MutexLock lock(mu_);
  reserved_ -= bytes;  // only now: until then they count against the budget
  return bytes;
}

// The block at the first place that fits; an empty handle where there is none.
PinnedBlock PinnedPool::Take(size_t bytes) {
  const size_t held = RoundUp(bytes);
  for (size_t s = 0; s < slabs_.size(); ++s) {
    std::map<size_t, size_t>& free = slabs_[s].free;
    const auto place = std::find_if(free.begin(), free.end(), [&](const auto& hole) { return hole.second >= held; });
    if (place == free.end()) continue;
    const auto [offset, room] = *place;
    free.erase(place);
    if (room > held) free.emplace(offset + held, room - held);
    in_use_ += held;
    peak_ = std::max(peak_, in_use_);
    return PinnedBlock(shared_from_this(), s, slabs_[s].base + offset, bytes);
  }
  return PinnedBlock();
}

// How large the next slab is: the last one may be smaller than the others, where the budget leaves no more.
absl::StatusOr<size_t> PinnedPool::NextSlabBytes(size_t bytes) const {
  const size_t held = RoundUp(bytes);
  const size_t wanted = std::max(held, options_.slab_bytes);
  if (options_.budget_bytes == 0) return wanted;
  const size_t room = (options_.budget_bytes - reserved_) / kPinnedAlignment * kPinnedAlignment;
  if (wanted <= room) return wanted;
  if (held <= room) return room;
  return NoRoom(bytes);
}

void PinnedPool::Return(const PinnedBlock& block) {
  const size_t held = RoundUp(block.bytes_);
  base::MutexLock lock(mu_);
  in_use_ -= held;
  Slab& slab = slabs_[block.slab_];
  size_t begin = static_cast<size_t>(static_cast<std::byte*>(block.data_) - slab.base);
  size_t end = begin + held;
  auto after = slab.free.lower_bound(begin);
  if (after != slab.free.end() && after->first == end) {
    end += after->second;
    after = slab.free.erase(after);
  }
  if (after != slab.free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second = end - before->first;
      return;
    }
  }
  slab.free.emplace_hint(after, begin, end - begin);
}

absl::Status PinnedPool::NoRoom(size_t bytes) const {
  const std::string budget =
      options_.budget_bytes == 0 ? "no budget" : absl::StrCat("a budget of ", options_.budget_bytes);
  return absl::ResourceExhaustedError(absl::StrCat("pinned pool: ", bytes, " bytes asked for; ", in_use_, " in use, ",
                                                   reserved_, " reserved in ", CountSlabs(), " slabs, ", budget,
                                                   "; return blocks, ask for less, or raise the budget"));
}

size_t PinnedPool::slabs() const {
  base::MutexLock lock(mu_);
  return CountSlabs();
}

size_t PinnedPool::CountSlabs() const {
  return static_cast<size_t>(
      std::count_if(slabs_.begin(), slabs_.end(), [](const Slab& slab) { return slab.base != nullptr; }));
}

size_t PinnedPool::bytes_in_use() const {
  base::MutexLock lock(mu_);
  return in_use_;
}

size_t PinnedPool::bytes_reserved() const {
  base::MutexLock lock(mu_);
  return reserved_;
}

size_t PinnedPool::peak_bytes() const {
  base::MutexLock lock(mu_);
  return peak_;
}

}  // namespace penstock::memory
