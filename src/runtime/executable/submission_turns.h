// SubmissionTurns: limits how many runs of an executable have work submitted to devices
// (CompileOptions::max_submitted). The others wait for their turn, in the order in which they have joined.
//
// No deadlock: a run joins in one step with taking its places in the order of its States (state_order.h), and after the
// runs that its bindings wait for have done so. So all that a run waits for, here and there, has joined before.
//
// Threads: thread-safe once SetLimit has been called. A run's owner calls Take and Leave.
// Locks:   mu_ guards the queue; Join calls `enter` with it held, which takes StateOrder::mu_ and KeyedStates::mu_.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"

namespace penstock::runtime {

class SubmissionTurns {
 public:
  // Called once, before the first launch. 0: no limit, and none of the other calls is needed.
  void SetLimit(int limit, int slots) {
    limit_ = limit;
    base::MutexLock lock(mu_);
    waiting_.reserve(static_cast<size_t>(slots));
  }
  bool limited() const { return limit_ > 0; }

  // The slot's run waits for its turn from now on, unless `enter` fails.
  template <class F>
  absl::Status Join(int slot, F enter) {
    base::MutexLock lock(mu_);
    absl::Status entered = enter();
    if (entered.ok()) waiting_.push_back(slot);
    return entered;
  }
  // Returns whether the waiting run's turn has come; then it has it until Leave.
  bool Take(int slot) {
    base::MutexLock lock(mu_);
    const auto at = std::find(waiting_.begin(), waiting_.end(), slot);
    if (inside_ + (at - waiting_.begin()) >= limit_) return false;
    waiting_.erase(at);
    ++inside_;
    return true;
  }
  // The run has drained, or has ended without a turn.
  void Leave(int slot, bool had_turn) {
    base::MutexLock lock(mu_);
    if (had_turn) {
      --inside_;
    } else {
      std::erase(waiting_, slot);
    }
  }

 private:
  int limit_ = 0;
  base::Mutex mu_;
  std::vector<int> waiting_ ABSL_GUARDED_BY(mu_);  // slots, in the order of their turns
  std::ptrdiff_t inside_ ABSL_GUARDED_BY(mu_) = 0;  // runs that have their turn
};

}  // namespace penstock::runtime
