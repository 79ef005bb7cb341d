// HostStages: the threads of a pipeline's host stages.
//
// Ownership: owns the threads; borrows the pipeline's state and its queues.
// Threads:   the thread that makes the pipeline calls Start, the one that closes it Join.
// Errors:    Start returns ResourceExhausted if the system refuses a thread; Join must be called then, too. What a
//            stage's function returns or throws ends the item's stage.
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
  // Joins the threads. PipelineState::ending has told them to end.
  void Join();

 private:
  void Work(size_t stage, int thread);
  absl::Status Call(size_t stage, int thread, PipelineItem& item);
  void End(size_t stage, int item, absl::Status status);

  PipelineState& state_;
  RunQueues& queues_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::runtime
