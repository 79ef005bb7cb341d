// SubmissionTurns: when runs of an executable may submit work to devices. At most so many have work there
// (CompileOptions::max_submitted), and if runs are in order (in_order), each submits all of its work before the next
// begins. The others wait for their turn, in the order in which they have joined.
//
// No deadlock: a run joins in one step with taking its places in the order of its States (state_order.h), and after the
// runs that its bindings wait for have done so. So all that a run waits for, here and there, has joined before.
//
// Threads: thread-safe once Set has been called.
// Locks:   mu_ guards the queue; Join calls `enter` with it held, which takes StateOrder::mu_ and KeyedStates::mu_.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

struct RunSlot;
struct Schedule;

// A run that has had its turn, and what it has submitted; null if it no longer uses its slot.
struct SubmittedRun {
  const RunSlot* slot = nullptr;
  const Schedule* schedule = nullptr;
  const std::vector<driver::Event>* done = nullptr;  // with which it ends
};

class SubmissionTurns {
 public:
  enum class InOrder : bool { kNo, kYes };
  // Called once, before the first launch, with the most runs that may have their turn. If each slot's run may, and runs
  // are not in order, none waits and no other call is needed.
  void Set(int limit, int slots, InOrder in_order) {
    limit_ = limit;
    limited_ = limit < slots;
    in_order_ = in_order == InOrder::kYes;
    base::MutexLock lock(mu_);
    waiting_.reserve(static_cast<size_t>(slots));
  }
  // Whether runs wait for others to end.
  bool limited() const { return limited_; }
  // Whether runs wait for their turn.
  bool used() const { return limited_ || in_order_; }

  // The slot's run waits for its turn from now on, unless `enter` fails.
  template <class F>
  absl::Status Join(int slot, F enter) {
    base::MutexLock lock(mu_);
    absl::Status entered = enter();
    if (entered.ok()) waiting_.push_back(slot);
    return entered;
  }

  // Takes the waiting run's turn if it has come, until Leave. Returns the last run that has begun, if runs are in
  // order, or nothing if the turn has yet to come.
  std::optional<SubmittedRun> Take(int slot) {
    base::MutexLock lock(mu_);
    const auto at = std::find(waiting_.begin(), waiting_.end(), slot);
    const std::ptrdiff_t in_front = at - waiting_.begin();
    if (inside_ + in_front >= limit_) return std::nullopt;
    if (in_order_ && (in_front > 0 || submitting_ >= 0)) return std::nullopt;
    waiting_.erase(at);
    ++inside_;
    if (in_order_) submitting_ = slot;
    return last_run_;
  }
  // The run, which has its turn, begins after the work of the one before, so the next one need only wait for it.
  void Begin(int slot, SubmittedRun run) {
    base::MutexLock lock(mu_);
    last_ = slot;
    last_run_ = run;
  }
  // The run has submitted all that it ever will. Returns whether another may begin because of that.
  bool Submitted(int slot) {
    base::MutexLock lock(mu_);
    if (submitting_ != slot) return false;  // it had no turn
    submitting_ = -1;
    return !waiting_.empty();
  }
  // The run has drained, or has ended without a turn.
  void Leave(int slot, bool had_turn) {
    base::MutexLock lock(mu_);
    if (!had_turn) {
      std::erase(waiting_, slot);
      return;
    }
    --inside_;
    if (submitting_ == slot) submitting_ = -1;
    if (last_ != slot) return;
    last_ = -1;
    last_run_ = {};
  }

 private:
  int limit_ = 0;
  bool limited_ = false, in_order_ = false;
  base::Mutex mu_;
  std::vector<int> waiting_ ABSL_GUARDED_BY(mu_);  // slots, in the order of their turns
  std::ptrdiff_t inside_ ABSL_GUARDED_BY(mu_) = 0;  // runs that have their turn
  // If runs are in order: the slots of the run that has yet to submit work and of the last one that has begun.
  int submitting_ ABSL_GUARDED_BY(mu_) = -1, last_ ABSL_GUARDED_BY(mu_) = -1;
  SubmittedRun last_run_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
