// How threads wait in a pipeline, and where they may not.
//
// Threads: InsideScope is of the thread that makes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {

// Marks a thread that is in the source, sink or reset function of a pipeline.
class InsideScope {
 public:
  explicit InsideScope(const PipelineCore* core) : before_(std::exchange(inside_, core)) {}
  ~InsideScope() { inside_ = before_; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;
  static const PipelineCore* current() { return inside_; }

 private:
  static inline thread_local const PipelineCore* inside_ = nullptr;
  const PipelineCore* const before_;
};

// With CUDA devices a thread polls while there is something to be seen of them, and else sleeps on the event count. Who
// polls has no news: its notes would keep a host stage's thread that owns a feed there for as long as it polls.
template <class Step>
bool PipelineCore::WaitFor(Deadline deadline, Step step) {
  struct Waiting {
    explicit Waiting(std::atomic<int>& c) : count(c) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
    std::atomic<int>& count;
  } waiting(waiting_);
  for (;;) {
    bool done = false;
    const bool polls = Polls();
    const host::TimePoint due = ItemDue(), left_due = LeftDue();
    host::WaitForProgress(
        runtime_->event_count(), !polls, std::min(std::min(deadline.at(), due), left_due),
        [&] {
          Pump(/*news=*/!polls);
          done = step();
          return done || TakeOver() || Polls() != polls || ItemDue() < due || LeftDue() < left_due;
        },
        host::kCallerPollBeforeSleep);
    if (done) return true;
    if (deadline.passed()) return false;
  }
}

}  // namespace penstock::runtime
