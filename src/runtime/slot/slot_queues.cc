#include "src/runtime/slot/slot_queues.h"

#include <utility>

#include "penstock/status_macros.h"

namespace penstock::runtime {

SlotQueues::~SlotQueues() {
  const graph::Plan& plan = graph.plan();
  const auto driver_of = [&](DeviceId device) { return graph.device(device).driver; };
  for (const driver::Event event : stream_events) {
    if (event) graph.driver().DestroyEvent(event);
  }
  for (const driver::Event event : of_streams_.all) {
    if (event) graph.driver().DestroyEvent(event);
  }
  for (const EventId e : of_graphs_.all.ids()) {
    if (of_graphs_.all[e] && of_graphs_.all[e] != of_streams_.all[e]) graph.driver().DestroyEvent(of_graphs_.all[e]);
  }
  for (const auto* of_lanes : {&sync_events, &marks}) {
    for (const LaneId l : of_lanes->ids()) {
      if ((*of_lanes)[l]) driver_of(plan.lanes[l].device)->DestroyEvent((*of_lanes)[l]);
    }
  }
  for (const auto* timing :
       {&of_streams_.begin_timing, &of_streams_.end_timing, &of_graphs_.begin_timing, &of_graphs_.end_timing}) {
    for (const driver::Event event : *timing) {
      if (event) graph.driver().DestroyEvent(event);
    }
  }
}

absl::Status SlotQueues::Make(const SlotDevices& devices, SyncEvents sync) {
  streams = devices.streams();
  const graph::Plan& plan = graph.plan();
  const Program& program = graph.program();
  for (const LaneId l : plan.lanes.ids()) {
    const driver::DeviceRef& d = graph.device(plan.lanes[l].device);
    const bool used = program.used_lanes[l];
    for (const auto& [of_lanes, wanted] : {std::pair(&sync_events, used && sync == SyncEvents::kPerLane),
                                           std::pair(&marks, bool{program.marked_lanes[l]})}) {
      of_lanes->emplace_back();
      if (wanted) {
        PENSTOCK_ASSIGN_OR_RETURN(of_lanes->back(), d.driver->CreateEvent(d.local, false));
      }
    }
  }
  PENSTOCK_RETURN_IF_ERROR(MakeEvents());
  return graph.trace() == nullptr ? absl::OkStatus() : MakeTiming();
}

absl::Status SlotQueues::MakeEvents() {
  const graph::Plan& plan = graph.plan();
  const Program& program = graph.program();
  const bool graphs = !program.graphs.commands.empty();
  of_streams_.all.resize(plan.events.size());
  of_graphs_.all.resize(plan.events.size());
  for (const EventId e : plan.events.ids()) {
    if (!program.used_events[e]) continue;
    const int local = graph.device(plan.events[e].device).local;
    PENSTOCK_ASSIGN_OR_RETURN(of_streams_.all[e], graph.driver().CreateEvent(local, false));
    of_graphs_.all[e] = of_streams_.all[e];
    const int of_graphs = graphs ? graph.local_device_of_lane(program.replay.lane) : local;
    if (of_graphs == local) continue;
    of_graphs_.all[e] = {};
    PENSTOCK_ASSIGN_OR_RETURN(of_graphs_.all[e], graph.driver().CreateEvent(of_graphs, false));
  }
  for (Events* const events : {&of_streams_, &of_graphs_}) {
    for (const EventId e : plan.done_events) events->done.push_back(events->all[e]);
    for (const graph::StateUse& use : plan.states) {
      std::vector<driver::Event>& of_state = events->states.emplace_back();
      for (const EventId e : use.done_events) of_state.push_back(events->all[e]);
    }
  }
  return absl::OkStatus();
}

bool SlotQueues::Use(Mode mode) {
  const Events* const next = mode == Mode::kGraph ? &of_graphs_ : &of_streams_;
  return std::exchange(in_use_, next) != next;
}

// Both schedules have events of their own: runs may leave graphs for streams, and a node of another device is on the
// one lane of graphs.
absl::Status SlotQueues::MakeTiming() {
  const graph::Plan& plan = graph.plan();
  const Program& program = graph.program();
  for (const auto& [schedule, events] :
       {std::pair(&program.stream, &of_streams_), std::pair(&program.graphs, &of_graphs_)}) {
    events->begin_timing.resize(plan.nodes.size());
    events->end_timing.resize(plan.nodes.size());
    for (const ExecCommand& command : schedule->commands) {
      const NodeId n = command.node;
      if (n < 0 || events->begin_timing[n]) continue;
      const driver::DeviceRef& d = graph.device(plan.lanes[command.lane].device);
      PENSTOCK_ASSIGN_OR_RETURN(events->begin_timing[n], d.driver->CreateEvent(d.local, true));
      PENSTOCK_ASSIGN_OR_RETURN(events->end_timing[n], d.driver->CreateEvent(d.local, true));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
