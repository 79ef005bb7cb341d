// WaitAndPump: how a thread waits in a call of a pipeline. It pushes the pipeline on meanwhile.
//
// Threads: thread-safe; several may wait at once.
#pragma once

#include <algorithm>
#include <atomic>

#include "penstock/deadline.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/pipeline_state.h"
#include "src/runtime/pipeline/run_queue.h"

namespace penstock::runtime {

// Calls `step` until it returns true (returns true) or the deadline has passed (returns false).
//
// With CUDA devices a thread polls while there is something to check on them, and otherwise sleeps on the event count.
// A polling thread leaves no rerun requests: these would keep a host stage's thread that owns a queue there for as long
// as it polls.
template <class Step>
bool WaitAndPump(PipelineState& state, RunQueues& queues, Deadline deadline, Step step) {
  struct Waiting {
    explicit Waiting(std::atomic<int>& c) : count(c) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
    std::atomic<int>& count;
  } waiting(state.activity.waiting);
  RuntimeCore& runtime = state.runtime();
  const auto polls_now = [&] { return !runtime.notifies_completion() && queues.Busy(); };
  for (;;) {
    bool done = false;
    const bool polls = polls_now();
    const host::TimePoint due = state.ItemDue(), left_due = queues.LeftDue();
    host::WaitForProgress(
        runtime.event_count(), !polls, std::min(std::min(deadline.at(), due), left_due),
        [&] {
          polls ? queues.PumpUnowned() : queues.Pump();
          done = step();
          return done || queues.BeginLeft() || polls_now() != polls || state.ItemDue() < due ||
                 queues.LeftDue() < left_due;
        },
        host::kCallerPollBeforeSleep);
    if (done) return true;
    if (deadline.passed()) return false;
  }
}

}  // namespace penstock::runtime
