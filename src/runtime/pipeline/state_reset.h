// StateReset: the thread of a pipeline that resets poisoned States and reports progress with the functions in its
// options. It exists if there is such a function.
//
// Ownership: owns the thread; borrows the rest of the pipeline.
// Threads:   the thread that makes the pipeline calls Start, the one that closes it Join.
// Errors:    Start returns ResourceExhausted if the system refuses the thread. A reset that fails fails the pipeline.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "src/runtime/pipeline/pipeline_state.h"
#include "src/runtime/pipeline/run_queue.h"

namespace penstock::runtime {

class PipelineCore;

class StateReset {
 public:
  // `core`: the pipeline whose functions are called (waiting.h); `stats`: what the progress function is given.
  StateReset(PipelineState& state, RunQueues& queues, const PipelineCore* core, std::function<PipelineStats()> stats)
      : state_(state), queues_(queues), core_(core), stats_(std::move(stats)) {}
  StateReset(const StateReset&) = delete;
  StateReset& operator=(const StateReset&) = delete;

  absl::Status Start();
  // PipelineState::ending has told the thread to end.
  void Join();

 private:
  using Clock = PipelineState::Clock;

  void Serve();
  bool MayReset() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void Reset();

  PipelineState& state_;
  RunQueues& queues_;
  const PipelineCore* const core_;
  const std::function<PipelineStats()> stats_;
  std::thread thread_;
};

}  // namespace penstock::runtime
