// HostStages: the threads of a pipeline's host stages.
//
// Ownership: owns the threads; borrows the pipeline's state and its queues.
// Threads:   Start by the thread that makes the pipeline, End by the one that closes it.
// Errors:    Start: ResourceExhausted where the system refuses a thread; End is to be called then, too. What a stage's
//            function returns or throws ends the item's stage.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "src/runtime/pipeline/pipeline_state.h"
#include "src/runtime/pipeline/run_queue.h"

namespace penstock::runtime {

class HostStages {
 public:
  HostStages(PipelineState& state, RunQueues& queues) : state_(state), queues_(queues) {}
  HostStages(const HostStages&) = delete;
  HostStages& operator=(const HostStages&) = delete;

  absl::Status Start();
  // Joins them. PipelineState::ending says that they are to end.
  void Join();

 private:
  void Work(size_t stage);
  void End(size_t stage, int item, absl::Status status);

  PipelineState& state_;
  RunQueues& queues_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::runtime
