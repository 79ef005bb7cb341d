// HostProgress: which host steps and segments of a run may begin, by counting what each of them still waits for.
//
// Compile finds once what waits for what (HostWaits), and a run counts down. A step that ends therefore costs as much
// as waits for it, however many steps there are, and nothing is allocated.
//
// Events are checked lane by lane in recording order: those after an incomplete one are incomplete too. A check thus
// queries at most one incomplete event on each lane.
//
// Ownership: borrows the program and, from Begin on, the schedule.
// Threads:   the thread that ran a step calls End, any thread work_left; the owner of the run's machine calls the rest.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/runtime/program/program.h"
#include "src/runtime/run/ended_list.h"

namespace penstock::runtime {

class HostProgress {
 public:
  explicit HostProgress(const Program& program);

  // Begins a run of that schedule. `work`: the number of host steps that have something to do.
  void Begin(const Schedule& schedule, int32_t work);

  // A step has run, or its worker skipped it; `counted`: whether Begin counted it. Do not touch the slot after this.
  void End(int32_t step, bool counted);
  // How many steps with something to do have not ended. Sequentially consistent, like RunCore::followed_.
  int32_t work_left() const { return work_left_.load(std::memory_order_seq_cst); }

  // Takes the steps that have ended and releases those that waited for them.
  void TakeEnded();
  // The same for a step that ends without a worker.
  void Settle(int32_t step);
  // The steps that have not begun never will: call SkipAll once, then Skip for each of them. `counted` is as for End.
  void SkipAll() { skips_ = true; }
  void Skip(bool counted);
  bool skips() const { return skips_; }
  bool all_settled() const { return left_ == 0; }

  bool MayBegin(int32_t segment) const { return segment_waits_[segment] == 0; }

  // Calls `is_complete` with the events recorded by segments before `submitted`, on each lane until it returns false.
  template <class F>
  void LookAtEvents(int32_t submitted, F&& is_complete);

  // A task (Program::hosts) that no longer waits for anything and has not been returned yet; -1: none.
  int32_t TakeFresh() { return Pop(fresh_); }
  // Keeps a task that waits for a worker from now on.
  void Keep(int32_t task) { Append(kept_, task); }
  bool keeps() const { return kept_.first >= 0; }
  // Calls `begin` with the kept tasks, in the order in which they were kept, until it has refused `most` of them.
  // `begin` returns true if it has begun the task.
  template <class F>
  void BeginKept(int most, F&& begin);

 private:
  struct List {
    int32_t first = -1, last = -1;
  };
  void Append(List& list, int32_t task);
  int32_t Pop(List& list);
  void LetGo(std::span<const int32_t> tasks);

  const HostWaits& waits_;
  const Schedule* schedule_ = nullptr;
  EndedList<> ended_;
  std::atomic<int32_t> work_left_{0};  // host steps with something to do that have not ended
  std::vector<int32_t> step_waits_, segment_waits_;  // the number of steps and events that each waits for
  std::vector<int32_t> events_seen_;  // for each row of Schedule::watched: how many of its events are complete
  std::vector<int32_t> next_;  // for each task on a list
  List fresh_, kept_;
  int32_t left_ = 0;  // steps that have not ended, or whose end has not been taken
  bool skips_ = false;
};

template <class F>
void HostProgress::LookAtEvents(int32_t submitted, F&& is_complete) {
  for (size_t l = 0; l < schedule_->watched.size(); ++l) {
    const std::vector<WatchedEvent>& events = schedule_->watched[l];
    for (int32_t& seen = events_seen_[l]; static_cast<size_t>(seen) < events.size(); ++seen) {
      const WatchedEvent& next = events[seen];
      if (next.segment >= submitted || !is_complete(next.event)) break;
      LetGo(waits_.after_event[next.event]);
    }
  }
}

template <class F>
void HostProgress::BeginKept(int most, F&& begin) {
  int32_t before = -1;
  for (int32_t task = kept_.first; task >= 0 && most > 0;) {
    const int32_t next = next_[task];
    if (begin(task)) {  // it may have ended by now, but not been taken: it is on no list
      (before < 0 ? kept_.first : next_[before]) = next;
      if (next < 0) kept_.last = before;
    } else {
      before = task;
      --most;
    }
    task = next;
  }
}

}  // namespace penstock::runtime
