// SlotQueues: the streams and events of a slot.
//
// Ownership: owns them; borrows the compiled graph.
// Threads:   used only by the slot's owner.
// Errors:    Make returns the driver's error; what it had made by then is freed with the object.
#pragma once

#include <cstdint>
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

  // With kPerLane each node is waited for, by an event of its lane. With a trace, timing events are made too.
  enum class SyncEvents : uint8_t { kNone, kPerLane };
  absl::Status Make(SyncEvents sync);

  const CompiledGraph& graph;
  std::vector<driver::Stream> streams;  // one for each lane
  std::vector<driver::Event> events;  // Plan::events
  std::vector<driver::Event> done;  // the events of Plan::done_events
  std::vector<driver::Event> sync_events;  // one for each lane if nodes are waited for
  std::vector<driver::Event> marks;  // watermarks, one for each lane; null except in Program::marked_lanes
  std::vector<driver::Event> stream_events;  // one for each device of the driver; null until a run uses a stream there
  // One for each node; null except for nodes that are submitted individually. Empty without a trace.
  std::vector<driver::Event> begin_timing, end_timing;

 private:
  absl::Status MakeTiming();
};

}  // namespace penstock::runtime
