// Lists host steps and their waits. See host_step_builder.h.
#include "src/runtime/program/host_step_builder.h"

#include <algorithm>
#include <utility>

#include "src/runtime/program/tuning.h"

namespace penstock::runtime {
namespace {

using graph::PlanKind;

template <class I>
void CountInto(Table<I, int32_t>& counts, const graph::CsrRows& rows) {
  for (int32_t row = 0; row < rows.rows(); ++row) {
    for (const int32_t item : rows[row]) ++counts[item];
  }
}

}  // namespace

void HostStepBuilder::AddSteps() {
  HostStepId task;  // the first step of the task that others may join
  int64_t bytes = 0;  // that the task copies
  for (const graph::HostStep& step : options_.plan.host_steps) {
    if (step.joins) {
      ++program_.hosts[task].steps;
    } else {
      task = program_.hosts.next();
      bytes = 0;
    }
    program_.hosts.push_back(EntryOf(step));
    bytes += BytesOf(step, program_.hosts.back());
    program_.hosts[task].runs_inline = bytes <= tuning::kMostInlineCopyBytes;
  }
  FindWaits();
  FindWatched(program_.stream);
  FindWatched(program_.graphs);
}

HostEntry HostStepBuilder::EntryOf(const graph::HostStep& step) {
  const graph::PlanNode& node = options_.plan.nodes[step.node];
  if (node.kind == PlanKind::kHost) return {.call = ops_[step.node].index};
  if (node.kind == PlanKind::kControl) return {.control = controls_++};
  const auto on_device = [&](InstanceId i) { return options_.plan.instances[i].device >= 0; };
  const bool staged = on_device(node.src) || on_device(node.dst);
  const bool cuda = std::find(options_.cuda.begin(), options_.cuda.end(), true) != options_.cuda.end();
  return {.steps = step.joins ? 0 : 1,
          .copy = boxes_.CopyOf(step.node),
          .ring = staged ? program_.staged_copies++ : -1,
          .past_caches = cuda && node.kind == PlanKind::kStageIn};
}

// The bytes that a step copies within host memory. Every other step counts as more than a task may copy inline.
int64_t HostStepBuilder::BytesOf(const graph::HostStep& step, const HostEntry& entry) const {
  if (!entry.copies() || entry.ring >= 0) return tuning::kMostInlineCopyBytes + 1;
  return graph::MostBytes(options_.plan, options_.plan.nodes[step.node]);
}

// A step that joins a task waits only for the step before it; the same worker continues with it.
void HostStepBuilder::FindWaits() {
  const Table<HostStepId, graph::HostStep>& host_steps = options_.plan.host_steps;
  const Table<SegmentId, graph::Segment>& all_segments = options_.plan.segments;
  HostWaits& waits = program_.host_waits;
  std::vector<graph::Edge> steps, events, segments;
  for (const HostStepId s : host_steps.ids()) {
    for (const HostStepId step : host_steps[s].after_hosts) steps.push_back({s, step});
    for (const EventId event : host_steps[s].after_events) events.push_back({s, event});
  }
  for (const SegmentId s : all_segments.ids()) {
    for (const HostStepId step : all_segments[s].after_hosts) segments.push_back({s, step});
  }
  waits.after_step = graph::MakeEdges(host_steps.count(), steps);
  waits.segments_after = graph::MakeEdges(host_steps.count(), segments);
  waits.after_event = graph::MakeEdges(options_.plan.events.count(), events);
  waits.of_step.resize(host_steps.size());
  waits.of_segment.resize(all_segments.size());
  CountInto(waits.of_step, waits.after_step);
  CountInto(waits.of_step, waits.after_event);
  CountInto(waits.of_segment, waits.segments_after);
  for (const HostStepId s : host_steps.ids()) {
    if (!host_steps[s].joins && waits.of_step[s] == 0) waits.first.push_back(s);
  }
}

void HostStepBuilder::FindWatched(Schedule& schedule) const {
  Table<LaneId, std::vector<WatchedEvent>> of_lane(options_.plan.lanes.size());
  for (const SegmentId s : schedule.segments.ids()) {
    for (CommandId c = schedule.segments[s].begin; c < schedule.segments[s].end; ++c) {
      const ExecCommand& command = schedule.commands[c];
      if (command.op != ExecCommand::Op::kRecord || program_.host_waits.after_event[command.index].empty()) continue;
      of_lane[command.lane].push_back({command.index, s});
    }
  }
  for (std::vector<WatchedEvent>& events : of_lane) {
    if (!events.empty()) schedule.watched.push_back(std::move(events));
  }
}

}  // namespace penstock::runtime
