// ScheduleBuilder: makes the schedules of a Program from those of the plan: flat commands, batches of copies, the
// graphs' entries, watermarks and partitions.
//
// Ownership: refers to the options, the operations and the Program, which outlive it.
// Threads:   single-threaded.
#pragma once

#include "src/runtime/program/program.h"

namespace penstock::runtime {

// What submits a plan node, as in ExecCommand. Nodes that host threads run without arguments have none.
struct NodeOp {
  ExecCommand::Op op = ExecCommand::Op::kKernel;
  int32_t index = 0;
};
using NodeOps = Table<NodeId, NodeOp>;

class ScheduleBuilder {
 public:
  // `ops` of all nodes. The first copy of a batch comes to stand for all of them.
  ScheduleBuilder(const ProgramOptions& options, NodeOps& ops, Program& program)
      : options_(options), ops_(ops), program_(program) {}

  // Fills Program::stream, graphs, replay, batches, marked_lanes, used_lanes and used_events.
  void AddSchedules();

 private:
  template <class From>  // a Plan or a GraphSchedule
  void AddSchedule(const From& from, Schedule& to);
  void AddCommand(const graph::Command& c, Schedule& to);
  void AddNodesOfGraph(GraphId graph, Schedule& to);
  void BatchCopies(NodeId first, int32_t count);
  void AddGraph(const graph::GraphPart& part);
  GraphNodeEntry EntryOf(NodeId n, EntryId entry);
  GraphNodeEntry AddRegion(NodeId first, RegionId region, EntryId entry);
  bool VariesInGraph(const NodeOp& node) const;
  void MarkLanes(Schedule& schedule);

  const ProgramOptions& options_;
  NodeOps& ops_;
  Program& program_;
  int32_t pieces_ = 0;  // of all batches so far
};

}  // namespace penstock::runtime
