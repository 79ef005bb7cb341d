// Makes schedules and graph entries. See schedule_builder.h.
#include "src/runtime/program/schedule_builder.h"
#include "src/runtime/program/tuning.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "penstock/detail/resident_protocol.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

constexpr int kGraphCommands = 3;  // on a host device's queue

// Workers of one block hand over to each other sooner; several blocks have more workers.
graph::WorkerSchedule ScheduleOf(const graph::CsrRows& preds, const std::vector<double>& us, int32_t most_workers) {
  constexpr auto kOfBlock = static_cast<int32_t>(detail::kWorkersOfBlock);
  graph::WorkerSchedule in_block = graph::AssignWorkers(
      preds, us, {.most_workers = std::min(most_workers, kOfBlock), .handover_us = tuning::kHandoverInBlockUs});
  if (most_workers <= kOfBlock) return in_block;
  graph::WorkerSchedule in_blocks =
      graph::AssignWorkers(preds, us, {.most_workers = most_workers, .handover_us = tuning::kHandoverUs});
  return in_blocks.us < in_block.us ? in_blocks : in_block;
}

int CommandsOnLane(const ExecCommand& command) {
  switch (command.op) {
    case Op::kLaunch: return tuning::kLaunchCommands;
    case Op::kConditional:
    case Op::kGraph: return kGraphCommands;
    default: return 1;
  }
}

}  // namespace

void ScheduleBuilder::AddSchedules() {
  program_.marked_lanes.resize(options_.plan.lanes.size());
  program_.used_lanes.resize(options_.plan.lanes.size());
  program_.used_events.resize(options_.plan.events.size());
  for (const graph::Command& c : options_.plan.commands) {
    if (c.op == graph::Command::Op::kNode && c.count > 1) BatchCopies(c.arg, c.count);
  }
  if (options_.streams) {
    Schedule& stream = program_.stream;
    AddSchedule(options_.plan, stream);
    MarkLanes(stream);
    stream.partitions =
        MakePartitions(stream.commands, stream.segments, options_.plan.lanes, options_.submission_threads);
  }
  for (const graph::PlanNode& node : options_.plan.nodes) {
    if (node.kind == graph::PlanKind::kLaunch) program_.used_lanes[node.lane] = true;  // captured on its lane's stream
  }
  if (options_.graphs == nullptr) return;
  GraphProgram& replay = program_.replay;
  replay.of_call.resize(program_.calls.size());
  replay.of_fill.resize(program_.fills.size());
  for (const graph::GraphPart& part : options_.graphs->graphs) AddGraph(part);
  replay.lane = options_.graphs->lane;
  AddSchedule(*options_.graphs, program_.graphs);
  MarkLanes(program_.graphs);
}

template <class From>
void ScheduleBuilder::AddSchedule(const From& from, Schedule& to) {
  for (const graph::Command& c : from.commands) AddCommand(c, to);
  std::sort(to.external_dep_lanes.begin(), to.external_dep_lanes.end(),
            [](const ExternalDepLane& a, const ExternalDepLane& b) {
              return a.external_dep != b.external_dep ? a.external_dep < b.external_dep : a.lane < b.lane;
            });
  to.segments = from.segments;
  to.epilogue_begin = from.epilogue_begin;
  to.short_epilogue_begin = from.short_epilogue_begin;
  to.epilogue_end = from.epilogue_end;
}

void ScheduleBuilder::AddCommand(const graph::Command& c, Schedule& to) {
  ExecCommand command{.op = Op::kGraph, .lane = c.lane, .index = c.arg, .node = -1};
  switch (c.op) {
    case graph::Command::Op::kNode:
      command.node = c.arg;
      command.op = ops_[command.node].op;
      command.index = ops_[command.node].index;
      for (int32_t n = c.arg; n < c.arg + c.count; ++n) to.nodes.Add(n);
      break;
    case graph::Command::Op::kRecord:
      command.op = Op::kRecord;
      program_.used_events[c.arg] = true;
      break;
    case graph::Command::Op::kWait: command.op = Op::kWait; break;
    case graph::Command::Op::kStateWait: command.op = Op::kStateWait; break;
    case graph::Command::Op::kStateWrite: command.op = Op::kStateWrite; break;
    case graph::Command::Op::kStateDone: command.op = Op::kStateDone; break;
    case graph::Command::Op::kWaitExternal:
      to.external_dep_lanes.push_back({c.arg, c.lane});
      command.op = Op::kWaitExternal;
      break;
    case graph::Command::Op::kGraph: AddNodesOfGraph(c.arg, to); break;
  }
  to.nodes.Close();
  to.commands.push_back(command);
  if (std::find(to.lanes.begin(), to.lanes.end(), c.lane) != to.lanes.end()) return;
  to.lanes.push_back(c.lane);
  program_.used_lanes[c.lane] = true;
}

// All of them: an entry names only the first node of a batch or a region.
void ScheduleBuilder::AddNodesOfGraph(GraphId graph, Schedule& to) {
  const Table<NodeId, graph::PlanNode>& nodes = options_.plan.nodes;
  for (const graph::GraphPart::Entry& entry : options_.graphs->graphs[graph].entries) {
    if (entry.region >= 0) {
      for (const NodeId n : options_.graphs->regions[entry.region].nodes) to.nodes.Add(n);
      continue;
    }
    to.nodes.Add(entry.node);
    for (int32_t n = entry.node + 1; n < nodes.count() && nodes[n].batch == entry.node; ++n) to.nodes.Add(n);
  }
}

// Makes the first of `count` copies stand for all of them, in every schedule.
void ScheduleBuilder::BatchCopies(NodeId first, int32_t count) {
  NodeOp& node = ops_[first];
  if (node.op == Op::kBatch) return;
  const BatchId batch = program_.batches.next();
  program_.batches.push_back({node.index, count, pieces_});
  pieces_ += count;
  node = {Op::kBatch, batch};
}

void ScheduleBuilder::AddGraph(const graph::GraphPart& part) {
  GraphProgram& replay = program_.replay;
  for (int32_t i = 0; i < part.preds.rows(); ++i) {
    const graph::GraphPart::Entry& of = part.entries[static_cast<size_t>(i)];
    const EntryId entry = replay.entries.next();
    replay.entries.push_back(of.region >= 0 ? AddRegion(of.node, of.region, entry) : EntryOf(of.node, entry));
    if (replay.entries.back().varies) replay.varying.push_back(entry);
    for (const int32_t p : part.preds[i]) replay.preds.Add(p);
    replay.preds.Close();
  }
  replay.begin.push_back(replay.entries.next());
}

// `entry` is to have the node, alone or in a region.
GraphNodeEntry ScheduleBuilder::EntryOf(NodeId n, EntryId entry) {
  GraphProgram& replay = program_.replay;
  NodeOp node = ops_[n];
  if (options_.plan.nodes[n].kind == graph::PlanKind::kLaunch) node.op = Op::kLaunch;
  if (node.op == Op::kLaunch) replay.launch.push_back(entry);
  if (node.op == Op::kKernel || node.op == Op::kLaunch) replay.of_call[node.index] = entry;
  if (node.op == Op::kFill) replay.of_fill[node.index] = entry;
  if (node.op == Op::kConditional) replay.conditionals.push_back(node.index);
  return {node.op, node.index, n, VariesInGraph(node)};
}

GraphNodeEntry ScheduleBuilder::AddRegion(NodeId first, RegionId region, EntryId entry) {
  const graph::GraphRegion& from = options_.graphs->regions[region];
  RegionEntry to;
  std::vector<double> us;
  bool varies = false;
  for (int32_t i = 0; i < from.preds.rows(); ++i) {
    const NodeId n = from.nodes[static_cast<size_t>(i)];
    to.nodes.push_back(EntryOf(n, entry));
    varies = varies || to.nodes.back().varies;
    for (const int32_t p : from.preds[i]) to.edges.push_back({p, i});
    us.push_back(tuning::kUnknownTaskUs);
  }
  if (options_.cuda[options_.plan.nodes[first].device]) {
    to.schedule = ScheduleOf(from.preds, us, options_.most_workers);
    to.kernel = options_.kernels[first].region;
  }
  program_.replay.regions.push_back(std::move(to));
  return {Op::kRegion, program_.replay.regions.next() - 1, first, varies};
}

bool ScheduleBuilder::VariesInGraph(const NodeOp& node) const {
  switch (node.op) {
    case Op::kCopy: return program_.copies[node.index].varies;
    case Op::kFill: return program_.fills[node.index].varies;
    case Op::kKernel:
    case Op::kLaunch: return program_.calls[node.index].varies;
    case Op::kHostcall:  // it never changes
    case Op::kConditional: return false;  // its parts may
    default: return true;  // launches list the pieces of a batch
  }
}

// At most half of what a lane may hold lies between two watermarks, and at most as much after the awaited one.
void ScheduleBuilder::MarkLanes(Schedule& schedule) {
  Table<LaneId, int> since(options_.plan.lanes.size()), all(options_.plan.lanes.size());
  Table<LaneId, bool> marked(options_.plan.lanes.size());
  for (CommandId c = 0; c < schedule.epilogue_begin; ++c) {
    ExecCommand& command = schedule.commands[c];
    int& commands = since[command.lane];
    const int added = CommandsOnLane(command) + (options_.timed && command.node >= 0 ? 2 : 0);
    commands += added;
    all[command.lane] += added;
    schedule.most_on_a_lane = std::max(schedule.most_on_a_lane, all[command.lane]);
    if (commands < tuning::kMostOutstanding / 2 - tuning::kLaunchCommands) continue;
    command.flow = marked[command.lane] ? ExecCommand::FlowControl::kWaitAndRecord : ExecCommand::FlowControl::kRecord;
    marked[command.lane] = program_.marked_lanes[command.lane] = true;
    commands = 0;
  }
}

}  // namespace penstock::runtime
