// LanePartition: a wide range of a schedule's commands, cut into parts that several threads submit.
//
// A part is some of the range's lanes with all their commands, in plan order. One thread at a time submits a lane, in
// its planned order, so everything that the plan left out because lane order implies it still holds: waits that vector
// clocks showed to be redundant, and bytes that two buffers share. Only waits on events cross parts. A wait takes the
// record that was submitted last before it, so it must not be submitted before this run's record, and the plan records
// no event of the range earlier (PlanOptions::events_once), or the wait could take that other record. Plan order is a
// topological order of all this: the first remaining command never has to wait for another one, so one thread can
// always proceed.
//
// Threads: plain data, immutable once made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/plan/plan.h"
#include "src/runtime/program/commands.h"

namespace penstock::runtime {

// A command of a part. If `after_part` is not -1, it is a wait for the record made by command `after` (an index in
// its part) of part `after_part`. Otherwise it may be submitted once the commands before it in its own part have been.
struct PartCommand {
  CommandId command;
  int32_t after_part = -1, after = 0;
};

struct LanePartition {
  CommandId begin = 0, end = 0;
  // The range has commands that wait for what a launch names for its device memory. They are in no part, so a run that
  // has such predecessors submits the range in order.
  bool awaits_external = false;
  std::vector<PartCommand> commands;  // part by part
  std::vector<int32_t> part_begin{0};  // for each part, and one past the end: its first entry in `commands`
  // Parts [first, last) are on lanes of that device, whose submission threads help with them.
  struct Group {
    int32_t device, first, last;
  };
  std::vector<Group> groups;

  int32_t parts() const { return static_cast<int32_t>(part_begin.size()) - 1; }
  std::span<const PartCommand> part(int32_t p) const {
    const auto at = static_cast<size_t>(p);
    return std::span(commands).subspan(static_cast<size_t>(part_begin[at]),
                                       static_cast<size_t>(part_begin[at + 1] - part_begin[at]));
  }
};

// Finds, in order, the ranges of plain commands (nodes that no user code submits, records and waits; kWaitExternal may
// lie between them) that have at least graph::kPartitionFrom of them on several lanes. `submission_threads[d]` is the
// number of threads that may help on device d. A device gets a part for each lane that it has in the range, but at most
// kPartsForEachThread for each thread.
std::vector<LanePartition> MakePartitions(const Table<CommandId, ExecCommand>& commands,
                                          const Table<SegmentId, graph::Segment>& segments,
                                          const Table<LaneId, graph::Lane>& lanes,
                                          const Table<DeviceId, int>& submission_threads);

}  // namespace penstock::runtime
