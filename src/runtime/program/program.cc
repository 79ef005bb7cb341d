#include "src/runtime/program/program.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

#include "graph/conflicts/boxes.h"
#include "penstock/detail/arguments.h"

namespace penstock::runtime {
namespace {

using graph::IsHostKind;
using graph::Plan;
using graph::PlanKind;
using graph::PlanNode;
using graph::Space;

constexpr uint32_t kBlockAlign = 16;  // of an argument block, unless an argument needs more
constexpr int kLaunchCommands = 16;  // a guess: a Launch node may submit any number
constexpr int kGraphCommands = 3;  // on a host device's queue

// The offset of a View's dimensions, after its pointer. The layout does not depend on T.
constexpr uint32_t kViewShape = offsetof(View<char>, depth);
static_assert(offsetof(View<char>, data) == 0 && sizeof(View<char>) == kViewShape + 5 * sizeof(int64_t));

driver::CopyKind KindOf(PlanKind kind) {
  switch (kind) {
    case PlanKind::kUpload:
    case PlanKind::kStageIn: return driver::CopyKind::kHostToDevice;
    case PlanKind::kStageOut:
    case PlanKind::kDownload: return driver::CopyKind::kDeviceToHost;
    case PlanKind::kPeerCopy: return driver::CopyKind::kPeer;
    default: return driver::CopyKind::kDeviceToDevice;
  }
}

// For each buffer, the buffer that owns its memory. Alias chains may be long, so none is followed more than one step.
Table<BufferId, BufferId> BasesOf(const Model& model) {
  Table<BufferId, BufferId> bases;
  bases.reserve(model.buffers.size());
  for (const BufferDecl& decl : model.buffers) {
    bases.push_back(decl.is_alias ? bases[decl.alias_of] : bases.next());
  }
  return bases;
}

class Builder {
 public:
  Builder(const Model& model, const Plan& plan, const LoadedKernels& kernels, const Table<DeviceId, bool>& cuda,
          const graph::GraphSchedule* graphs)
      : model_(model),
        plan_(plan),
        kernels_(kernels),
        cuda_(cuda),
        op_of_(plan.nodes.size()),
        graphs_(graphs),
        bases_(BasesOf(model)) {}

  Program Build(bool streams, bool timed, const Table<DeviceId, int>& submission_threads) {
    FindBuffers();
    for (size_t n = 0; n < plan_.nodes.size(); ++n) AddNode(static_cast<int32_t>(n));
    SortParams();
    PlaceParams();
    FindShaping();
    AddDroppedBoxes();
    p_.marked_lanes.resize(plan_.lanes.size());
    AddSchedule(plan_, p_.stream);
    if (streams) MarkLanes(timed, p_.stream);
    if (streams)
      p_.stream.partitions = MakePartitions(p_.stream.commands, p_.stream.segments, plan_.lanes, submission_threads);
    if (graphs_ != nullptr) {
      p_.replay.of_call.assign(p_.calls.size(), -1);
      p_.replay.of_fill.assign(p_.fills.size(), -1);
      for (const graph::GraphPart& part : graphs_->graphs) AddGraph(part);
      p_.replay.lane = graphs_->lane;
      AddSchedule(*graphs_, p_.graphs);
      MarkLanes(timed, p_.graphs);
    }
    for (const graph::HostStep& s : plan_.host_steps) AddHost(s);
    FindHostWaits();
    FindWatched(p_.stream);
    FindWatched(p_.graphs);
    p_.dynamic = !p_.patches.dynamic_ranges.empty() || !p_.patches.dynamic_grids.empty() ||
                 std::find(p_.buffers.dynamic.begin(), p_.buffers.dynamic.end(), true) != p_.buffers.dynamic.end() ||
                 std::any_of(p_.slices.begin(), p_.slices.end(), [](const SliceEntry& s) { return s.dynamic; });
    return std::move(p_);
  }

 private:
  using Op = ExecCommand::Op;

  void FindBuffers() {
    const size_t count = model_.buffers.size();
    p_.buffers.staged.assign(count, -1);
    p_.buffers.bound.assign(count, -1);
    p_.buffers.written.assign(count, false);
    p_.buffers.dynamic.resize(count);
    p_.buffers.max_alignment_alias.assign(count, -1);
    p_.params.instance.assign(model_.params.size(), -1);
    for (size_t b = 0; b < count; ++b) FindBuffer(static_cast<int32_t>(b));
    for (size_t i = 0; i < plan_.instances.size(); ++i) {
      const graph::Instance& instance = plan_.instances[i];
      const auto b = static_cast<size_t>(instance.buffer);
      if (instance.space == Space::kBound) p_.buffers.bound[b] = static_cast<int32_t>(i);
      if (instance.stages) p_.buffers.staged[b] = static_cast<int32_t>(i);
      const int32_t param = model_.buffers[b].param;
      if (param >= 0 && instance.space == Space::kPinned) {
        p_.params.instance[param] = static_cast<int32_t>(i);
      }
    }
    for (size_t b = count; b > 0; --b) {
      if (IsLeased(model_.buffers[b - 1])) p_.buffers.leased = static_cast<int32_t>(b) - 1;
    }
    for (const NodeDecl& node : model_.nodes) {
      for (const AccessDecl& access : node.accesses) {
        if (access.mode == AccessMode::kRead) continue;
        p_.buffers.written[bases_[access.buffer]] = true;
      }
    }
  }

  void FindBuffer(int32_t b) {
    const BufferDecl& decl = model_.buffers[b];
    const bool moves = decl.is_alias && (IsDynamic(decl.box) || p_.buffers.dynamic[decl.alias_of]);
    p_.buffers.dynamic[b] = moves || IsDynamic(decl.extent);
    if (!decl.is_alias) return;
    const BufferId base = bases_[b];
    BufferId& max_alignment_alias = p_.buffers.max_alignment_alias[base];
    const BufferDecl& most = model_.buffers[max_alignment_alias < 0 ? base : max_alignment_alias];
    if (decl.type.align > most.type.align) max_alignment_alias = b;
  }

  void AddNode(int32_t n) {
    const PlanNode& node = plan_.nodes[n];
    switch (node.kind) {
      case PlanKind::kUpload:
      case PlanKind::kDownload:
      case PlanKind::kDeviceCopy:
      case PlanKind::kPeerCopy:
        SetOp(n, Op::kCopy, p_.copies.size());
        AddCopy(n);
        break;
      case PlanKind::kFill:
        SetOp(n, Op::kFill, p_.fills.size());
        AddFill(n);
        break;
      case PlanKind::kLaunch:
        SetOp(n, cuda_[node.device] ? Op::kLaunch : Op::kKernel, p_.calls.size());
        AddCall(n);
        break;
      case PlanKind::kParallelFor:
      case PlanKind::kKernel:
        SetOp(n, Op::kKernel, p_.calls.size());
        AddCall(n);
        break;
      case PlanKind::kHostcall:
        SetOp(n, Op::kHostcall, p_.hostcalls.size());
        AddHostcall(n);
        AddCall(n);
        break;
      case PlanKind::kHost:
        SetOp(n, Op::kKernel, p_.calls.size());
        AddCall(n);
        break;
      case PlanKind::kStageIn:
      case PlanKind::kStageOut:
      case PlanKind::kHostCopy: break;
    }
  }

  void AddHostcall(int32_t n) {
    const int32_t decl = plan_.nodes[n].decl;
    p_.hostcalls.push_back({.node = n,
                            .call = static_cast<int32_t>(p_.calls.size()),
                            .inline_call = model_.nodes[decl].host_way == HostWay::kHostcallInline,
                            .code = kernels_[n].ask});
  }

  void AddCopy(int32_t n) {
    CopyEntry copy = CopyOf(n);
    const bool moves = IsDynamicBox(copy.src_box) || IsDynamicBox(copy.dst_box);
    copy.varies = Varies(copy.src) || Varies(copy.dst) || moves;
    copy.may_have_rows = MayHaveRows(copy.src_box) || MayHaveRows(copy.dst_box);
    if (copy.varies) p_.patches.bound_copies.push_back(static_cast<int32_t>(p_.copies.size()));
    p_.copies.push_back(copy);
  }

  void AddFill(int32_t n) {
    const PlanNode& node = plan_.nodes[n];
    const int32_t box = AddBox(node.decl, 0, false), instance = node.uses[0].instance;
    if (Varies(instance)) p_.patches.bound_fills.push_back(static_cast<int32_t>(p_.fills.size()));
    p_.fills.push_back({n, instance, box, IsDynamicBox(box), Varies(instance) || IsDynamicBox(box)});
  }

  CopyEntry CopyOf(int32_t n) {
    const PlanNode& node = plan_.nodes[n];
    CopyEntry copy{.node = n, .src = node.src, .dst = node.dst, .kind = KindOf(node.kind)};
    copy.src_box = BoxOf(node.copy, AccessMode::kRead, BufferOf(node.src));
    copy.dst_box = BoxOf(node.copy, AccessMode::kWrite, BufferOf(node.dst));
    if (node.when != graph::When::kAlways) {
      const bool from = plan_.instances[node.src].space == Space::kBound;
      copy.bound = BufferOf(from ? node.src : node.dst);
    }
    return copy;
  }

  // A launch also refuses slices that leave their buffer in copies that the plan eliminated.
  void AddDroppedBoxes() {
    std::vector<bool> planned(model_.nodes.size());
    for (const PlanNode& node : plan_.nodes) {
      if (node.decl >= 0) planned[node.decl] = true;
    }
    for (size_t n = 0; n < planned.size(); ++n) {
      if (planned[n]) continue;
      for (int32_t access = 0; access < 2; ++access) AddBox(static_cast<int32_t>(n), access, false);
    }
  }

  // The box that a Copy node reads or writes; all of `buffer` if there is no such node.
  int32_t BoxOf(int32_t decl, AccessMode mode, int32_t buffer) {
    if (decl < 0) return buffer;
    const std::vector<AccessDecl>& accesses = model_.nodes[decl].accesses;
    return AddBox(decl, accesses[0].mode == mode ? 0 : 1, false);
  }

  // The box of an access: a new one, unless it is all of a buffer with memory of its own, which needs no check.
  int32_t AddBox(int32_t decl, int32_t index, bool span) {
    const AccessDecl& access = model_.nodes[decl].accesses[index];
    const auto buffer = static_cast<size_t>(access.buffer);
    const BufferDecl& of = model_.buffers[buffer];
    if (access.box.whole() && !of.is_alias && !(span && of.pitch > 0)) return access.buffer;
    p_.slices.push_back({decl, index, span, p_.buffers.dynamic[buffer] || IsDynamic(access.box)});
    return static_cast<int32_t>(model_.buffers.size() + p_.slices.size()) - 1;
  }
  bool IsSlice(int32_t box) const { return box >= static_cast<int32_t>(model_.buffers.size()); }
  bool IsDynamicBox(int32_t box) const {
    if (!IsSlice(box)) return p_.buffers.dynamic[box];
    return p_.slices[static_cast<size_t>(box) - model_.buffers.size()].dynamic;
  }

  // Whether the rows of a box may have gaps between them.
  bool MayHaveRows(int32_t box) const {
    const BufferDecl& decl =
        model_.buffers[IsSlice(box) ? BufferOfSlice(p_.slices[static_cast<size_t>(box) - model_.buffers.size()]) : box];
    return decl.extent.rank > 1 && (IsSlice(box) || decl.pitch > 0 || decl.is_alias);
  }
  int32_t BufferOfSlice(const SliceEntry& slice) const {
    return model_.nodes[slice.decl].accesses[slice.access].buffer;
  }

  // Whether each launch decides the address of the instance.
  bool Varies(int32_t instance) const {
    const graph::Instance& i = plan_.instances[instance];
    return i.space == Space::kBound || i.stages || model_.buffers[i.buffer].keys != 0;
  }
  bool IsOnDevice(int32_t instance) const { return plan_.instances[instance].device >= 0; }
  int32_t BufferOf(int32_t instance) const { return plan_.instances[instance].buffer; }
  void SetOp(int32_t n, Op op, size_t index) { op_of_[n] = {op, static_cast<int32_t>(index)}; }

  void AddCall(int32_t n) {
    const PlanNode& node = plan_.nodes[n];
    const NodeDecl& decl = model_.nodes[node.decl];
    CallEntry call{.node = n, .decl = node.decl, .block = 0, .argv = static_cast<uint32_t>(p_.args.argv.size())};
    call.align = AlignOf(decl);
    p_.args.align = std::max(p_.args.align, call.align);
    p_.args.image.resize((p_.args.image.size() + call.align - 1) / call.align * call.align);
    call.block = static_cast<uint32_t>(p_.args.image.size());
    call.pointers = static_cast<uint32_t>(p_.args.pointer_offsets.size());
    call.kernel = kernels_[n].by_value;
    if (graphs_ != nullptr) {
      call.kernel_by_ref = kernels_[n].by_ref;
      call.range_by_ref = decl.code.range_by_ref;
    }
    p_.args.image.insert(p_.args.image.end(), decl.arg_block.begin(), decl.arg_block.end());
    for (const ArgDecl& arg : decl.args) AddArg(call, node, decl, arg);
    call.pointer_count = static_cast<uint32_t>(p_.args.pointer_offsets.size()) - call.pointers;
    for (const ArgDecl& arg : decl.args) {
      if (call.range_by_ref != nullptr && arg.ref != 0) p_.args.pointer_offsets.push_back(arg.ref);
    }
    call.ref_count = static_cast<uint32_t>(p_.args.pointer_offsets.size()) - call.pointers - call.pointer_count;
    if (decl.kind == NodeKind::kKernel && HasDynamicGrid(decl.shape)) {
      call.dynamic_range = true;
      p_.patches.dynamic_grids.push_back(static_cast<int32_t>(p_.calls.size()));
    }
    // If launches decide the callable (graph_cache.h), there is none to capture yet.
    const bool captured_later = decl.kind == NodeKind::kLaunch && decl.code.callable == nullptr;
    call.varies = call.varies || call.dynamic_range || captured_later;
    p_.calls.push_back(call);
  }

  // Any block satisfies addresses, Views and Ranges; the type of an access describes elements elsewhere.
  static uint32_t AlignOf(const NodeDecl& decl) {
    uint32_t align = kBlockAlign;
    for (const ArgDecl& arg : decl.args) {
      const bool inside = arg.form == ArgDecl::Form::kValue || arg.form == ArgDecl::Form::kParam;
      if (inside) align = std::max(align, arg.type.align);
    }
    return align;
  }

  void AddArg(CallEntry& call, const PlanNode& node, const NodeDecl& decl, const ArgDecl& arg) {
    const uint32_t at = call.block + arg.offset;
    if (call.range_by_ref != nullptr && arg.ref != 0) {
      const auto argv = static_cast<uint32_t>(p_.args.argv.size());
      p_.params.refs.push_back({static_cast<uint32_t>(arg.index), call.block + arg.ref, argv});
    }
    p_.args.argv.push_back(at);
    switch (arg.form) {
      case ArgDecl::Form::kValue: break;
      case ArgDecl::Form::kParam:
        p_.params.patches.push_back(
            {static_cast<uint32_t>(arg.index), at, arg.size, static_cast<int32_t>(p_.calls.size())});
        call.varies = true;
        break;
      case ArgDecl::Form::kPointer:
      case ArgDecl::Form::kView:
      case ArgDecl::Form::kSpan:
        AddAccess(call, node, decl, arg, at);
        p_.args.pointer_offsets.push_back(arg.offset);
        break;
      case ArgDecl::Form::kRange: {
        const bool dynamic = IsDynamic(decl.extent);
        call.dynamic_range = dynamic;
        (dynamic ? p_.patches.dynamic_ranges : p_.patches.fixed_ranges)
            .push_back({static_cast<int32_t>(p_.calls.size()), at});
        break;
      }
    }
  }

  void AddAccess(CallEntry& call, const PlanNode& node, const NodeDecl& decl, const ArgDecl& arg, uint32_t at) {
    const int32_t instance = node.uses[arg.index].instance;
    const AccessDecl& access = decl.accesses[arg.index];
    const int32_t box = AddBox(node.decl, arg.index, arg.form == ArgDecl::Form::kSpan);
    const bool dynamic = IsDynamicBox(box), moves = dynamic && IsSlice(box);
    (Varies(instance) || moves ? p_.patches.bound_pointers : p_.patches.fixed_pointers).push_back({instance, box, at});
    call.varies = call.varies || Varies(instance) || dynamic;
    if (arg.form == ArgDecl::Form::kPointer) return;
    const uint32_t element_bytes = model_.buffers[access.buffer].type.size;
    (dynamic ? p_.patches.dynamic_shapes : p_.patches.fixed_shapes).push_back({box, element_bytes, at + kViewShape});
  }
  static bool HasDynamicGrid(const KernelShape& shape) {
    if (shape.per_thread) return !shape.threads.is_constant();
    return std::any_of(shape.grid.begin(), shape.grid.end(), [](const Dim& d) { return !d.is_constant(); });
  }

  void SortParams() {
    std::sort(p_.params.patches.begin(), p_.params.patches.end(), [](const ParamPatch& a, const ParamPatch& b) {
      return a.param != b.param ? a.param < b.param : a.at < b.at;
    });
    p_.params.begin.assign(model_.params.size() + 1, 0);
    for (const ParamPatch& patch : p_.params.patches) ++p_.params.begin[patch.param + 1];
    std::partial_sum(p_.params.begin.begin(), p_.params.begin.end(), p_.params.begin.begin());
    std::vector<std::vector<int32_t>> of_call(p_.calls.size());
    for (size_t i = 0; i < p_.params.patches.size(); ++i) {
      of_call[p_.params.patches[i].call].push_back(static_cast<int32_t>(i));
    }
    for (const std::vector<int32_t>& patches : of_call) {
      for (const int32_t i : patches) p_.params.of_call.Add(i);
      p_.params.of_call.Close();
    }
  }

  void FindShaping() {
    p_.params.shaping.resize(model_.params.size());
    for (const BufferDecl& buffer : model_.buffers) Shapes(buffer.extent), Shapes(buffer.box);
    for (const NodeDecl& node : model_.nodes) {
      Shapes(node.extent);
      Shapes(node.shape.threads);
      for (const Dim& dim : node.shape.grid) Shapes(dim);
      for (const AccessDecl& access : node.accesses) Shapes(access.box);
    }
  }
  void Shapes(const Dim& dim) {
    if (!dim.is_constant()) p_.params.shaping[dim.param] = true;
  }
  void Shapes(const Extent& extent) {
    for (int i = 0; i < extent.rank; ++i) Shapes(extent.dims[i]);
  }
  void Shapes(const Box& box) {
    if (!box.whole) Shapes(box.offset), Shapes(box.size);
  }

  void PlaceParams() {
    for (const ParamDecl& param : model_.params) {
      p_.params.bytes = (p_.params.bytes + param.type.align - 1) / param.type.align * param.type.align;
      p_.params.at.push_back(p_.params.bytes);
      p_.params.bytes += param.type.size;
    }
  }

  // `From`: a Plan or a GraphSchedule.
  template <class From>
  void AddSchedule(const From& from, Schedule& to) {
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

  void AddCommand(const graph::Command& c, Schedule& to) {
    ExecCommand command{.op = Op::kGraph, .lane = c.lane, .index = c.arg, .node = -1};
    switch (c.op) {
      case graph::Command::Op::kNode:
        if (c.count > 1) BatchCopies(c.arg, c.count);
        std::tie(command.op, command.index) = op_of_[c.arg];
        command.node = c.arg;
        for (int32_t n = c.arg; n < c.arg + c.count; ++n) to.nodes.Add(n);
        break;
      case graph::Command::Op::kRecord: command.op = Op::kRecord; break;
      case graph::Command::Op::kWait: command.op = Op::kWait; break;
      case graph::Command::Op::kStateWait: command.op = Op::kStateWait; break;
      case graph::Command::Op::kStateWrite: command.op = Op::kStateWrite; break;
      case graph::Command::Op::kStateDone: command.op = Op::kStateDone; break;
      case graph::Command::Op::kWaitExternal:
        to.external_dep_lanes.push_back({c.arg, c.lane});
        command.op = Op::kWaitExternal;
        break;
      case graph::Command::Op::kGraph:
        for (const int32_t n : graphs_->graphs[c.arg].nodes) {
          for (int32_t m = n; m < EndOfBatch(n); ++m) to.nodes.Add(m);
        }
        break;
    }
    to.nodes.Close();
    to.commands.push_back(command);
    if (std::find(to.lanes.begin(), to.lanes.end(), c.lane) == to.lanes.end()) to.lanes.push_back(c.lane);
  }

  int32_t EndOfBatch(int32_t first) const {
    auto end = static_cast<size_t>(first) + 1;
    while (end < plan_.nodes.size() && plan_.nodes[end].batch == first) ++end;
    return static_cast<int32_t>(end);
  }

  // Makes the first of `count` copies stand for all of them, in every schedule.
  void BatchCopies(int32_t first, int32_t count) {
    auto& [op, index] = op_of_[first];
    if (op == Op::kBatch) return;
    p_.batches.push_back({index, count, pieces_});
    pieces_ += count;
    op = Op::kBatch;
    index = static_cast<int32_t>(p_.batches.size()) - 1;
  }

  void AddGraph(const graph::GraphPart& part) {
    GraphProgram& replay = p_.replay;
    for (int32_t i = 0; i < part.preds.rows(); ++i) {
      const int32_t n = part.nodes[i];
      auto [op, index] = op_of_[n];
      const auto entry = static_cast<int32_t>(replay.entries.size());
      if (plan_.nodes[n].kind == PlanKind::kLaunch) op = Op::kLaunch;
      if (op == Op::kLaunch) replay.launch.push_back(entry);
      if (op == Op::kKernel || op == Op::kLaunch) replay.of_call[index] = entry;
      if (op == Op::kFill) replay.of_fill[index] = entry;
      replay.entries.push_back({op, index, n, VariesInGraph(op, static_cast<size_t>(index))});
      if (replay.entries.back().varies) replay.varying.push_back(entry);
      for (const int32_t p : part.preds[i]) replay.preds.Add(p);
      replay.preds.Close();
    }
    replay.begin.push_back(static_cast<int32_t>(replay.entries.size()));
  }

  bool VariesInGraph(Op op, size_t index) const {
    switch (op) {
      case Op::kCopy: return p_.copies[index].varies;
      case Op::kFill: return p_.fills[index].varies;
      case Op::kKernel:
      case Op::kLaunch: return p_.calls[index].varies;
      case Op::kHostcall: return false;  // it never changes
      default: return true;  // launches list the pieces of a batch
    }
  }

  // At most half of what a lane may hold lies between two watermarks, and at most as much after the awaited one.
  void MarkLanes(bool timed, Schedule& schedule) {
    std::vector<int> since(plan_.lanes.size());
    std::vector<bool> marked(plan_.lanes.size());
    for (int32_t c = 0; c < schedule.epilogue_begin; ++c) {
      ExecCommand& command = schedule.commands[c];
      const auto lane = static_cast<size_t>(command.lane);
      since[lane] += (command.op == Op::kLaunch  ? kLaunchCommands
                      : command.op == Op::kGraph ? kGraphCommands
                                                 : 1) +
                     (timed && command.node >= 0 ? 2 : 0);
      if (since[lane] < kMostOutstanding / 2 - kLaunchCommands) continue;
      command.room = marked[lane] ? ExecCommand::FlowControl::kWaitAndRecord : ExecCommand::FlowControl::kRecord;
      marked[lane] = p_.marked_lanes[lane] = true;
      since[lane] = 0;
    }
  }

  void AddHost(const graph::HostStep& step) {
    const int32_t n = step.node;
    const PlanNode& node = plan_.nodes[n];
    if (node.kind == PlanKind::kHost) {
      p_.hosts.push_back({.call = op_of_[n].second});
    } else {
      const bool staged_copies = IsOnDevice(node.src) || IsOnDevice(node.dst);
      const bool cuda = std::find(cuda_.begin(), cuda_.end(), true) != cuda_.end();
      p_.hosts.push_back({.steps = !step.joins,
                          .copy = CopyOf(n),
                          .ring = staged_copies ? p_.staged_copies++ : -1,
                          .past_caches = cuda && node.kind == PlanKind::kStageIn});
    }
    if (!step.joins) task_ = p_.hosts.size() - 1;
    if (step.joins) ++p_.hosts[task_].steps;
  }

  // A step that joins a task waits only for the step before it; the same worker continues with it.
  void FindHostWaits() {
    HostWaits& waits = p_.host_waits;
    std::vector<graph::Edge> steps, events, segments;
    for (size_t s = 0; s < plan_.host_steps.size(); ++s) {
      for (const int32_t step : plan_.host_steps[s].after_hosts) steps.push_back({static_cast<int32_t>(s), step});
      for (const int32_t event : plan_.host_steps[s].after_events) events.push_back({static_cast<int32_t>(s), event});
    }
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      for (const int32_t step : plan_.segments[s].after_hosts) segments.push_back({static_cast<int32_t>(s), step});
    }
    const auto count = static_cast<int32_t>(plan_.host_steps.size());
    waits.after_step = graph::MakeEdges(count, steps);
    waits.segments_after = graph::MakeEdges(count, segments);
    waits.after_event = graph::MakeEdges(static_cast<int32_t>(plan_.events.size()), events);
    waits.of_step.resize(plan_.host_steps.size());
    waits.of_segment.resize(plan_.segments.size());
    CountInto(waits.of_step, waits.after_step);
    CountInto(waits.of_step, waits.after_event);
    CountInto(waits.of_segment, waits.segments_after);
    for (size_t s = 0; s < plan_.host_steps.size(); ++s) {
      if (!plan_.host_steps[s].joins && waits.of_step[s] == 0) waits.first.push_back(static_cast<int32_t>(s));
    }
  }
  static void CountInto(std::vector<int32_t>& counts, const graph::CsrRows& rows) {
    for (int32_t row = 0; row < rows.rows(); ++row) {
      for (const int32_t item : rows[row]) ++counts[item];
    }
  }

  void FindWatched(Schedule& schedule) {
    std::vector<std::vector<WatchedEvent>> of_lane(plan_.lanes.size());
    for (size_t s = 0; s < schedule.segments.size(); ++s) {
      for (int32_t c = schedule.segments[s].begin; c < schedule.segments[s].end; ++c) {
        const ExecCommand& command = schedule.commands[c];
        if (command.op != Op::kRecord || p_.host_waits.after_event[command.index].empty()) continue;
        of_lane[command.lane].push_back({command.index, static_cast<int32_t>(s)});
      }
    }
    for (std::vector<WatchedEvent>& events : of_lane) {
      if (!events.empty()) schedule.watched.push_back(std::move(events));
    }
  }

  const Model& model_;
  const Plan& plan_;
  const LoadedKernels& kernels_;
  const Table<DeviceId, bool>& cuda_;
  std::vector<std::pair<Op, int32_t>> op_of_;
  const graph::GraphSchedule* const graphs_;
  const Table<BufferId, BufferId> bases_;
  int32_t pieces_ = 0;
  size_t task_ = 0;  // Program::hosts: the first step of the task that others may join
  Program p_;
};

}  // namespace

Program BuildProgram(const Model& model, const graph::Plan& plan, const LoadedKernels& kernels,
                     const Table<DeviceId, bool>& cuda, const graph::GraphSchedule* graphs, bool streams, bool timed,
                     const Table<DeviceId, int>& submission_threads) {
  return Builder(model, plan, kernels, cuda, graphs).Build(streams, timed, submission_threads);
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
