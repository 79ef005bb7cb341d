#include "src/runtime/slot/box_shapes.h"

#include <algorithm>
#include <string>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {
namespace {

// The rows and slices of a buffer with memory of its own.
BoxInRun WholeOf(const BufferDecl& decl, const std::vector<int64_t>& params) {
  BoxInRun box;
  box.shape = ShapeOf(decl.extent, params);
  const int rank = box.shape.rank;
  box.row = (decl.pitch > 0 ? decl.pitch : box.shape.width()) * decl.type.size;
  box.element = decl.type.size;
  box.slice = rank > 1 ? box.shape.size[static_cast<size_t>(rank) - 2] * box.row : box.row;
  return box;
}

// The text of a dimension's value, which is negative here if an unsigned parameter exceeds the signed range.
std::string TextOf(const Model& model, const Dim& dim, int64_t value) {
  const bool is_signed = dim.is_constant() || model.params[dim.param].is_signed;
  return is_signed ? std::to_string(value) : std::to_string(static_cast<uint64_t>(value));
}

// Finds `box` of the buffer `decl`, which is at `of`. Extents and their bytes are below 2^62 (Validate), so what is
// inside one cannot overflow.
absl::Status Take(const Model& model, const BufferDecl& decl, const BoxInRun& of, const Box& box,
                  const std::vector<int64_t>& params, BoxInRun& out) {
  out = of;
  if (box.whole) return absl::OkStatus();
  const int rank = of.shape.rank;
  const int64_t step[] = {of.slice, of.row, decl.type.size};
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t offset = ValueOf(box.offset.dims[d], params), size = ValueOf(box.size.dims[d], params);
    const int64_t extent = of.shape.size[d];
    if (offset < 0 || offset > extent || size > extent - offset) {
      return absl::InvalidArgumentError(graph::OutsideText(decl.name, i, TextOf(model, box.offset.dims[d], offset),
                                                           size, std::to_string(extent) + " in this run"));
    }
    out.offset += offset * step[kMaxRank - rank + i];
    out.shape.size[d] = size;
  }
  if (out.shape.elements() == 0) out.offset = of.offset;  // nothing may begin past the end of the memory
  return absl::OkStatus();
}

// An alias of a whole buffer has the shape declared for its own type.
absl::Status TakeAlias(const Model& model, const BufferDecl& decl, const SlotTables& tables, BoxInRun& out) {
  const BufferId of = decl.alias_of;
  const BoxInRun& outer = tables.boxes[int32_t{of}];
  PENSTOCK_RETURN_IF_ERROR(Take(model, model.buffers[of], outer, decl.box, tables.param_values, out));
  out.shape = ShapeOf(decl.extent, tables.param_values);
  out.element = decl.type.size;
  return absl::OkStatus();
}

bool IsContiguous(const BoxInRun& box, int64_t element_bytes) {
  const int rank = box.shape.rank;
  if (box.shape.elements() == 0 || rank == 1) return true;
  const int64_t rows = box.shape.size[static_cast<size_t>(rank) - 2];
  const int64_t slices = rank == 3 ? box.shape.size[0] : 1;
  return (rows == 1 || box.row == box.shape.width() * element_bytes) &&
         (slices == 1 || box.slice == rows * box.shape.width() * element_bytes);
}

absl::Status Refuse(const Model& model, const char* what, const Name& name, const std::string& text) {
  return absl::InvalidArgumentError(graph::Prefix(model, what, name) + ": " + text);
}

absl::Status SetSlice(const Model& model, const SliceEntry& entry, SlotTables& tables, BoxInRun& out) {
  const NodeDecl& node = model.nodes[entry.decl];
  const AccessDecl& access = node.accesses[entry.access];
  const BufferDecl& buffer = model.buffers[access.buffer];
  const BoxInRun& outer = tables.boxes[int32_t{access.buffer}];
  if (const absl::Status taken = Take(model, buffer, outer, access.box, tables.param_values, out); !taken.ok()) {
    return Refuse(model, "node", node.name,
                  "access " + std::to_string(entry.access) + " " + std::string(taken.message()));
  }
  if (!entry.span || IsContiguous(out, buffer.type.size)) return absl::OkStatus();
  return Refuse(model, "node", node.name,
                "access " + std::to_string(entry.access) + " is a span of a part of " + graph::Quoted(buffer.name) +
                    ", whose rows are not contiguous in this run; a span has no pitch; take a View, or slice "
                    "whole rows");
}

// A part that is copied, as far as the buffer extends in this run. Counted in bytes, since an alias may have cut
// elements.
void SetPart(const SliceEntry& entry, const graph::Region& part, const SlotTables& tables, BoxInRun& box) {
  const BoxInRun& of = tables.boxes[int32_t{entry.buffer}];
  box = of;
  const int rank = of.shape.rank, first = kMaxRank - rank;
  const int64_t step[] = {of.slice, of.row, 1};
  auto d = static_cast<size_t>(first);
  for (int i = 0; i < rank; ++i, ++d) {
    const int64_t extent = of.shape.size[static_cast<size_t>(i)] * (i + 1 == rank ? of.element : 1);
    const int64_t lo = std::min(part.lo[d], extent);
    box.offset += lo * step[d];
    box.shape.size[static_cast<size_t>(i)] = std::min(part.hi[d], extent) - lo;
  }
  box.element = 1;
  if (box.shape.elements() == 0) box.offset = of.offset;
}

enum class Boxes : bool { kFixed, kDynamic };
absl::Status SetBoxes(const Model& model, const graph::Plan& plan, const Program& program, Boxes which,
                      SlotTables& tables) {
  const bool dynamic = which == Boxes::kDynamic;
  for (const BufferId b : model.buffers.ids()) {
    if (program.buffers.dynamic[b] != dynamic) continue;
    const BufferDecl& decl = model.buffers[b];
    BoxInRun& box = tables.boxes[int32_t{b}];
    if (!decl.is_alias) {
      box = WholeOf(decl, tables.param_values);
    } else if (const absl::Status taken = TakeAlias(model, decl, tables, box); !taken.ok()) {
      return Refuse(model, "buffer", decl.name, std::string(taken.message()));
    }
  }
  int32_t box = model.buffers.count();
  for (const SliceEntry& slice : program.slices) {
    BoxInRun& out = tables.boxes[box++];
    if (slice.dynamic != dynamic) continue;
    if (slice.part >= 0) {
      SetPart(slice, plan.parts[slice.part], tables, out);
    } else {
      PENSTOCK_RETURN_IF_ERROR(SetSlice(model, slice, tables, out));
    }
  }
  return absl::OkStatus();
}

}  // namespace

BoxInRun BoxOf(const Model& model, const AccessDecl& access, const SlotTables& tables) {
  BoxInRun box;
  Take(model, model.buffers[access.buffer], tables.boxes[int32_t{access.buffer}], access.box, tables.param_values, box)
      .IgnoreError();  // SetBoxes has checked it
  return box;
}

absl::Status SetFixedBoxes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables) {
  return SetBoxes(model, plan, program, Boxes::kFixed, tables);
}
absl::Status SetDynamicBoxes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables) {
  return SetBoxes(model, plan, program, Boxes::kDynamic, tables);
}

}  // namespace penstock::runtime
