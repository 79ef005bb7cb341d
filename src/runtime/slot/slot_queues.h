// SlotQueues: the streams and events of a slot.
//
// Ownership: owns the events; borrows the streams and the compiled graph.
// Threads:   used only by the slot's owner.
// Errors:    Make returns the driver's error; what it had made by then is freed with the object.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "penstock/mode.h"
#include "src/driver/driver.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot_devices.h"
#include "src/runtime/slot/state_waits.h"

namespace penstock::runtime {

struct SlotQueues {
  explicit SlotQueues(const CompiledGraph& compiled) : graph(compiled), state_waits(compiled) {}
  SlotQueues(const SlotQueues&) = delete;
  SlotQueues& operator=(const SlotQueues&) = delete;
  ~SlotQueues();

  // With kPerLane each node is waited for, by an event of its lane. With a trace, timing events are made too.
  enum class SyncEvents : uint8_t { kNone, kPerLane };
  absl::Status Make(const SlotDevices& devices, SyncEvents sync);
  // The events that one of the schedules records: those of streams each on the device of its lane, those of graphs all
  // on the device of the one lane. Constant after Make: runs that wait for an earlier run of the slot may look at them
  // while the next run uses the others.
  struct Events {
    Table<EventId, driver::Event> all;  // null except in Program::used_events
    std::vector<driver::Event> done;  // of Plan::done_events
    std::vector<std::vector<driver::Event>> states;  // of StateUse::done_events, for each of Plan::states
    // Null except for nodes that the schedule submits individually. Empty without a trace.
    Table<NodeId, driver::Event> begin_timing, end_timing;
  };
  // The events of the schedule in use. Use sets it while no run of the slot is in flight, and returns whether that
  // changed the events.
  const Events& events() const { return *in_use_; }
  bool Use(Mode mode);

  const CompiledGraph& graph;
  Table<LaneId, driver::Stream> streams;  // of SlotDevices; null except in Program::used_lanes
  Table<LaneId, driver::Event> sync_events;  // empty handles unless nodes are waited for
  Table<LaneId, driver::Event> marks;  // watermarks; null except in Program::marked_lanes
  std::vector<driver::Event> stream_events;  // one for each device of the driver; null until a run uses a stream there
  StateWaits state_waits;  // for a profile

 private:
  absl::Status MakeEvents();
  absl::Status MakeTiming();

  Events of_streams_, of_graphs_;  // share those of the graphs' device, except for times
  const Events* in_use_ = &of_streams_;
};

}  // namespace penstock::runtime
