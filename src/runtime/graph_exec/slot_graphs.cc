#include "src/runtime/graph_exec/slot_graphs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/copy_box.h"
#include "src/driver/current_device.h"
#include "src/driver/node_op.h"
#include "src/runtime/calls/launch_call.h"
#include "src/runtime/core/synchronize_stream.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

constexpr size_t kScratchBytes = 256;  // on each side; placeholders are of one byte, and never run

// How many arguments of nodes each parameter is.
std::vector<int32_t> UsesOfParams(const Program& program) {
  std::vector<int32_t> uses;
  const std::vector<uint32_t>& begin = program.params.begin;
  for (size_t p = 0; p + 1 < begin.size(); ++p) uses.push_back(static_cast<int32_t>(begin[p + 1] - begin[p]));
  return uses;
}

bool IsEmpty(const driver::CopyOp& op) { return op.width == 0 || op.height == 0 || op.depth == 0; }
bool IsEmpty(const driver::FillOp& op) { return op.count == 0 || op.height == 0 || op.depth == 0; }

// Between kernels a copy engine is dear, 8 us each way on an H200: up, two kernels and down of 64 KiB take 28 us with
// copy nodes, 13 with kernels that copy; of 1 MiB 66 and 58, of 4 MiB the same. Of a size that a launch decides nothing
// is known here.
constexpr size_t kSmallBytes = 65536;
bool IsSmall(const driver::CopyOp& op) {
  const bool host = op.kind == driver::CopyKind::kHostToDevice || op.kind == driver::CopyKind::kDeviceToHost;
  return host && !IsEmpty(op) && op.width * op.height * op.depth <= kSmallBytes;
}

bool IsSame(const driver::CopyOp& a, const driver::CopyOp& b) {
  const bool box = a.width == b.width && a.height == b.height && a.depth == b.depth;
  const bool rows = a.dst_pitch == b.dst_pitch && a.src_pitch == b.src_pitch;
  return a.dst == b.dst && a.src == b.src && box && rows && a.dst_slice == b.dst_slice && a.src_slice == b.src_slice;
}

bool IsSame(const driver::FillOp& a, const driver::FillOp& b) {
  const bool box = a.count == b.count && a.height == b.height && a.depth == b.depth;
  return a.dst == b.dst && box && a.pitch == b.pitch && a.slice == b.slice && a.pattern == b.pattern;
}

}  // namespace

SlotGraphs::SlotGraphs(const Options& options, Slot& slot)
    : options_(options),
      plan_(slot.graph().plan()),
      program_(slot.graph().program()),
      device_(slot.graph().device(plan_.lanes[static_cast<size_t>(program_.replay.lane)].device)),
      replay_(program_.replay),
      slot_(slot),
      tables_(slot.tables),
      driver_(*device_.driver),
      nodes_(replay_.entries.size()),
      made_(static_cast<size_t>(replay_.graphs())),
      set_copies_(tables_.copies),
      set_batches_(tables_.batches),
      set_fills_(tables_.fills),
      set_args_(tables_.args.span().begin(), tables_.args.span().end()),
      indirection_(nodes_.size(), UsesOfParams(program_)) {
  for (const driver::KernelOp& op : tables_.kernels) set_kernels_.push_back(KernelOf(op));
  differing_.reserve(nodes_.size());
  for (int32_t g = 0; g < replay_.graphs(); ++g) {
    for (int32_t e = replay_.begin[static_cast<size_t>(g)]; e < replay_.begin[static_cast<size_t>(g) + 1]; ++e) {
      nodes_[static_cast<size_t>(e)].graph = g;
    }
  }
}

absl::StatusOr<std::unique_ptr<SlotGraphs>> SlotGraphs::Create(const Options& options, Slot& slot) {
  std::unique_ptr<SlotGraphs> replay(new SlotGraphs(options, slot));
  const driver::CurrentDevice current(replay->driver_, replay->device_.local);
  replay->FindPieces();
  PENSTOCK_RETURN_IF_ERROR(replay->MakeScratch());
  if (slot.graph().trace() != nullptr && !replay->nodes_.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(replay->timestamps_, NodeTimestamps::Create({.replay = &replay->replay_,
                                                                           .driver = &replay->driver_,
                                                                           .device = replay->device_.local,
                                                                           .pinned = &slot.options().pinned,
                                                                           .pinned_node = slot.options().pinned_node,
                                                                           .fault = &slot.fault}));
  }
  PENSTOCK_RETURN_IF_ERROR(replay->CaptureWhatIsKnown());
  for (int32_t g = 0; g < replay->replay_.graphs(); ++g) {
    if (!replay->WaitsForCapture(g)) PENSTOCK_RETURN_IF_ERROR(replay->MakeGraph(g, false));
  }
  if (options.upload) PENSTOCK_RETURN_IF_ERROR(replay->UploadAll());
  return replay;
}

absl::StatusOr<std::unique_ptr<SlotGraphs>> SlotGraphs::Export(const Options& options, Slot& slot) {
  std::unique_ptr<SlotGraphs> replay(new SlotGraphs(options, slot));
  replay->exported_ = true;
  const driver::CurrentDevice current(replay->driver_, replay->device_.local);
  replay->FindPieces();
  PENSTOCK_RETURN_IF_ERROR(replay->MakeScratch());
  PENSTOCK_RETURN_IF_ERROR(replay->CaptureAll());
  PENSTOCK_ASSIGN_OR_RETURN(replay->whole_, replay->Join());
  replay->native_whole_ = replay->driver_.NativeGraph(replay->whole_);
  return replay;
}

absl::Status SlotGraphs::CaptureAll() {
  for (const int32_t e : replay_.launch) {
    absl::StatusOr<bool> captured = CaptureEntry(e);
    if (captured.ok() && *captured) continue;
    const absl::Status failed =
        captured.ok() ? absl::ResourceExhaustedError("its callable is running as often as it may; try again later")
                      : captured.status();
    return base::WithNode(failed, replay_.entries[static_cast<size_t>(e)].node);
  }
  return absl::OkStatus();
}

// One graph alone is all there is, several are children.
absl::StatusOr<driver::Graph> SlotGraphs::Join() {
  Chain chain{.graph = {}, .last = {}, .steps = std::vector<bool>(tables_.is_noop.size())};
  const auto idle = std::count(tables_.is_noop.begin(), tables_.is_noop.end(), true);
  const bool alone = replay_.graphs() == 1 && static_cast<size_t>(idle) == chain.steps.size();
  PENSTOCK_ASSIGN_OR_RETURN(chain.graph, driver_.CreateGraph(device_.local));
  absl::Status joined = alone ? AddNodes(0, chain.graph, true) : JoinInto(chain);
  if (joined.ok()) return chain.graph;
  driver_.DestroyGraph(chain.graph);
  return joined;
}

// Graphs and host steps one behind the other, as a run submits them: each segment behind the steps that it waits for.
absl::Status SlotGraphs::JoinInto(Chain& chain) {
  const Schedule& schedule = program_.graphs;
  for (const graph::Segment& segment : schedule.segments) {
    for (const int32_t step : segment.after_hosts) PENSTOCK_RETURN_IF_ERROR(AddHostStep(step, chain));
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const ExecCommand& command = schedule.commands[static_cast<size_t>(c)];
      if (command.op == Op::kGraph) PENSTOCK_RETURN_IF_ERROR(AddPart(command.index, chain));
    }
  }
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    PENSTOCK_RETURN_IF_ERROR(AddHostStep(static_cast<int32_t>(s), chain));
  }
  return absl::OkStatus();
}

absl::Status SlotGraphs::AddPart(int32_t graph, Chain& chain) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph part, driver_.CreateGraph(device_.local));
  absl::Status added = AddNodes(graph, part, true);
  if (added.ok()) {
    const absl::StatusOr<int32_t> child = driver_.AddChild(chain.graph, chain.last, part);
    if (child.ok()) chain.last.assign(1, *child);
    added = child.status();
  }
  driver_.DestroyGraph(part);
  return added;
}

// Behind those that it waits for. They may be as many as the plan has, so a list says what is still to be done: a step
// stands on it before those that it waits for.
absl::Status SlotGraphs::AddHostStep(int32_t last, Chain& chain) {
  std::vector<int32_t> open = {last};
  while (!open.empty()) {
    const int32_t step = open.back();
    const auto s = static_cast<size_t>(step);
    const graph::HostStep& planned = plan_.host_steps[s];
    const size_t before = open.size();
    const auto open_first = [&](int32_t other) {
      if (!chain.steps[static_cast<size_t>(other)]) open.push_back(other);
    };
    if (!chain.steps[s]) {
      if (planned.joins) open_first(step - 1);
      std::for_each(planned.after_hosts.rbegin(), planned.after_hosts.rend(), open_first);
      if (open.size() > before) continue;
    }
    open.pop_back();
    const bool has_been_added = chain.steps[s];
    chain.steps[s] = true;
    if (has_been_added || tables_.is_noop[s]) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const int32_t added,
                              AddHost({.node = planned.node, .step = step}, chain.graph, chain.last));
    chain.last.assign(1, added);
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> SlotGraphs::AddHost(const ExportedNode& node, driver::Graph to,
                                            std::span<const int32_t> after) {
  HostNode& host = *host_nodes_.emplace_back(std::make_unique<HostNode>());
  host = {.node = node, .slot = &slot_, .code = {.call = &SlotGraphs::CallHostNode, .context = &host}};
  return driver_.AddHost(to, after, host.code);
}

void SlotGraphs::CallHostNode(void* context) {
  const HostNode& of = *static_cast<const HostNode*>(context);
  CallExportedNode(of.slot->graph(), *of.slot, of.node);
}

void SlotGraphs::Drop() {
  const driver::CurrentDevice current(driver_, device_.local);
  for (Made& made : made_) {
    if (made.exec) driver_.DestroyExec(made.exec);
    made.exec = {};
  }
  for (Node& node : nodes_) DestroyChild(node);
  if (whole_) driver_.DestroyGraph(whole_);
  whole_ = {};
}

void SlotGraphs::DestroyChild(Node& node) {
  if (node.child) driver_.DestroyGraph(node.child);
  node.child = {};
}

SlotGraphs::~SlotGraphs() {
  Drop();
  const driver::CurrentDevice current(driver_, device_.local);
  slot_.options().runtime.FreeDevice(device_, scratch_);
}

// Which copies are batches of one piece: those that no graph takes as copies, or only as long as they stay as they are;
// and small ones to and from the host, which take half the time so.
void SlotGraphs::FindPieces() {
  for (size_t e = 0; e < nodes_.size(); ++e) {
    const GraphNodeEntry& entry = replay_.entries[e];
    if (entry.op != Op::kCopy) continue;
    const CopyEntry& copy = program_.copies[static_cast<size_t>(entry.index)];
    const driver::CopyOp& op = tables_.copies[static_cast<size_t>(entry.index)];
    const bool rows = program_.dynamic ? copy.may_have_rows : !driver::ShapeOf(&op).line;
    const bool refused = !IsEmpty(op) && !driver::CheckNode(&op).ok();
    if (!(entry.varies && rows) && !refused && !(IsSmall(op) && !exported_)) continue;
    nodes_[e].piece = static_cast<int32_t>(piece_ops_.size());
    set_pieces_.emplace_back();
    piece_ops_.push_back({.kind = op.kind, .count = 1, .size = {1, 1}, .tag = op.tag});
  }
}

absl::Status SlotGraphs::MakeScratch() {
  if (nodes_.empty()) return absl::OkStatus();
  const size_t tables = (piece_ops_.size() + 1) * sizeof(driver::CopyPiece);
  const size_t params = std::max<size_t>(program_.params.bytes, 1);
  PENSTOCK_ASSIGN_OR_RETURN(pinned_,
                            slot_.options().pinned.Allocate(kScratchBytes + tables, slot_.options().pinned_node));
  PENSTOCK_ASSIGN_OR_RETURN(scratch_, driver_.AllocateDevice(device_.local, 2 * kScratchBytes + params));
  pieces_ = reinterpret_cast<driver::CopyPiece*>(static_cast<std::byte*>(pinned_.data()) + kScratchBytes);
  for (size_t p = 0; p < piece_ops_.size(); ++p) {
    pieces_[p] = {};
    piece_ops_[p].pieces = pieces_ + p;
  }
  if (!exported_) MakeRefs();  // which are the slot's
  return absl::OkStatus();
}

// Nodes that fail their run keep no later one from its parameters: the copy is nobody's.
void SlotGraphs::MakeRefs() {
  std::byte* const params = static_cast<std::byte*>(scratch_) + 2 * kScratchBytes;
  driver::CopyPiece& piece = pieces_[piece_ops_.size()];
  const bool refs = !program_.params.refs.empty();
  const size_t bytes = refs ? tables_.param_bytes.size() : 1;
  piece = {.dst = params,
           .src = refs ? static_cast<const void*>(tables_.param_bytes.data()) : pinned_.data(),
           .width = bytes};
  refresh_ = {.pieces = &piece, .count = 1, .size = {bytes, bytes}};
  ref_argv_ = tables_.argv;
  for (const RefPatch& ref : program_.params.refs) {
    const void* const at = params + program_.params.at[ref.param];
    std::memcpy(tables_.args.data() + ref.at, &at, sizeof(at));
    ref_argv_[ref.argv] = tables_.args.data() + ref.at;
  }
  const std::span<const std::byte> args = tables_.args.span();
  set_args_.assign(args.begin(), args.end());
}

absl::Status SlotGraphs::CaptureWhatIsKnown() {
  for (const int32_t e : replay_.launch) {
    const GraphNodeEntry& entry = replay_.entries[static_cast<size_t>(e)];
    if (entry.varies) continue;
    const absl::StatusOr<bool> captured = CaptureEntry(e);
    if (captured.ok()) continue;  // nobody else calls it before its executable is compiled
    return base::WithNode(slot_.graph().Describe(entry.node, captured.status()), entry.node);
  }
  return absl::OkStatus();
}

bool SlotGraphs::WaitsForCapture(int32_t graph) const {
  const auto g = static_cast<size_t>(graph);
  const auto from = [&](size_t of) {
    return std::lower_bound(replay_.launch.begin(), replay_.launch.end(), replay_.begin[of]);  // they are ascending
  };
  return std::any_of(from(g), from(g + 1), [&](int32_t e) { return !nodes_[static_cast<size_t>(e)].child; });
}

absl::StatusOr<bool> SlotGraphs::Capture() {
  if (replay_.launch.empty()) return true;
  for (const int32_t e : all_differ_ ? replay_.launch : differing_) {
    const GraphNodeEntry& entry = replay_.entries[static_cast<size_t>(e)];
    const Node& of = nodes_[static_cast<size_t>(e)];
    if (entry.op != Op::kLaunch || (of.known && IsSet(entry, of))) continue;
    absl::StatusOr<bool> captured = CaptureEntry(e);
    if (captured.ok() && *captured) continue;
    if (captured.ok()) return false;
    all_differ_ = true;
    return base::WithNode(captured.status(), entry.node);
  }
  return true;
}

// A child of another structure has its graph made anew.
absl::StatusOr<bool> SlotGraphs::CaptureEntry(int32_t e) {
  const GraphNodeEntry& entry = replay_.entries[static_cast<size_t>(e)];
  Node& node = nodes_[static_cast<size_t>(e)];
  Made& made = MadeOf(node);
  if (!slot_.graph().EnterGate(entry.node)) return false;
  const Timed timed(capturing_ns_);
  node.known = false;
  const int32_t lane = plan_.nodes[static_cast<size_t>(entry.node)].lane;
  LaunchObjects& objects = options_.launch[static_cast<size_t>(lane)];
  const absl::StatusOr<CapturedLaunch> captured = CaptureLaunch(slot_.graph(), slot_, objects, entry.index);
  slot_.graph().LeaveGate(entry.node);
  PENSTOCK_RETURN_IF_ERROR(captured.status());
  captures_ += captured->calls;
  DestroyChild(node);
  node.child = captured->graph;
  if (!made.anew) {
    ++sets_;
    absl::Status set = driver_.SetChild(made.exec, node.number, node.child);
    if (!set.ok() && set.code() != absl::StatusCode::kFailedPrecondition) return set;
    if (!set.ok()) MakeAnewFor(node, base::Str(slot_.graph().Describe(entry.node, set).message()));
  }
  Keep(entry, node);
  node.known = true;
  return true;
}

// `bound`: by a launch, so that everything is known. Else what varies is set by the first launch, before it runs.
absl::Status SlotGraphs::MakeGraph(int32_t graph, bool bound) {
  const Timed timed(instantiating_ns_);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph nodes, driver_.CreateGraph(device_.local));
  const auto instantiate = [&]() -> absl::StatusOr<driver::GraphExec> {
    PENSTOCK_RETURN_IF_ERROR(AddNodes(graph, nodes, bound));
    return driver_.Instantiate(nodes);
  };
  const absl::StatusOr<driver::GraphExec> exec = instantiate();
  driver_.DestroyGraph(nodes);
  PENSTOCK_RETURN_IF_ERROR(exec.status());
  ++instantiations_;
  Made& made = made_[static_cast<size_t>(graph)];
  if (made.exec) driver_.DestroyExec(made.exec);
  made.exec = *exec;
  made.anew = false;
  return SwitchOff(graph, bound);
}

absl::Status SlotGraphs::AddNodes(int32_t graph, driver::Graph to, bool bound) {
  const int32_t begin = replay_.begin[static_cast<size_t>(graph)], end = replay_.begin[static_cast<size_t>(graph) + 1];
  std::vector<int32_t> after;
  PENSTOCK_RETURN_IF_ERROR(AddHead(graph, to));
  const int32_t head = made_[static_cast<size_t>(graph)].head;
  std::vector<bool> led(static_cast<size_t>(end - begin));  // what comes behind the head
  for (int32_t e = begin; e < end; ++e) {
    const int32_t planned = replay_.entries[static_cast<size_t>(e)].node;
    const auto at = static_cast<size_t>(e - begin);
    after.clear();
    for (const int32_t p : replay_.preds[e]) {
      after.push_back(nodes_[static_cast<size_t>(begin) + static_cast<size_t>(p)].last);
      led[at] = led[at] || led[static_cast<size_t>(p)];
    }
    if (head >= 0 && !led[at] && WantsHead(graph, e)) {
      after.push_back(head);
      led[at] = true;
    }
    const int priority = plan_.nodes[static_cast<size_t>(planned)].priority;
    const absl::Status added = AddEntry(e, to, after, priority, bound);
    if (!added.ok()) return slot_.graph().Describe(planned, added);
  }
  return absl::OkStatus();
}

// The node of an entry, and the stamps around it.
absl::Status SlotGraphs::AddEntry(int32_t e, driver::Graph to, std::vector<int32_t>& after, int priority, bool bound) {
  Node& node = nodes_[static_cast<size_t>(e)];
  if (timestamps_ != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool added, timestamps_->AddBegin(e, to, after, priority));
    nodes_made_ += added ? 1 : 0;
  }
  PENSTOCK_ASSIGN_OR_RETURN(node.number,
                            AddNode(replay_.entries[static_cast<size_t>(e)], node, to, after, priority, bound));
  ++nodes_made_;
  node.last = node.number;
  node.enabled = true;
  if (timestamps_ == nullptr) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(node.last, timestamps_->AddEnd(e, to, node.number, priority));
  ++nodes_made_;
  return absl::OkStatus();
}

// What begins its graph, and what may read the head's parameters; but no copy of the copy engines', which would begin 8
// us later behind a kernel, even one that is switched off.
bool SlotGraphs::WantsHead(int32_t graph, int32_t e) const {
  const GraphNodeEntry& entry = replay_.entries[static_cast<size_t>(e)];
  if (entry.op == Op::kCopy && nodes_[static_cast<size_t>(e)].piece < 0) return false;
  return replay_.preds[e].empty() || (graph == refreshed_by_ && MayReadParams(entry));
}

// The first graph with nodes that may read parameters by reference brings these; no graph behind it runs before.
absl::Status SlotGraphs::AddHead(int32_t graph, driver::Graph to) {
  if (exported_) return absl::OkStatus();
  int roots = 0, priority = 0;
  bool refs = false;
  for (int32_t e = replay_.begin[static_cast<size_t>(graph)]; e < replay_.begin[static_cast<size_t>(graph) + 1]; ++e) {
    const GraphNodeEntry& entry = replay_.entries[static_cast<size_t>(e)];
    roots += replay_.preds[e].empty() && WantsHead(graph, e) ? 1 : 0;
    refs = refs || MayReadParams(entry);
    priority = std::min(priority, plan_.nodes[static_cast<size_t>(entry.node)].priority);
  }
  const bool refreshes = refs && (refreshed_by_ < 0 || refreshed_by_ == graph);
  if (roots < 2 && !refreshes) return absl::OkStatus();
  if (refreshes) refreshed_by_ = graph;
  Made& made = made_[static_cast<size_t>(graph)];
  PENSTOCK_ASSIGN_OR_RETURN(made.head, driver_.AddNode(to, {}, &refresh_, priority));
  made.head_enabled = true;
  ++nodes_made_;
  return absl::OkStatus();
}

bool SlotGraphs::MayReadParams(const GraphNodeEntry& entry) const {
  return entry.op == Op::kKernel && program_.calls[static_cast<size_t>(entry.index)].range_by_ref != nullptr;
}

absl::StatusOr<int32_t> SlotGraphs::AddNothing(driver::Graph to, const std::vector<int32_t>& after) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph empty, driver_.CreateGraph(device_.local));
  absl::StatusOr<int32_t> number = driver_.AddChild(to, after, empty);
  driver_.DestroyGraph(empty);
  return number;
}

absl::StatusOr<int32_t> SlotGraphs::AddNode(const GraphNodeEntry& entry, Node& node, driver::Graph to,
                                            const std::vector<int32_t>& after, int priority, bool bound) {
  if (entry.op == Op::kLaunch) return driver_.AddChild(to, after, node.child);
  if (exported_ && entry.op == Op::kHostcall) {  // nobody would answer
    return AddHost({.node = entry.node, .hostcall = entry.index}, to, after);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Wanted wanted, WantedOf(entry, node));
  if (exported_ && wanted.off) return AddNothing(to, after);
  node.known = (bound || !entry.varies) && !wanted.off;
  if (node.known) Keep(entry, node);
  if (node.known) return driver_.AddNode(to, after, wanted.op, priority);
  switch (entry.op) {
    case Op::kKernel: {
      driver::KernelOp op = tables_.kernels[static_cast<size_t>(entry.index)];
      if (wanted.off) op.grid = {1, 1, 1}, op.rows = 1;
      return driver_.AddNode(to, after, &op, priority);
    }
    case Op::kBatch: {
      driver::BatchOp op = tables_.batches[static_cast<size_t>(entry.index)];
      if (wanted.off) op.count = 1, op.size = {1, 1};
      return driver_.AddNode(to, after, &op, priority);
    }
    case Op::kFill: {
      driver::FillOp op = tables_.fills[static_cast<size_t>(entry.index)];
      op.dst = scratch_;
      op.count = op.height = op.depth = 1;
      return driver_.AddNode(to, after, &op, priority);
    }
    default: break;
  }
  if (node.piece >= 0) return driver_.AddNode(to, after, &piece_ops_[static_cast<size_t>(node.piece)], priority);
  driver::CopyOp op = tables_.copies[static_cast<size_t>(entry.index)];
  std::byte* const device = static_cast<std::byte*>(scratch_);
  op.dst = op.kind == driver::CopyKind::kDeviceToHost ? pinned_.data() : device;
  op.src = op.kind == driver::CopyKind::kHostToDevice ? pinned_.data() : device + kScratchBytes;
  op.width = op.height = op.depth = 1;
  return driver_.AddNode(to, after, &op, priority);
}

absl::Status SlotGraphs::SwitchOff(int32_t graph, bool bound) {
  const auto begin = static_cast<size_t>(replay_.begin[static_cast<size_t>(graph)]);
  const auto end = static_cast<size_t>(replay_.begin[static_cast<size_t>(graph) + 1]);
  for (size_t e = begin; e < end; ++e) {
    if (nodes_[e].known || (replay_.entries[e].varies && !bound)) continue;
    const absl::Status off = Enable(nodes_[e], false);
    if (!off.ok()) return slot_.graph().Describe(replay_.entries[e].node, off);
  }
  return EnableHead(graph, graph == refreshed_by_ && indirection_.stale());
}

// Who has uploaded cannot destroy before that has ended, so that is awaited whatever fails.
absl::Status SlotGraphs::UploadAll() {
  if (nodes_.empty()) return absl::OkStatus();
  const driver::Stream stream = slot_.queues.streams[static_cast<size_t>(replay_.lane)];
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, driver_.CreateEvent(device_.local, false));
  absl::Status uploaded;
  for (const Made& made : made_) {
    if (uploaded.ok() && made.exec) uploaded = driver_.Upload(made.exec, stream);
  }
  const absl::Status awaited = AwaitStream(driver_, event, stream, slot_.options().runtime.event_count());
  driver_.DestroyEvent(event);
  return uploaded.ok() ? awaited : uploaded;
}

bool SlotGraphs::ReadsByRef(size_t param) { return indirection_.AllRead(param); }

bool SlotGraphs::TakesParam(int32_t call) {
  const int32_t entry = replay_.of_call[static_cast<size_t>(call)];
  if (entry < 0) return true;
  if (indirection_.Reads(entry)) return false;
  Mark(entry);
  return true;
}

void SlotGraphs::ValueDiffers(int32_t call) {
  if (const int32_t entry = replay_.of_call[static_cast<size_t>(call)]; entry >= 0) Mark(entry);
}

void SlotGraphs::FillDiffers(int32_t fill) {
  if (const int32_t entry = replay_.of_fill[static_cast<size_t>(fill)]; entry >= 0) Mark(entry);
}

// Who captured it has captured what it had then.
void SlotGraphs::CallableDiffers(int32_t call) {
  const int32_t entry = replay_.of_call[static_cast<size_t>(call)];
  if (entry < 0 || replay_.entries[static_cast<size_t>(entry)].op != Op::kLaunch) return;
  nodes_[static_cast<size_t>(entry)].known = false;
  Mark(entry);
}

void SlotGraphs::Mark(int32_t entry) {
  Node& node = nodes_[static_cast<size_t>(entry)];
  if (node.marked) return;
  node.marked = true;
  differing_.push_back(entry);
}

absl::Status SlotGraphs::Update() {
  ChangeIndirection();
  absl::Status updated;
  if (all_differ_) updated = UpdateEntries(replay_.varying);
  if (updated.ok()) updated = UpdateEntries(differing_);  // of which some may not vary from launch to launch
  if (!updated.ok()) {
    all_differ_ = true;
    return updated;
  }
  PENSTOCK_RETURN_IF_ERROR(MakeAnew());
  for (const int32_t e : differing_) nodes_[static_cast<size_t>(e)].marked = false;
  differing_.clear();
  all_differ_ = false;
  return refreshed_by_ < 0 ? absl::OkStatus() : EnableHead(refreshed_by_, indirection_.stale());
}

absl::Status SlotGraphs::MakeAnew() {
  for (int32_t g = 0; any_anew_ && g < replay_.graphs(); ++g) {
    if (made_[static_cast<size_t>(g)].anew) PENSTOCK_RETURN_IF_ERROR(MakeGraph(g, true));
  }
  any_anew_ = false;
  return absl::OkStatus();
}

// Graphs are made again for it, though CUDA would set another kernel: such a node would begin 0.11 us later from then
// on, whatever is set after that.
void SlotGraphs::ChangeIndirection() {
  if (all_differ_) return;
  if (indirection_.ShouldEnable(differing_.size())) {
    for (const int32_t e : differing_) EnableIndirection(e);
  }
  if (indirection_.ShouldDisable()) indirection_.DisableAll([this](int32_t e) { DisableIndirection(e); });
}

void SlotGraphs::EnableIndirection(int32_t entry) {
  const GraphNodeEntry& of = replay_.entries[static_cast<size_t>(entry)];
  if (!MayReadParams(of) || !indirection_.Enable(entry)) return;
  for (const int32_t p : program_.params.of_call[of.index]) {
    indirection_.TakeFrom(program_.params.patches[static_cast<size_t>(p)].param);
  }
  MakeAnewFor(nodes_[static_cast<size_t>(entry)], "the parameters of many nodes come by one copy from now on");
}

// Its arguments have not been kept.
void SlotGraphs::DisableIndirection(int32_t entry) {
  const GraphNodeEntry& of = replay_.entries[static_cast<size_t>(entry)];
  for (const int32_t p : program_.params.of_call[of.index]) {
    const ParamPatch& patch = program_.params.patches[static_cast<size_t>(p)];
    const std::byte* const value = tables_.param_bytes.data() + program_.params.at[patch.param];
    std::memcpy(tables_.args.data() + patch.at, value, patch.size);
    indirection_.GiveBack(patch.param);
  }
  MakeAnewFor(nodes_[static_cast<size_t>(entry)], "parameters have stayed as they were, and are its nodes' own again");
}

void SlotGraphs::MakeAnewFor(const Node& node, std::string why) {
  Made& made = MadeOf(node);
  if (made.anew) return;
  made.anew = any_anew_ = true;
  base::MutexLock lock(mu_);
  remade_ = std::move(why);
}

absl::Status SlotGraphs::UpdateEntries(const std::vector<int32_t>& entries) {
  for (const int32_t e : entries) {
    const absl::Status updated = UpdateEntry(replay_.entries[static_cast<size_t>(e)], nodes_[static_cast<size_t>(e)]);
    if (!updated.ok()) return base::WithNode(updated, replay_.entries[static_cast<size_t>(e)].node);
  }
  return absl::OkStatus();
}

absl::Status SlotGraphs::UpdateEntry(const GraphNodeEntry& entry, Node& node) {
  if (entry.op == Op::kLaunch || MadeOf(node).anew) return absl::OkStatus();  // Capture and MakeAnew see to it
  PENSTOCK_ASSIGN_OR_RETURN(const Wanted wanted, WantedOf(entry, node));
  if (!wanted.off && !(node.known && IsSet(entry, node))) {
    node.known = false;
    ++sets_;
    PENSTOCK_RETURN_IF_ERROR(driver_.SetNode(MadeOf(node).exec, node.number, wanted.op));
    Keep(entry, node);
    node.known = true;
  }
  return node.enabled == wanted.off ? Enable(node, !wanted.off) : absl::OkStatus();
}

absl::Status SlotGraphs::EnableHead(int32_t graph, bool enabled) {
  Made& made = made_[static_cast<size_t>(graph)];
  if (made.head < 0 || made.head_enabled == enabled) return absl::OkStatus();
  ++switches_;
  const absl::Status status = driver_.EnableNode(made.exec, made.head, enabled);
  if (!status.ok()) return base::Prefixed("switching the copy of parameters, the first node of a graph", status);
  made.head_enabled = enabled;
  return absl::OkStatus();
}

absl::Status SlotGraphs::Enable(Node& node, bool enabled) {
  ++switches_;
  PENSTOCK_RETURN_IF_ERROR(driver_.EnableNode(MadeOf(node).exec, node.number, enabled));
  node.enabled = enabled;
  return absl::OkStatus();
}

absl::StatusOr<SlotGraphs::Wanted> SlotGraphs::WantedOf(const GraphNodeEntry& entry, const Node& node) {
  const bool by_ref = indirection_.by_ref(static_cast<int32_t>(&node - nodes_.data()));
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel: return Wanted{by_ref ? ByRef(entry.index) : &tables_.kernels[i], tables_.kernels[i].rows == 0};
    case Op::kFill: return Wanted{&tables_.fills[i], IsEmpty(tables_.fills[i])};
    case Op::kBatch: return Wanted{&tables_.batches[i], tables_.batches[i].count == 0};
    case Op::kHostcall: return Wanted{&options_.hostcalls->op(entry.index), false};
    default: break;
  }
  const driver::CopyOp& copy = tables_.copies[i];
  const bool off = tables_.copies_off[i] || IsEmpty(copy);
  if (node.piece < 0) return Wanted{&copy, off};
  driver::BatchOp& batch = piece_ops_[static_cast<size_t>(node.piece)];
  if (off) return Wanted{&batch, true};
  PENSTOCK_ASSIGN_OR_RETURN(pieces_[node.piece], driver::PieceOf(copy));
  PENSTOCK_ASSIGN_OR_RETURN(batch.size, driver::SizeOf(batch));
  return Wanted{&batch, false};
}

// Until the next call.
const driver::KernelOp* SlotGraphs::ByRef(int32_t call) {
  const CallEntry& entry = program_.calls[static_cast<size_t>(call)];
  by_ref_ = tables_.kernels[static_cast<size_t>(call)];
  by_ref_.kernel = entry.kernel_by_ref.kernel;
  by_ref_.awaits = entry.kernel_by_ref.awaits;
  by_ref_.range = entry.range_by_ref;
  by_ref_.argv = ref_argv_.data() + entry.argv;
  by_ref_.pointer_count += entry.ref_count;
  return &by_ref_;
}

bool SlotGraphs::IsSet(const GraphNodeEntry& entry, const Node& node) const {
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel:
    case Op::kLaunch: {
      const driver::KernelOp& op = tables_.kernels[i];
      const auto at = static_cast<size_t>(op.args - tables_.args.data());
      return set_kernels_[i] == KernelOf(op) && std::memcmp(set_args_.data() + at, op.args, op.args_size) == 0;
    }
    case Op::kFill: return IsSame(set_fills_[i], tables_.fills[i]);
    case Op::kBatch:
      return set_batches_[i].count == tables_.batches[i].count && set_batches_[i].size == tables_.batches[i].size;
    case Op::kHostcall: return true;
    default: break;
  }
  if (node.piece < 0) return IsSame(set_copies_[i], tables_.copies[i]);
  const auto p = static_cast<size_t>(node.piece);
  return set_pieces_[p] == piece_ops_[p].size;
}

void SlotGraphs::Keep(const GraphNodeEntry& entry, const Node& node) {
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel:
    case Op::kLaunch: {
      const driver::KernelOp& op = tables_.kernels[i];
      set_kernels_[i] = KernelOf(op);
      std::memcpy(set_args_.data() + (op.args - tables_.args.data()), op.args, op.args_size);
      break;
    }
    case Op::kFill: set_fills_[i] = tables_.fills[i]; break;
    case Op::kBatch: set_batches_[i] = tables_.batches[i]; break;
    case Op::kHostcall: break;
    default:
      set_copies_[i] = tables_.copies[i];
      if (node.piece >= 0)
        set_pieces_[static_cast<size_t>(node.piece)] = piece_ops_[static_cast<size_t>(node.piece)].size;
  }
}

absl::Status SlotGraphs::Launch(int32_t graph, driver::Stream stream) {
  ++launches_;
  PENSTOCK_RETURN_IF_ERROR(driver_.LaunchGraph(made_[static_cast<size_t>(graph)].exec, stream));
  if (graph == refreshed_by_ && indirection_.stale()) {
    ++refreshes_;
    indirection_.Copied();
  }
  return absl::OkStatus();
}

void SlotGraphs::AddTo(SubmissionReport& submission_report) const {
  submission_report.graphs += instantiations_.get();
  submission_report.graph_nodes += nodes_made_.get();
  submission_report.graph_launches += launches_.get();
  submission_report.nodes_set += sets_.get();
  submission_report.nodes_switched += switches_.get();
  submission_report.refreshes += refreshes_.get();
  submission_report.captures += captures_.get();
  submission_report.instantiating_us += static_cast<double>(instantiating_ns_.get()) / 1000;
  submission_report.capturing_us += static_cast<double>(capturing_ns_.get()) / 1000;
  base::MutexLock lock(mu_);
  if (!remade_.empty()) submission_report.notes.push_back("a graph was made anew: " + remade_);
}

}  // namespace penstock::runtime
