// LanePartition: a wide range of a schedule's commands, cut into parts that several threads submit.
//
// A part is some of the range's lanes with all their commands, in plan order. So a lane is fed by one thread at a time
// and in its planned order, and whatever the plan left out because lane order implies it still holds: waits that clocks
// showed to be needless, and bytes that two buffers share. What goes between parts are waits on events alone. A wait
// takes the record that was submitted last before it; so it must not be submitted before this run's record has been,
// and no event of the range is recorded anywhere before it in the plan (PlanOptions::events_once), or another record
// could come between. Plan order is a topological order of all of that: the command that stands first among those left
// never has to wait for another, and so one thread can always go on.
//
// Threads: plain data, immutable once made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/plan/plan.h"
#include "src/runtime/program/commands.h"

namespace penstock::runtime {

// A command of a part. It is a wait on what command `behind` (its place in its part) of part `behind_part` records, or,
// where `behind_part` is -1, may be submitted when those before it in its own part have been.
struct PartCommand {
  int32_t command;  // Schedule::commands
  int32_t behind_part = -1, behind = 0;
};

struct LanePartition {
  int32_t begin = 0, end = 0;  // Schedule::commands
  std::vector<PartCommand> commands;  // part by part
  std::vector<int32_t> part_begin{0};  // of each part and one more: its first of `commands`
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

// The ranges of plain commands (nodes that no user code submits, records and waits) with graph::kPartitionFrom commands
// or more on several lanes, in the order they stand in. `submission_threads[d]`: how many threads may help on device d;
// a device has one part more than that, or as many as it has lanes there.
std::vector<LanePartition> MakePartitions(const std::vector<ExecCommand>& commands,
                                          const std::vector<graph::Segment>& segments,
                                          const std::vector<graph::Lane>& lanes,
                                          const std::vector<int>& submission_threads);

}  // namespace penstock::runtime
