// StateReset: the thread of a pipeline that resets poisoned States and tells of progress, by the functions of its
// options. It exists where there is one of them.
//
// Ownership: owns the thread; borrows the rest of the pipeline.
// Threads:   Start by the thread that makes the pipeline, Join by the one that closes it.
// Errors:    Start: ResourceExhausted where the system refuses the thread. A reset that fails fails the pipeline.
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
  // `core`: whose functions are called (waiting.h); `stats`: what progress is told.
  StateReset(PipelineState& state, RunQueues& queues, const PipelineCore* core, std::function<PipelineStats()> stats)
      : state_(state), queues_(queues), core_(core), stats_(std::move(stats)) {}
  StateReset(const StateReset&) = delete;
  StateReset& operator=(const StateReset&) = delete;

  absl::Status Start();
  // PipelineState::ending says that it is to end.
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
