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
  // Which schedule is submitted next: graphs record all events on one device. No run may be in flight.
  // Returns whether events differ from now on.
  bool Use(Mode mode);

  const CompiledGraph& graph;
  Table<LaneId, driver::Stream> streams;  // of SlotDevices; null except in Program::used_lanes
  Table<EventId, driver::Event> events;  // for the schedule in use; null except in Program::used_events
  std::vector<driver::Event> done;  // the events of Plan::done_events, for the schedule in use
  Table<LaneId, driver::Event> sync_events;  // empty handles unless nodes are waited for
  Table<LaneId, driver::Event> marks;  // watermarks; null except in Program::marked_lanes
  std::vector<driver::Event> stream_events;  // one for each device of the driver; null until a run uses a stream there
  // Null except for nodes that are submitted individually. Empty without a trace.
  Table<NodeId, driver::Event> begin_timing, end_timing;
  StateWaits state_waits;  // for a profile

 private:
  absl::Status MakeEvents();
  absl::Status MakeTiming();

  // The events of the schedule that is not in use; null where the other one's will do.
  Table<EventId, driver::Event> others_;
  Mode mode_ = Mode::kStream;
};

}  // namespace penstock::runtime
