// Submitter: submits the commands of a segment, one driver call each: nodes one by one, or graphs of them.
//
// Threads:  stateless but for what it points at; a slot is submitted by the owner of its run's machine, whom submission
//           threads help with ranges that are partitioned (partition.h).
// Ordering: commands are submitted in order, those of split ranges in the order of each part; lanes and events do the
//           rest.
// Errors:   the first failing call fails the run with the node it belongs to; nothing after it is submitted.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

enum class Submitted : uint8_t;

class Submitter {
 public:
  Submitter(const CompiledGraph& graph, RuntimeCore& runtime) : graph_(graph), runtime_(runtime) {}

  // Submits commands [slot.next_command, end). False when it stopped before: the run has failed, or a lane holds as
  // many commands as it may, or a foreign launch or capture, the use of a State, memory that is not ready, or any node
  // where each is waited for must wait for its turn (then calling again goes on there).
  bool Submit(RunSlot& slot, int32_t end) const;
  // One command of a split range, by who works on its part. Fails the run itself.
  Submitted SubmitOfPart(RunSlot& slot, int32_t command, driver::CurrentDevice& current) const;
  // The same for the commands that end a run, which are submitted whatever happened before: without them nobody can
  // tell when its work has ended, so one that fails is tried once more, and the run fails. The Status of one that fails
  // again; calling again goes on from there.
  absl::Status SubmitEpilogue(RunSlot& slot, int32_t end) const;
  // Makes the lanes that touch device memory which is bound wait for the events of its predecessors, as they stand now:
  // before all else the run submits.
  absl::Status WaitForEvents(const RunSlot& slot) const;
  // Whether the runs it comes behind have ended, or this one has failed: one of them that has fails it too.
  bool PredecessorsSettled(RunSlot& slot) const;

 private:
  bool SubmitInOrder(RunSlot& slot, int32_t end) const;
  absl::StatusOr<bool> HasRoom(const RunSlot& slot, const ExecCommand& command) const;
  absl::Status DoAndMark(RunSlot& slot, const ExecCommand& command) const;
  absl::Status Do(RunSlot& slot, const ExecCommand& command) const;
  // Returns when a submitted node has ended, with the fault that ended it.
  absl::Status AwaitNode(RunSlot& slot, const ExecCommand& command) const;
  absl::Status DoNode(RunSlot& slot, const ExecCommand& command) const;
  // Of the first graph of a run: gives the graphs what this run has that the one before had not.
  absl::StatusOr<bool> Update(RunSlot& slot) const;
  absl::Status LaunchGraph(RunSlot& slot, const ExecCommand& command) const;
  absl::StatusOr<bool> WaitForState(RunSlot& slot, const ExecCommand& command, bool& judged) const;
  absl::StatusOr<bool> WaitUntilReady(RunSlot& slot, const ExecCommand& command) const;

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
};

}  // namespace penstock::runtime
