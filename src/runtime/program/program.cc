// Builds a Program in four parts, each by its own builder, and decides what submits each plan node. See program.h.
#include "src/runtime/program/program.h"

#include <algorithm>
#include <utility>

#include "src/runtime/program/argument_builder.h"
#include "src/runtime/program/box_builder.h"
#include "src/runtime/program/host_step_builder.h"
#include "src/runtime/program/schedule_builder.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;
using graph::PlanKind;

CopyId AddCopy(NodeId n, BoxBuilder& boxes, Program& program) {
  const CopyId id = program.copies.next();
  CopyEntry copy = boxes.CopyOf(n);
  const bool moves = boxes.IsDynamicBox(copy.src_box) || boxes.IsDynamicBox(copy.dst_box);
  copy.varies = boxes.Varies(copy.src) || boxes.Varies(copy.dst) || moves;
  copy.may_have_rows = boxes.MayHaveRows(copy.src_box) || boxes.MayHaveRows(copy.dst_box);
  if (copy.varies) program.patches.bound_copies.push_back(id);
  program.copies.push_back(copy);
  return id;
}

FillId AddFill(NodeId n, const graph::PlanNode& node, BoxBuilder& boxes, Program& program) {
  const FillId id = program.fills.next();
  const InstanceId instance = node.uses[0].instance;
  const BoxId box = boxes.AddBox(node.decl, 0);
  const bool dynamic = boxes.IsDynamicBox(box), bound = boxes.Varies(instance);
  if (bound) program.patches.bound_fills.push_back(id);
  program.fills.push_back({n, instance, box, dynamic, bound || dynamic});
  return id;
}

// The call made is that of the node's arguments, which are added next.
HostcallId AddHostcall(NodeId n, const ProgramOptions& options, Program& program) {
  const HostcallId id = program.hostcalls.next();
  const NodeDecl& decl = options.model.nodes[options.plan.nodes[n].decl];
  program.hostcalls.push_back({.node = n,
                               .call = program.calls.next(),
                               .inline_call = decl.host_way == HostWay::kHostcallInline,
                               .code = options.kernels[n].hostcall});
  return id;
}

NodeOp AddCall(Op op, NodeId n, ArgumentBuilder& arguments, const Program& program) {
  const CallId id = program.calls.next();
  arguments.AddCall(n);
  return {op, id};
}

NodeOp AddNode(NodeId n, const ProgramOptions& options, BoxBuilder& boxes, ArgumentBuilder& arguments,
               Program& program) {
  const graph::PlanNode& node = options.plan.nodes[n];
  switch (node.kind) {
    case PlanKind::kUpload:
    case PlanKind::kDownload:
    case PlanKind::kDeviceCopy:
    case PlanKind::kPeerCopy: return {Op::kCopy, AddCopy(n, boxes, program)};
    case PlanKind::kFill: return {Op::kFill, AddFill(n, node, boxes, program)};
    case PlanKind::kLaunch:
      return AddCall(options.cuda[node.device] ? Op::kLaunch : Op::kKernel, n, arguments, program);
    case PlanKind::kParallelFor:
    case PlanKind::kKernel:
    case PlanKind::kHost: return AddCall(Op::kKernel, n, arguments, program);
    case PlanKind::kHostcall: {
      const HostcallId id = AddHostcall(n, options, program);
      arguments.AddCall(n);
      return {Op::kHostcall, id};
    }
    case PlanKind::kGate: return {Op::kNone, -1};
    case PlanKind::kStageIn:
    case PlanKind::kStageOut:
    case PlanKind::kHostCopy:
    case PlanKind::kConditional:
    case PlanKind::kControl: break;
  }
  return {};
}

bool DependsOnParams(const Program& program) {
  const Table<BufferId, bool>& dynamic = program.buffers.dynamic;
  return !program.patches.dynamic_ranges.empty() || !program.patches.dynamic_grids.empty() ||
         std::find(dynamic.begin(), dynamic.end(), true) != dynamic.end() ||
         std::any_of(program.slices.begin(), program.slices.end(), [](const SliceEntry& s) { return s.dynamic; });
}

}  // namespace

Program BuildProgram(const ProgramOptions& options) {
  Program program;
  BoxBuilder boxes(options, program);
  ArgumentBuilder arguments(options, boxes, program);
  NodeOps ops;
  ops.reserve(options.plan.nodes.size());
  int32_t constructs = 0;  // that a device decides
  for (const NodeId n : options.plan.nodes.ids()) {
    const bool construct = options.plan.nodes[n].kind == PlanKind::kConditional;
    ops.push_back(construct ? NodeOp{Op::kConditional, constructs++} : AddNode(n, options, boxes, arguments, program));
  }
  arguments.FinishParams();
  boxes.AddBoxesOfDroppedCopies();
  ScheduleBuilder(options, ops, program).AddSchedules();
  HostStepBuilder(options, ops, boxes, program).AddSteps();
  program.dynamic = DependsOnParams(program);
  return program;
}

Shape ShapeOf(const Extent& extent, const std::vector<int64_t>& params) {
  Shape shape{extent.rank, {}};
  for (int i = 0; i < extent.rank; ++i) {
    shape.size[i] = ValueOf(extent.dims[i], params);
  }
  return shape;
}

bool IsDynamic(const Extent& extent) {
  for (int i = 0; i < extent.rank; ++i) {
    if (!extent.dims[i].is_constant()) return true;
  }
  return false;
}

bool IsDynamic(const Box& box) { return !box.whole && (IsDynamic(box.offset) || IsDynamic(box.size)); }

}  // namespace penstock::runtime
