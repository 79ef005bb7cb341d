// Lays out argument blocks. See argument_builder.h.
#include "src/runtime/program/argument_builder.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "penstock/detail/arguments.h"

namespace penstock::runtime {
namespace {

using graph::PlanNode;

constexpr uint32_t kBlockAlign = 16;  // of an argument block, unless an argument needs more

// The offset of a View's dimensions, after its pointer. The layout does not depend on T.
constexpr uint32_t kViewShape = offsetof(View<char>, depth);
static_assert(offsetof(View<char>, data) == 0 && offsetof(View<char>, slice) == kViewShape + 4 * sizeof(int64_t));

// Any block satisfies addresses, Views and Ranges; the type of an access describes elements elsewhere.
uint32_t AlignOf(const NodeDecl& decl) {
  uint32_t align = kBlockAlign;
  for (const ArgDecl& arg : decl.args) {
    const bool inside = arg.form == ArgDecl::Form::kValue || arg.form == ArgDecl::Form::kParam;
    if (inside) align = std::max(align, arg.type.align);
  }
  return align;
}

bool HasDynamicGrid(const KernelShape& shape) {
  if (shape.per_thread) return !shape.threads.is_constant();
  return std::any_of(shape.grid.begin(), shape.grid.end(), [](const Dim& d) { return !d.is_constant(); });
}

uint32_t SizeOf(const auto& list) { return static_cast<uint32_t>(list.size()); }

}  // namespace

void ArgumentBuilder::AddCall(NodeId n) {
  const PlanNode& node = options_.plan.nodes[n];
  const NodeDecl& decl = options_.model.nodes[node.decl];
  ArgumentImage& args = program_.args;
  CallEntry call = MakeBlock(n, decl);
  for (const ArgDecl& arg : decl.args) AddArg(call, node, decl, arg);
  call.pointer_count = SizeOf(args.pointer_offsets) - call.pointers;
  for (const ArgDecl& arg : decl.args) {
    if (call.indirect_range != nullptr && arg.ref != 0) args.pointer_offsets.push_back(arg.ref);
  }
  call.ref_count = SizeOf(args.pointer_offsets) - call.pointers - call.pointer_count;
  if (decl.kind == NodeKind::kKernel && HasDynamicGrid(decl.shape)) {
    call.dynamic_range = true;
    program_.patches.dynamic_grids.push_back(program_.calls.next());
  }
  // If launches decide the callable (graph_cache.h), there is none to capture yet.
  const bool captured_later = decl.kind == NodeKind::kLaunch && decl.code.callable == nullptr;
  call.varies = call.varies || call.dynamic_range || captured_later;
  program_.calls.push_back(call);
}

CallEntry ArgumentBuilder::MakeBlock(NodeId n, const NodeDecl& decl) {
  ArgumentImage& args = program_.args;
  CallEntry call{.node = n, .decl = options_.plan.nodes[n].decl, .block = 0, .argv = SizeOf(args.argv)};
  call.align = AlignOf(decl);
  args.align = std::max(args.align, call.align);
  args.image.resize((args.image.size() + call.align - 1) / call.align * call.align);
  call.block = SizeOf(args.image);
  args.image.insert(args.image.end(), decl.arg_block.begin(), decl.arg_block.end());
  call.pointers = SizeOf(args.pointer_offsets);
  call.kernel = options_.kernels[n].by_value;
  call.threads = decl.shape.block;
  if (decl.shape.by_occupancy) call.threads[0] = options_.kernels[n].by_occupancy.threads;
  call.task = options_.kernels[n].task;
  if (options_.graphs != nullptr) {
    call.indirect_kernel = options_.kernels[n].indirect;
    call.indirect_range = decl.code.indirect_range;
  }
  return call;
}

void ArgumentBuilder::AddArg(CallEntry& call, const PlanNode& node, const NodeDecl& decl, const ArgDecl& arg) {
  const uint32_t at = call.block + arg.offset;
  const CallId id = program_.calls.next();
  SlotPatches& patches = program_.patches;
  if (call.indirect_range != nullptr && arg.ref != 0) {
    program_.params.refs.push_back(
        {static_cast<uint32_t>(arg.index), call.block + arg.ref, SizeOf(program_.args.argv), id});
  }
  program_.args.argv.push_back(at);
  switch (arg.form) {
    case ArgDecl::Form::kValue:
    case ArgDecl::Form::kTable: break;
    case ArgDecl::Form::kParam:
      program_.params.patches.push_back({static_cast<uint32_t>(arg.index), at, arg.size, id});
      call.varies = true;
      break;
    case ArgDecl::Form::kPointer:
    case ArgDecl::Form::kView:
    case ArgDecl::Form::kSpan:
      AddAccess(call, node, decl, arg, at);
      program_.args.pointer_offsets.push_back(arg.offset);
      break;
    case ArgDecl::Form::kRange:
      call.dynamic_range = IsDynamic(decl.extent);
      (call.dynamic_range ? patches.dynamic_ranges : patches.fixed_ranges).push_back({id, at});
      break;
  }
}

void ArgumentBuilder::AddAccess(CallEntry& call, const PlanNode& node, const NodeDecl& decl, const ArgDecl& arg,
                                uint32_t at) {
  SlotPatches& patches = program_.patches;
  const InstanceId instance = node.uses[arg.index].instance;
  const bool span = arg.form == ArgDecl::Form::kSpan, varies = boxes_.Varies(instance);
  const BoxId box = span ? boxes_.AddSpan(node.decl, arg.index) : boxes_.AddBox(node.decl, arg.index);
  const bool dynamic = boxes_.IsDynamicBox(box), moves = dynamic && boxes_.IsSlice(box);
  (varies || moves ? patches.bound_pointers : patches.fixed_pointers).push_back({instance, box, at});
  call.varies = call.varies || varies || dynamic;
  if (arg.form == ArgDecl::Form::kPointer) return;
  const uint32_t element_bytes = options_.model.buffers[decl.accesses[arg.index].buffer].type.size;
  (dynamic ? patches.dynamic_shapes : patches.fixed_shapes).push_back({box, element_bytes, at + kViewShape});
}

void ArgumentBuilder::FinishParams() {
  SortPatches();
  ListPatchesOfCalls();
  PlaceParams();
}

void ArgumentBuilder::SortPatches() {
  ParamTables& params = program_.params;
  std::sort(params.patches.begin(), params.patches.end(), [](const ParamPatch& a, const ParamPatch& b) {
    return a.param != b.param ? a.param < b.param : a.at < b.at;
  });
  params.begin.assign(options_.model.params.size() + 1, 0);
  for (const ParamPatch& patch : params.patches) ++params.begin[patch.param + 1];
  std::partial_sum(params.begin.begin(), params.begin.end(), params.begin.begin());
}

void ArgumentBuilder::ListPatchesOfCalls() {
  ParamTables& params = program_.params;
  Table<CallId, std::vector<int32_t>> of_call(program_.calls.size());
  int32_t index = 0;
  for (const ParamPatch& patch : params.patches) of_call[patch.call].push_back(index++);
  for (const std::vector<int32_t>& patches : of_call) {
    for (const int32_t i : patches) params.of_call.Add(i);
    params.of_call.Close();
  }
}

void ArgumentBuilder::PlaceParams() {
  ParamTables& params = program_.params;
  for (const ParamDecl& param : options_.model.params) {
    params.bytes = (params.bytes + param.type.align - 1) / param.type.align * param.type.align;
    params.at.push_back(params.bytes);
    params.bytes += param.type.size;
  }
}

}  // namespace penstock::runtime
