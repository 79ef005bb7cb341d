// Submitter: submits the commands of a segment, one driver call each: individual nodes, or graphs of them.
//
// Threads:  stateless except for what it points at. The owner of the run's machine submits a slot; submission threads
//           help with partitioned ranges (partition.h).
// Ordering: commands are submitted in order, those of partitioned ranges in the order of each part; lanes and events do
//           the rest.
// Errors:   the first failing call fails the run with its node; nothing after it is submitted.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

enum class Submitted : uint8_t;
struct SubmittedRun;

class Submitter {
 public:
  Submitter(const CompiledGraph& graph, RuntimeCore& runtime) : graph_(graph), runtime_(runtime) {}

  // Submits commands [slot.next_command, end). Returns false if it stopped early: the run has failed, a lane is full,
  // or a Launch node or its capture, the use of a State, memory that is not ready, or (if each node is waited for) any
  // node has to wait. Another call then continues from there.
  bool Submit(RunSlot& slot, int32_t end) const;
  // Submits one command of a partitioned range, on the thread that works on its part. Fails the run itself.
  Submitted SubmitOfPart(RunSlot& slot, int32_t command, driver::CurrentDevice& current) const;
  // Submits the commands that end a run, whatever happened before: without them no thread can tell when its work has
  // ended. So a command that fails is tried once more, and the run fails. Returns the Status of a command that fails
  // again; another call continues from there.
  absl::Status SubmitEpilogue(RunSlot& slot, int32_t end) const;
  // Makes the lanes that touch bound device memory wait for its predecessors' events, as they stand now. Called before
  // the run submits anything else.
  absl::Status WaitForEvents(const RunSlot& slot) const;
  // Has the run's device work begin after that of the run before it, and after the application's stream and events.
  absl::Status BeginInOrder(const RunSlot& slot, const SubmittedRun& previous) const;
  // Whether the runs that it waits for have ended, or this one has failed; a failure of one of them fails it too.
  bool PredecessorsSettled(RunSlot& slot) const;

 private:
  // The first wait of a submission checks all States of the run, so that a run with many does not check all of them for
  // each; later waits check the State's last writer only.
  enum class StateCheck : uint8_t { kAll, kNearest };
  bool SubmitInOrder(RunSlot& slot, int32_t end) const;
  absl::StatusOr<bool> HasRoom(const RunSlot& slot, const ExecCommand& command) const;
  absl::Status DoAndMark(RunSlot& slot, const ExecCommand& command) const;
  absl::Status Do(RunSlot& slot, const ExecCommand& command) const;
  // Returns when a submitted node has ended, with the fault that ended it.
  absl::Status AwaitNode(RunSlot& slot, const ExecCommand& command) const;
  absl::Status DoNode(RunSlot& slot, const ExecCommand& command) const;
  // Called for the first graph of a run: updates the graphs with what has changed since the previous run.
  absl::StatusOr<bool> Update(RunSlot& slot) const;
  absl::Status LaunchGraph(RunSlot& slot, const ExecCommand& command) const;
  absl::StatusOr<bool> WaitForState(RunSlot& slot, const ExecCommand& command, StateCheck check) const;
  absl::StatusOr<bool> WaitUntilReady(RunSlot& slot, const ExecCommand& command) const;

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
};

}  // namespace penstock::runtime
