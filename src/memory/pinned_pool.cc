// The pinned pool: which thread pins and frees slabs, and when. See pinned_pool.h.
#include "src/memory/pinned_pool.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/base/user_code.h"
#include "src/memory/tuning.h"

namespace penstock::memory {
namespace {

constexpr size_t kLargest = SIZE_MAX / 2;  // sums of two sizes cannot overflow

// `bytes` is at most kLargest.
size_t RoundUp(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
}

PinnedPoolOptions Complete(PinnedPoolOptions options) {
  options.slab_bytes = RoundUp(std::min(options.slab_bytes, kLargest));
  if (options.clock == nullptr) options.clock = std::make_shared<PoolClock>();
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
  return std::shared_ptr<PinnedPool>(new PinnedPool(driver, std::move(options)));
}

PinnedPool::PinnedPool(driver::Driver& driver, PinnedPoolOptions options)
    : driver_(driver), options_(Complete(std::move(options))) {}

PinnedPool::~PinnedPool() {
  EndThread();
  base::MutexLock lock(mu_);  // no other user is left; needed for the analysis
  assert(in_use_ == 0);
  for (const Slab& slab : slabs_.TakeIdle(kNever, 0)) driver_.FreePinned(slab.base);
  Unreserve(reserved_);
}

// Blocks

absl::StatusOr<PinnedBlock> PinnedPool::Allocate(size_t bytes, int node) {
  if (node < 0) node = options_.node;
  if (bytes > kLargest || (options_.budget != nullptr && bytes > options_.budget->bytes())) return NoRoomFor(bytes);
  absl::StatusOr<PinnedBlock> block = TryAllocate(bytes, node);
  // Idle slabs may free what is missing. Not in user code: freeing may block until a GPU-side wait has ended, and this
  // code may be what ends it.
  while (absl::IsResourceExhausted(block.status()) && !base::InUserCode() && Trim() > 0) {
    block = TryAllocate(bytes, node);
  }
#ifndef NDEBUG
  if (block.ok()) std::memset(block->data(), 0xCD, bytes);
#endif
  return block;
}

absl::StatusOr<PinnedBlock> PinnedPool::TryAllocate(size_t bytes, int node) {
  const size_t held = RoundUp(bytes);
  size_t slab_bytes = 0;
  {
    base::MutexLock lock(mu_);
    bool waited = false;
    for (;;) {
      if (PinnedBlock block = Take(bytes, node); block.data() != nullptr) return block;
      if (!growing_) break;
      waits_ += waited ? 0 : 1;
      waited = true;
      changed_.Wait(mu_);
    }
    // The last slab may be smaller than the others if the budget leaves no more.
    slab_bytes = Reserve(held, std::max(held, options_.slab_bytes));
    if (slab_bytes == 0) {
      PinnedBlock block = Take(bytes, -1);
      return block.data() != nullptr ? absl::StatusOr<PinnedBlock>(std::move(block)) : NoRoom(bytes);
    }
    waits_ += waited ? 0 : 1;
    growing_ = true;
  }
  const absl::StatusOr<void*> memory = Pin(slab_bytes, node);
  base::MutexLock lock(mu_);
  const absl::Status added = AddSlab(memory, slab_bytes, node);
  PinnedBlock block = Take(bytes, added.ok() ? node : -1);
  return block.data() != nullptr ? absl::StatusOr<PinnedBlock>(std::move(block)) : added;
}

// An empty handle if nothing fits.
PinnedBlock PinnedPool::Take(size_t bytes, int node) {
  const size_t held = RoundUp(bytes);
  const SlabList::Place place = slabs_.Take(held, node);
  if (place.data == nullptr) return PinnedBlock();
  in_use_ += held;
  peak_ = std::max(peak_, in_use_);
  GrowAheadOf(bytes, node);
  return PinnedBlock(shared_from_this(), place.slab, place.data, bytes);
}

void PinnedPool::Return(const PinnedBlock& block) {
  const size_t held = RoundUp(block.bytes_);
  bool awaited = false;
  {
    base::MutexLock lock(mu_);
    in_use_ -= held;
    ++returned_;
    const SlabList::Place place{block.slab_, static_cast<std::byte*>(block.data_)};
    if (slabs_.Return(place, held, options_.clock->Now()) && trim_at_ == kNever && NextTrim() != kNever) Wake();
    awaited = waiters_ > 0;
  }
  if (awaited && options_.returned) options_.returned();
}

PinnedPool::Waiter::Waiter(PinnedPool& pool) : pool_(pool) {
  base::MutexLock lock(pool_.mu_);
  ++pool_.waiters_;
  ++pool_.waits_;
}

PinnedPool::Waiter::~Waiter() {
  base::MutexLock lock(pool_.mu_);
  --pool_.waiters_;
}

// Slabs

// How many bytes may be pinned: `wanted`, otherwise what the budget leaves if that is at least `least`, otherwise none.
size_t PinnedPool::Reserve(size_t least, size_t wanted) {
  const size_t bytes = options_.budget == nullptr ? wanted : options_.budget->Take(least, wanted);
  reserved_ += bytes;
  return bytes;
}

void PinnedPool::Unreserve(size_t bytes) {
  reserved_ -= bytes;
  if (options_.budget != nullptr) options_.budget->Give(bytes);
}

absl::StatusOr<void*> PinnedPool::Pin(size_t slab_bytes, int node) {
  absl::StatusOr<void*> memory = absl::UnknownError("");
  const auto allocate = [&] { memory = driver_.AllocatePinned(slab_bytes); };
  if (node >= 0 && options_.on_node) {
    options_.on_node(node, allocate);
  } else {
    allocate();
  }
  return memory;
}

// Called only by the thread that set growing_.
absl::Status PinnedPool::AddSlab(const absl::StatusOr<void*>& memory, size_t bytes, int node) {
  growing_ = false;
  changed_.NotifyAll();
  if (!memory.ok()) {
    Unreserve(bytes);
    return base::Prefixed("pinned pool", memory.status());
  }
  assert(reinterpret_cast<uintptr_t>(*memory) % kPinnedAlignment == 0);
  slabs_.Add(static_cast<std::byte*>(*memory), bytes, node, options_.clock->Now());
  return absl::OkStatus();
}

size_t PinnedPool::Trim() {
  std::vector<Slab> idle;
  size_t bytes = 0;
  {
    base::MutexLock lock(mu_);
    idle = slabs_.TakeIdle(kNever, 0);
    for (const Slab& slab : idle) freeing_ += slab.bytes;
    bytes = freeing_;
  }
  Free(idle);
  base::MutexLock lock(mu_);
  while (freeing_ > 0) changed_.Wait(mu_);
  return bytes;
}

// The bytes count against the budget until they are free.
void PinnedPool::Free(const std::vector<Slab>& slabs) {
  size_t bytes = 0;
  for (const Slab& slab : slabs) {
    driver_.FreePinned(slab.base);
    bytes += slab.bytes;
  }
  base::MutexLock lock(mu_);
  freeing_ -= bytes;
  Unreserve(bytes);
  changed_.NotifyAll();
}

// The pool's thread

// Called after a block has been cut, to check that enough is left. Blocks of a whole slab or more do not count.
void PinnedPool::GrowAheadOf(size_t bytes, int node) {
  if (bytes > options_.slab_bytes || !ShortOn(node)) return;
  if (options_.budget != nullptr && options_.budget->bytes() - options_.budget->taken() < options_.slab_bytes) return;
  if (std::find(ahead_.begin(), ahead_.end(), node) != ahead_.end()) return;
  ahead_.push_back(node);
  Wake();
}

bool PinnedPool::ShortOn(int node) const { return slabs_.FreeOn(node) < options_.slab_bytes / kSlabPartKeptFree; }

// The time at which all currently idle slabs may be freed; kNever if there are none.
TimePoint PinnedPool::NextTrim() const {
  const TimePoint last = slabs_.LastIdle(options_.slab_bytes);
  return last == kNever ? kNever : last + options_.idle;
}

void PinnedPool::Wake() {
  changed_.NotifyAll();
  if (thread_.joinable() || ending_) return;
  try {
    thread_ = base::StartThread("ps-pool", [this] { Work(); });
  } catch (const std::system_error&) {
    // Without the thread, slabs are pinned when needed and freed when memory is short.
  }
}

std::optional<PinnedPool::Job> PinnedPool::TakeGrowth() {
  while (!growing_ && !ahead_.empty()) {
    const int node = ahead_.back();
    ahead_.pop_back();
    if (!ShortOn(node)) continue;  // another thread was faster
    const size_t bytes = Reserve(options_.slab_bytes, options_.slab_bytes);
    growing_ = bytes > 0;
    if (growing_) return Job{.slab_bytes = bytes, .node = node};
  }
  return std::nullopt;
}

// Sleeps until there is a job. Returns nothing if the thread must end.
std::optional<PinnedPool::Job> PinnedPool::NextJob() {
  base::MutexLock lock(mu_);
  for (;;) {
    if (ending_) return std::nullopt;
    if (std::optional<Job> growth = TakeGrowth()) return growth;
    // Once set it does not move, whatever else becomes idle, so that a busy pool does not postpone it forever.
    if (trim_at_ == kNever) trim_at_ = NextTrim();
    if (trim_at_ == kNever) {
      changed_.Wait(mu_);
    } else if (const TimePoint now = options_.clock->Now(); now < trim_at_) {
      options_.clock->WaitUntil(changed_, mu_, trim_at_);
    } else {
      trim_at_ = kNever;
      Job trim{.idle = slabs_.TakeIdle(now - options_.idle, options_.slab_bytes)};
      for (const Slab& slab : trim.idle) freeing_ += slab.bytes;
      if (!trim.idle.empty()) return trim;
    }
  }
}

void PinnedPool::Work() {
  while (const std::optional<Job> job = NextJob()) {
    if (job->slab_bytes > 0) {
      const absl::StatusOr<void*> memory = Pin(job->slab_bytes, job->node);
      base::MutexLock lock(mu_);
      (void)AddSlab(memory, job->slab_bytes, job->node);  // refused: the thread that needs the slab gets the error
    }
    Free(job->idle);
  }
}

void PinnedPool::EndThread() {
  std::thread thread;
  {
    base::MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

// Numbers

PinnedGauges PinnedPool::gauges() const {
  base::MutexLock lock(mu_);
  return {.in_use = static_cast<int64_t>(in_use_),
          .peak = static_cast<int64_t>(peak_),
          .reserved = static_cast<int64_t>(reserved_),
          .budget = options_.budget == nullptr ? 0 : static_cast<int64_t>(options_.budget->bytes()),
          .slabs = static_cast<int64_t>(slabs_.size()),
          .waits = waits_};
}

int64_t PinnedPool::returned() const {
  base::MutexLock lock(mu_);
  return returned_;
}

absl::Status PinnedPool::NoRoomFor(size_t bytes) const {
  base::MutexLock lock(mu_);
  return NoRoom(bytes);
}

absl::Status PinnedPool::NoRoom(size_t bytes) const {
  const std::string budget =
      options_.budget == nullptr ? "no budget" : absl::StrCat("a budget of ", options_.budget->bytes());
  return absl::ResourceExhaustedError(absl::StrCat(
      "pinned pool: ", bytes, " bytes asked for; ", in_use_, " in use, ", reserved_, " reserved in ", slabs_.size(),
      " slabs, the largest free piece has ", slabs_.LargestFree(), ", ", budget,
      "; return blocks, ask for less, or raise the budget (RuntimeOptions::pinned_bytes, PENSTOCK_PINNED_BYTES)"));
}

}  // namespace penstock::memory
