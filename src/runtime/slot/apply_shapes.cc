#include "src/runtime/slot/apply_shapes.h"

#include <algorithm>
#include <cstring>

#include "penstock/detail/scan_tree.h"
#include "penstock/status_macros.h"
#include "src/runtime/slot/box_shapes.h"
#include "src/runtime/slot/copy_operations.h"
#include "src/runtime/slot/kernel_grid.h"

namespace penstock::runtime {
namespace {

// A row is a leaf, which a block of the device takes: see reduce_leaf.h and scan_leaf.h. It strides over what the grid
// cannot cover.
void SetLeaves(driver::KernelOp& op, const detail::Range& range, const NodeDecl& decl) {
  op.rows = detail::LeavesOfLevel(range, decl.level, decl.by_rows);
  op.row_elements = detail::ValuesOfLeaf(range, decl.level, decl.by_rows);
  op.block = {detail::kLeafThreads, 1, 1};
  op.grid = {static_cast<uint32_t>(std::min((op.rows - 1) / decl.tiles.leaves_of_block + 1, kMaxGridX)), 1, 1};
}

// One block, whose shape the operation has from the node.
detail::Range RangeOfTask(const KernelShape& shape) { return {1, 1, int64_t{shape.shared_bytes}}; }
void SetTask(driver::KernelOp& op) {
  op.rows = 1;
  op.row_elements = 1;
  op.grid = {1, 1, 1};
}

void SetRange(driver::KernelOp& op, const detail::Range& range, int rank) {
  op.rows = rank == 1 ? range.width : range.depth * range.height;
  op.row_elements = rank == 1 ? 1 : range.width;
  if (range.width == 0) op.rows = 0;
  if (op.rows == 0) return;  // nothing is launched
  const KernelGrid grid = GridOf(range, rank);
  op.grid = grid.grid;
  op.block = grid.block;
}

void SetGrid(driver::KernelOp& op, const KernelShape& shape, const std::vector<int64_t>& params) {
  if (shape.per_thread) {
    const int64_t blocks = (ValueOf(shape.threads, params) + op.block[0] - 1) / op.block[0];
    op.grid = {static_cast<uint32_t>(std::min(blocks, kMaxGridX)), 1, 1};
  } else {
    for (size_t i = 0; i < 3; ++i) op.grid[i] = static_cast<uint32_t>(ValueOf(shape.grid[i], params));
  }
  op.rows = op.grid[0] == 0 || op.grid[1] == 0 || op.grid[2] == 0 ? 0 : 1;
}

void WriteViews(const std::vector<ShapePatch>& patches, SlotTables& tables) {
  for (const ShapePatch& p : patches) {
    const BoxInRun& box = tables.boxes[p.box];
    const detail::Range r = RangeOf(box.shape);
    const int64_t dims[5] = {r.depth, r.height, r.width, box.row / p.element_bytes, box.slice / p.element_bytes};
    std::memcpy(tables.args.data() + p.at, dims, sizeof(dims));
  }
}

void WriteRanges(const Model& model, const Program& program, const std::vector<RangePatch>& patches,
                 SlotTables& tables) {
  for (const RangePatch& p : patches) {
    const NodeDecl& decl = model.nodes[program.calls[p.call].decl];
    const detail::Range range =
        decl.is_task ? RangeOfTask(decl.shape) : RangeOf(ShapeOf(decl.extent, tables.param_values));
    std::memcpy(tables.args.data() + p.at, &range, sizeof(range));
    if (decl.is_task) SetTask(tables.kernels[p.call]);
    else if (decl.level > 0) SetLeaves(tables.kernels[p.call], range, decl);
    else SetRange(tables.kernels[p.call], range, decl.extent.rank);
  }
}

void WriteFill(const Program& program, FillId fill, SlotTables& tables) {
  const FillEntry& entry = program.fills[fill];
  const BoxInRun& box = tables.boxes[entry.box];
  const detail::Range size = RangeOf(box.shape);
  driver::FillOp& op = tables.fills[fill];
  op.dst = tables.AddressOf(entry.instance, entry.box);
  op.count = static_cast<size_t>(size.width);
  op.height = static_cast<size_t>(size.height);
  op.depth = static_cast<size_t>(size.depth);
  op.pitch = static_cast<size_t>(box.row);
  op.slice = static_cast<size_t>(box.slice);
}

}  // namespace

absl::Status ApplyFixedShapes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables) {
  PENSTOCK_RETURN_IF_ERROR(SetFixedBoxes(model, plan, program, tables));
  WriteViews(program.patches.fixed_shapes, tables);
  WriteRanges(model, program, program.patches.fixed_ranges, tables);
  for (const FillId fill : program.fills.ids()) {
    if (!program.fills[fill].dynamic) WriteFill(program, fill, tables);
  }
  SetCopyShapes(program, tables);
  for (const CallId c : program.calls.ids()) {
    const CallEntry& call = program.calls[c];
    const NodeDecl& decl = model.nodes[call.decl];
    if (plan.nodes[call.node].kind == graph::PlanKind::kKernel && !call.dynamic_range) {
      SetGrid(tables.kernels[c], decl.shape, tables.param_values);
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyDynamicShapes(const Model& model, const graph::Plan& plan, const Program& program,
                                SlotTables& tables) {
  PENSTOCK_RETURN_IF_ERROR(SetDynamicBoxes(model, plan, program, tables));
  WriteViews(program.patches.dynamic_shapes, tables);
  WriteRanges(model, program, program.patches.dynamic_ranges, tables);
  for (const FillId fill : program.fills.ids()) {
    if (program.fills[fill].dynamic) WriteFill(program, fill, tables);
  }
  SetCopyShapes(program, tables);
  for (const CallId c : program.patches.dynamic_grids) {
    const NodeDecl& decl = model.nodes[program.calls[c].decl];
    SetGrid(tables.kernels[c], decl.shape, tables.param_values);
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
