#include "src/runtime/run/submitter.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/host/progress.h"
#include "src/runtime/calls/launch_call.h"
#include "src/runtime/run/parallel_submission.h"
#include "src/runtime/run/partition_progress.h"
#include "src/runtime/run/submission_turns.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;
using FlowControl = ExecCommand::FlowControl;

// The entries of one external_dep; the list is sorted by it.
template <class Entry>
auto OfArrival(const std::vector<Entry>& list, int32_t external_dep) {
  const auto from = [&](int32_t at) {
    return std::partition_point(list.begin(), list.end(), [&](const Entry& entry) { return entry.external_dep < at; });
  };
  return std::pair(from(external_dep), from(external_dep + 1));
}

}  // namespace

bool Submitter::Submit(RunSlot& slot, int32_t end) const {
  const std::vector<LanePartition>& partitions = slot.schedule->partitions;
  const auto first = std::partition_point(partitions.begin(), partitions.end(), [&](const LanePartition& split) {
    return split.end <= slot.progress.next_command;
  });
  for (auto i = static_cast<size_t>(first - partitions.begin()); i < partitions.size() && partitions[i].end <= end;
       ++i) {
    if (partitions[i].awaits_external && !slot.predecessors.runs.empty()) continue;  // in order, by what comes next
    if (!SubmitInOrder(slot, partitions[i].begin)) return false;
    const SubmitResult driven = slot.partitions[i]->SubmitAll();
    slot.progress.lane_full = driven == SubmitResult::kFull;
    if (driven != SubmitResult::kAll) return false;
    slot.progress.next_command = partitions[i].end;
  }
  return SubmitInOrder(slot, end);
}

bool Submitter::SubmitInOrder(RunSlot& slot, int32_t end) const {
  driver::CurrentDevice current(graph_.driver());
  const std::vector<ExecCommand>& commands = slot.schedule->commands;
  StateCheck check = StateCheck::kAll;
  for (; slot.progress.next_command < end; ++slot.progress.next_command) {
    const ExecCommand& command = commands[slot.progress.next_command];
    if (command.op == Op::kWaitExternal && slot.predecessors.runs.empty()) continue;  // one for each bound buffer
    // A State keeps what is written to it, so the run writes nothing before what it reads is known to be sound.
    if (command.op == Op::kStateWrite && !PredecessorsSettled(slot)) return false;
    if (slot.fault.failed()) return false;  // cancelled, or failed by what was submitted before
    current.Set(graph_.local_device_of_lane(command.lane));
    if (command.flow == FlowControl::kWaitAndRecord) {
      const absl::StatusOr<bool> room = HasRoom(slot, command);
      if (!room.ok()) slot.fault.Fail(-1, room.status());
      slot.progress.lane_full = room.ok() && !*room;
      if (!room.ok() || !*room) return false;
    }
    if (command.op == Op::kStateWait || command.op == Op::kWaitExternal) {
      const absl::StatusOr<bool> passed =
          command.op == Op::kStateWait ? WaitForState(slot, command, check) : WaitUntilReady(slot, command);
      if (!passed.ok()) slot.fault.Fail(-1, passed.status());
      if (!passed.ok() || !*passed) return false;
      if (command.op == Op::kStateWait) check = StateCheck::kNearest;
      continue;
    }
    if (command.op == Op::kGraph && command.index == 0) {
      const absl::StatusOr<bool> updated = Update(slot);
      if (!updated.ok() || !*updated) return false;
    }
    const bool awaited = runtime_.synchronous() && command.node >= 0;
    if (awaited && !runtime_.EnterSync()) return false;
    const bool entered = command.op != Op::kLaunch || graph_.EnterGate(command.node);
    absl::Status status = entered ? DoAndMark(slot, command) : absl::OkStatus();
    if (command.op == Op::kLaunch && entered) graph_.LeaveGate(command.node);
    if (awaited) {
      if (status.ok() && entered) status = AwaitNode(slot, command);
      runtime_.LeaveSync();
    }
    if (!entered) return false;
    if (!status.ok()) {
      // An asynchronous fault surfaces in some later call, unless each node was waited for.
      slot.fault.Fail(base::IsFatal(status) && !awaited ? NodeId() : command.node, status);
      return false;
    }
  }
  return true;
}

Submitted Submitter::SubmitOfPart(RunSlot& slot, int32_t at, driver::CurrentDevice& current) const {
  if (slot.fault.failed()) return Submitted::kFailed;
  const ExecCommand& command = slot.schedule->commands[at];
  current.Set(graph_.local_device_of_lane(command.lane));
  if (command.flow == FlowControl::kWaitAndRecord) {
    const absl::StatusOr<bool> room = HasRoom(slot, command);
    if (!room.ok()) slot.fault.Fail(-1, room.status());
    if (!room.ok() || !*room) return room.ok() ? Submitted::kFull : Submitted::kFailed;
  }
  const absl::Status status = DoAndMark(slot, command);
  if (status.ok()) return Submitted::kDone;
  slot.fault.Fail(base::IsFatal(status) ? NodeId() : command.node, status);  // any command's fault, see SubmitInOrder
  return Submitted::kFailed;
}

absl::StatusOr<bool> Submitter::HasRoom(const RunSlot& slot, const ExecCommand& command) const {
  return graph_.driver().Query(slot.queues.marks[command.lane]);
}

absl::Status Submitter::DoAndMark(RunSlot& slot, const ExecCommand& command) const {
  absl::Status status = Do(slot, command);
  if (!status.ok() || command.flow == FlowControl::kNone) return status;
  const LaneId lane = command.lane;
  return graph_.driver().Record(slot.queues.marks[lane], slot.queues.streams[lane]);
}

absl::Status Submitter::SubmitEpilogue(RunSlot& slot, int32_t end) const {
  driver::CurrentDevice current(graph_.driver());
  const std::vector<ExecCommand>& commands = slot.schedule->commands;
  for (; slot.progress.next_command < end; ++slot.progress.next_command) {
    const ExecCommand& command = commands[slot.progress.next_command];
    current.Set(graph_.local_device_of_lane(command.lane));
    absl::Status status = Do(slot, command);
    if (!status.ok()) {
      slot.fault.Fail(-1, status);
      status = Do(slot, command);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Submitter::Do(RunSlot& slot, const ExecCommand& command) const {
  driver::Driver& driver = graph_.driver();
  const driver::Stream stream = slot.queues.streams[command.lane];
  const int32_t index = command.index;
  switch (command.op) {
    case Op::kRecord: return driver.Record(slot.queues.events().all[index], stream);
    case Op::kWait: return driver.Wait(stream, slot.queues.events().all[index]);
    case Op::kStateWrite: slot.ticket.places[index].written.store(true, std::memory_order_release); return {};
    case Op::kStateDone:
      if (runtime_.states().Submitted(slot.ticket.places[index])) runtime_.event_count().Notify();
      return absl::OkStatus();
    case Op::kGraph: return LaunchGraph(slot, command);
    default: break;
  }
  const SlotQueues::Events& events = slot.queues.events();
  if (events.begin_timing.empty()) return DoNode(slot, command);
  PENSTOCK_RETURN_IF_ERROR(driver.Record(events.begin_timing[command.node], stream));
  PENSTOCK_RETURN_IF_ERROR(DoNode(slot, command));
  return driver.Record(events.end_timing[command.node], stream);
}

// Returns false if a user that this run waits for has yet to submit uses of the State. A user that fails and leaves the
// order poisons the State first, so the verdict is read once no such user is left.
absl::StatusOr<bool> Submitter::WaitForState(RunSlot& slot, const ExecCommand& command, StateCheck check) const {
  StateOrder& order = runtime_.states();
  const StatePlace& place = slot.ticket.places[command.index];
  const driver::Stream stream = slot.queues.streams[command.lane];
  const auto verdict = [&] {
    return std::exchange(check, StateCheck::kNearest) == StateCheck::kNearest ? order.NearestVerdict(place)
                                                                              : order.Verdict(slot.ticket);
  };
  uint64_t below = UINT64_MAX;
  while (const auto ahead = order.LookAhead(place, below)) {
    PENSTOCK_RETURN_IF_ERROR(slot.queues.state_waits.Begin(command.index, command.lane, stream));
    if (!ahead->submitted) {
      PENSTOCK_RETURN_IF_ERROR(verdict());
      if (ahead->core == nullptr && StateCore::Of(place.queue->record).TakeBack()) continue;
      return false;
    }
    for (const driver::Event event : *ahead->done) PENSTOCK_RETURN_IF_ERROR(graph_.driver().Wait(stream, event));
    below = ahead->serial;
  }
  PENSTOCK_RETURN_IF_ERROR(slot.queues.state_waits.End(command.index, command.lane, stream));
  PENSTOCK_RETURN_IF_ERROR(verdict());
  return true;
}

// Returns false if a run that it waits for has not submitted all of its work.
absl::StatusOr<bool> Submitter::WaitUntilReady(RunSlot& slot, const ExecCommand& command) const {
  const driver::Stream stream = slot.queues.streams[command.lane];
  const auto [first, last] = OfArrival(slot.predecessors.runs, command.index);
  for (const RunPredecessor& ahead : std::ranges::subrange(first, last)) {
    PENSTOCK_ASSIGN_OR_RETURN(const Predecessor::Tail tail, ahead.run->LookAtTail());
    if (!tail.submitted) return false;
    if (tail.ended) continue;
    for (const driver::Event event : *tail.done) PENSTOCK_RETURN_IF_ERROR(graph_.driver().Wait(stream, event));
  }
  return true;
}

bool Submitter::PredecessorsSettled(RunSlot& slot) const {
  for (; slot.predecessors.runs_ended < slot.predecessors.runs.size(); ++slot.predecessors.runs_ended) {
    if (slot.fault.failed()) return true;
    const absl::StatusOr<Predecessor::Tail> tail =
        slot.predecessors.runs[slot.predecessors.runs_ended].run->LookAtTail();
    if (!tail.ok()) {
      slot.fault.Fail(-1, tail.status());
    } else if (!tail->ended) {
      return false;
    }
  }
  return true;
}

absl::Status Submitter::WaitForEvents(const RunSlot& slot) const {
  driver::CurrentDevice current(graph_.driver());
  for (const EventPredecessor& ahead : slot.predecessors.events) {
    const auto [first, last] = OfArrival(slot.schedule->external_dep_lanes, ahead.external_dep);
    for (const ExternalDepLane& to : std::ranges::subrange(first, last)) {
      current.Set(graph_.local_device_of_lane(to.lane));
      PENSTOCK_RETURN_IF_ERROR(graph_.driver().WaitNative(slot.queues.streams[to.lane], ahead.event));
    }
  }
  return absl::OkStatus();
}

// If all work of both runs is in one stream, that keeps the order.
absl::Status Submitter::BeginInOrder(const RunSlot& slot, const SubmittedRun& previous) const {
  driver::CurrentDevice current(graph_.driver());
  const std::vector<LaneId>& lanes = slot.schedule->lanes;
  const auto same_stream = [&] {
    return lanes.size() == 1 && lanes == previous.schedule->lanes &&
           slot.queues.streams[lanes[0]] == previous.slot->queues.streams[lanes[0]];
  };
  const bool queued = previous.slot == nullptr || same_stream();
  for (const LaneId lane : lanes) {
    current.Set(graph_.local_device_of_lane(lane));
    const driver::Stream stream = slot.queues.streams[lane];
    if (slot.predecessors.stream) {
      PENSTOCK_RETURN_IF_ERROR(graph_.driver().Wait(stream, slot.predecessors.stream));
    }
    if (queued) continue;
    for (const driver::Event event : *previous.done) {
      PENSTOCK_RETURN_IF_ERROR(graph_.driver().Wait(stream, event));
    }
  }
  return WaitForEvents(slot);
}

absl::Status Submitter::AwaitNode(RunSlot& slot, const ExecCommand& command) const {
  driver::Driver& driver = graph_.driver();
  const driver::Event event = slot.queues.sync_events[command.lane];
  PENSTOCK_RETURN_IF_ERROR(driver.Record(event, slot.queues.streams[command.lane]));
  absl::Status status;
  const bool ended =
      host::WaitForProgress(runtime_.event_count(), driver.notifies_completion(), slot.progress.deadline, [&] {
        const absl::StatusOr<bool> complete = driver.Query(event);
        status = complete.status();
        return !complete.ok() || *complete || slot.fault.failed();
      });
  return ended ? status : absl::DeadlineExceededError("the run's deadline passed before this node ended");
}

absl::Status Submitter::DoNode(RunSlot& slot, const ExecCommand& command) const {
  driver::Driver& driver = graph_.driver();
  const driver::Stream stream = slot.queues.streams[command.lane];
  const int32_t index = command.index;
  switch (command.op) {
    case Op::kCopy:
      return slot.tables.copies_disabled[index] ? absl::OkStatus() : driver.Copy(stream, slot.tables.copies[index]);
    case Op::kBatch:
      return slot.tables.batches[index].count == 0 ? absl::OkStatus()
                                                   : driver.CopyBatch(stream, slot.tables.batches[index]);
    case Op::kFill: return driver.Fill(stream, slot.tables.fills[index]);
    case Op::kLaunch: return CallLaunch(graph_, slot, slot.launch[command.lane], command.index);
    case Op::kHostcall: return driver.Launch(stream, slot.hostcalls.own()->op(command.index));
    case Op::kConditional: return slot.constructs[static_cast<size_t>(index)]->Launch(stream);
    case Op::kNone: return absl::OkStatus();
    default: break;
  }
  const driver::KernelOp& op = slot.tables.kernels[index];
  return op.rows == 0 ? absl::OkStatus() : driver.Launch(stream, op);
}

// Fails the run itself. Returns false if a callable to be captured is being called elsewhere.
absl::StatusOr<bool> Submitter::Update(RunSlot& slot) const {
  absl::StatusOr<bool> updated = slot.replay->Capture();
  if (updated.ok() && *updated) {
    if (const absl::Status set = slot.replay->Update(); !set.ok()) updated = set;
  }
  if (updated.ok()) return updated;
  absl::Status failure = updated.status();
  const int32_t node = base::TakeNode(failure);
  slot.fault.Fail(base::IsFatal(failure) ? -1 : node, failure);
  return failure;
}

absl::Status Submitter::LaunchGraph(RunSlot& slot, const ExecCommand& command) const {
  const absl::Status launched = slot.replay->Launch(command.index, slot.queues.streams[command.lane]);
  const bool its_own = !launched.ok() && !base::IsFatal(launched);
  return its_own ? base::Prefixed(graph_.TextOfGraph(command.index), launched) : launched;
}

}  // namespace penstock::runtime
