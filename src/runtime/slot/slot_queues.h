// SlotQueues: the streams and events of a slot.
//
// Ownership: owns them; borrows the compiled graph.
// Threads:   belongs to whoever owns the slot.
// Errors:    Make returns the driver's error; what was made by then goes with the object.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

struct SlotQueues {
  explicit SlotQueues(const CompiledGraph& compiled) : graph(compiled) {}
  SlotQueues(const SlotQueues&) = delete;
  SlotQueues& operator=(const SlotQueues&) = delete;
  ~SlotQueues();

  // `synchronous`: each node is waited for, by an event of its lane. With a trace there are timing events.
  absl::Status Make(bool synchronous);

  const CompiledGraph& graph;
  std::vector<driver::Stream> streams;  // a lane each
  std::vector<driver::Event> events;  // Plan::events
  std::vector<driver::Event> done;  // those of Plan::done_events
  std::vector<driver::Event> sync_events;  // a lane each, where nodes are waited for
  std::vector<driver::Event> marks;  // a lane each, null except for Program::marked_lanes
  std::vector<driver::Event> stream_events;  // of each device of the driver, null until a run is on a stream there
  // A node each, null except for those that are submitted by themselves; empty without a trace.
  std::vector<driver::Event> begin_timing, end_timing;

 private:
  absl::Status MakeTiming();
};

}  // namespace penstock::runtime
