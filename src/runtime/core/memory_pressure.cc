#include "src/runtime/core/memory_pressure.h"

#include <string>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"

namespace penstock::runtime {

absl::Status MemoryPressure::WithMemory(const std::function<absl::Status()>& make) {
  absl::Status made = make();
  if (absl::IsResourceExhausted(made) && !base::InUserCode()) {
    devices_.TrimPools();
    int64_t ended = 0;
    do {
      ended = releases_.ended();
      made = make();
    } while (absl::IsResourceExhausted(made) &&
             Wait(ended, [&] { return releases_.ended() > ended; }, Awaits::kReleases, {}));
  }
  return made;
}

absl::StatusOr<memory::PinnedBlock> MemoryPressure::AllocateHost(size_t bytes, Deadline deadline) {
  memory::PinnedPool& pool = devices_.pinned(0);
  absl::StatusOr<memory::PinnedBlock> block = pool.Allocate(bytes);
  const bool too_large = bytes > static_cast<size_t>(devices_.pinned_budget());
  if (absl::IsResourceExhausted(block.status()) && !too_large && !base::InUserCode()) {
    devices_.TrimPools();
    const memory::PinnedPool::Waiter waiter(pool);
    int64_t ended = 0, returned = 0;
    do {
      ended = releases_.ended();
      returned = pool.returned();
      block = pool.Allocate(bytes);
    } while (absl::IsResourceExhausted(block.status()) &&
             Wait(
                 ended, [&] { return releases_.ended() > ended || pool.returned() > returned; },
                 Awaits::kReleasesAndBlocks, deadline));
    if (absl::IsResourceExhausted(block.status())) {
      PENSTOCK_RETURN_IF_ERROR(admission_.CheckOpen());
      if (deadline.passed()) {
        return absl::DeadlineExceededError(base::Str(block.status().message()) +
                                           "; not enough came back before the deadline of MakeHostBuffer");
      }
    }
  }
  return block;
}

// Waits until `more` returns true: releases have ended since their count was `ended_then`, or a block has been
// returned. Returns false if no more memory will be freed; an abandoned run may never end.
bool MemoryPressure::Wait(int64_t ended_then, const std::function<bool()>& more, Awaits awaits, Deadline deadline) {
  host::WaitForProgress(event_count_, devices_.notifies_completion(), deadline.at(), [&] {
    const int64_t copies = copies_left();
    const InFlightList::Left left = in_flight_.AdvanceAndCount();
    const bool to_come = releases_.AnyToCome(ended_then, left.stuck) ||
                         (awaits == Awaits::kReleasesAndBlocks && MayReturnBlocks(copies + left.abandoned));
    return more() || !to_come || !admission_.CheckOpen().ok();
  });
  return more();
}

// A run counts as in flight, and after that as releasing its keep-alives, until its blocks have returned; so they are
// read in this order.
bool MemoryPressure::MayReturnBlocks(int64_t abandoned) const {
  const bool runs = admission_.runs().runs() > abandoned || letting_go_.load(std::memory_order_acquire) > 0;
  return runs && blocks_left_.load(std::memory_order_acquire) > 0;
}

void MemoryPressure::LeftBlockReturned() {
  blocks_left_.fetch_sub(1, std::memory_order_acq_rel);
  event_count_.Notify();
}

void MemoryPressure::ReleaseEnds() {
  releases_.End();
  event_count_.Notify();
}

// From now on, threads that wait for blocks may be waiting in vain.
void MemoryPressure::LetGoEnds() {
  letting_go_.fetch_sub(1, std::memory_order_acq_rel);
  if (blocks_left_.load(std::memory_order_acquire) > 0) event_count_.Notify();
}

}  // namespace penstock::runtime
