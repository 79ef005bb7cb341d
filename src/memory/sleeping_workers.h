// SleepingWorkers: the copying threads of a staging ring that have gone to sleep, and the choice of those to wake.
//
// Threads:  guarded as a whole by the lock of its owner, which Sleep releases while the thread sleeps.
// Ordering: a worker finds under that lock that it can do nothing, and falls asleep before it releases it. Whoever
//           gives it something to do calls Wake under the same lock, so that no worker sleeps through it.
#pragma once

#include <vector>

#include "penstock/detail/table.h"
#include "src/base/mutex.h"
#include "src/memory/chunk_schedule.h"

namespace penstock::memory {

class SleepingWorkers {
 public:
  explicit SleepingWorkers(int workers) : seats_(workers) {}

  // Sleeps until the worker is woken, or for no reason.
  void Sleep(WorkerId w, base::Mutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Seat& seat = seats_[w];
    seat.asleep = true;
    ++asleep_;
    seat.wake.Wait(mu);
    if (seat.asleep) --asleep_;  // not woken by Wake
    seat.asleep = false;
  }
  // Wakes at most `most` workers that can copy.
  void Wake(int most, const ChunkSchedule& schedule) {
    for (const WorkerId w : seats_.ids()) {
      if (most == 0 || asleep_ == 0) return;
      if (!seats_[w].asleep || !schedule.CanCopy(w)) continue;
      seats_[w].asleep = false;
      --asleep_;
      --most;
      seats_[w].wake.NotifyOne();
    }
  }
  void WakeAll() {
    for (Seat& seat : seats_) seat.wake.NotifyOne();
  }

 private:
  struct Seat {
    base::CondVar wake;
    bool asleep = false;
  };
  detail::Table<WorkerId, Seat> seats_;
  int asleep_ = 0;
};

}  // namespace penstock::memory
