// StreamExecutor: submits the commands of a segment, one driver call each: nodes one by one, or graphs of them.
//
// Threads:  stateless but for what it points at; a slot is submitted by the owner of its run's machine, whom submission
// threads
//           help with ranges that are split (partition.h).
// Ordering: commands are submitted in order, those of split ranges in the order of each part; lanes and events do the
//           rest.
// Errors:   the first failing call fails the run with the node it belongs to; nothing after it is submitted.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/driver/current_device.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class ExecutableCore;
enum class Submitted : uint8_t;

class StreamExecutor {
 public:
  explicit StreamExecutor(ExecutableCore& core) : core_(core) {}

  // Submits commands [slot.next_command, end). False when it stopped before: the run has failed, or a lane holds as
  // many commands as it may, or a foreign launch or capture, the use of a State, memory that is not ready, or any node
  // where each is waited for must wait for its turn (then calling again goes on there).
  bool Submit(Slot& slot, int32_t end);
  // One command of a split range, by who works on its part. Fails the run itself.
  Submitted SubmitOfPart(Slot& slot, int32_t command, driver::CurrentDevice& current);
  // The same for the commands that end a run, which are submitted whatever happened before: without them nobody can
  // tell when its work has ended, so one that fails is tried once more, and the run fails. The Status of one that fails
  // again; calling again goes on from there.
  absl::Status SubmitEpilogue(Slot& slot, int32_t end);
  // Makes the lanes that touch device memory which is bound wait for Slot::events_ahead, as they stand now: before all
  // else the run submits.
  absl::Status WaitForEvents(const Slot& slot);
  // Whether the runs it comes behind have ended, or this one has failed: one of them that has fails it too.
  bool PredecessorsSettled(Slot& slot);

 private:
  bool SubmitInOrder(Slot& slot, int32_t end);
  absl::StatusOr<bool> HasRoom(const Slot& slot, const ExecCommand& command);
  absl::Status DoAndMark(Slot& slot, const ExecCommand& command);
  absl::Status Do(Slot& slot, const ExecCommand& command);
  // Returns when a submitted node has ended, with the fault that ended it.
  absl::Status AwaitNode(Slot& slot, const ExecCommand& command);
  absl::Status DoNode(Slot& slot, const ExecCommand& command);
  // Of the first graph of a run: gives the graphs what this run has that the one before had not.
  absl::StatusOr<bool> Update(Slot& slot);
  absl::Status LaunchGraph(Slot& slot, const ExecCommand& command);
  absl::StatusOr<bool> WaitForState(Slot& slot, const ExecCommand& command, bool& judged);
  absl::StatusOr<bool> WaitUntilReady(Slot& slot, const ExecCommand& command);

  ExecutableCore& core_;
};

}  // namespace penstock::runtime
