#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/graph_exec/tuning.h"

#include <algorithm>
#include <cstring>

#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

constexpr size_t kScratchBytes = 256;  // on each side; placeholders use one byte and never run

bool IsSmall(const driver::CopyOp& op) {
  const bool host = op.kind == driver::CopyKind::kHostToDevice || op.kind == driver::CopyKind::kDeviceToHost;
  return host && !driver::IsEmpty(op) && op.width * op.height * op.depth <= tuning::kSmallBytes;
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

NodeOperations::NodeOperations(Slot& slot, const Hostcalls* hostcalls)
    : slot_(slot),
      tables_(slot.tables),
      program_(slot.graph().program()),
      hostcalls_(hostcalls),
      piece_of_(program_.replay.entries.size(), -1),
      regions_(slot),
      has_line_(program_.replay.entries.size()),
      set_copies_(tables_.copies),
      set_batches_(tables_.batches),
      set_fills_(tables_.fills),
      set_args_(tables_.args.span().begin(), tables_.args.span().end()) {
  FindDevices();
  for (const driver::KernelOp& op : tables_.kernels) set_kernels_.push_back(KernelOf(op));
}

NodeOperations::~NodeOperations() {
  for (const DeviceId d : devices_) {
    slot_.options().runtime.FreeDevice(slot_.graph().device(d), on_device_[d].scratch);
  }
}

// A copy between devices needs placeholders on both, so its source counts as used too.
void NodeOperations::FindDevices() {
  const CompiledGraph& graph = slot_.graph();
  Table<DeviceId, bool> used(graph.devices().size());
  for (const GraphNodeEntry& entry : program_.replay.entries) {
    const graph::PlanNode& node = graph.plan().nodes[entry.node];
    used[node.device] = true;
    if (node.kind == graph::PlanKind::kPeerCopy) used[graph.plan().instances[node.src].device] = true;
  }
  on_device_.resize(used.size());
  for (const DeviceId d : used.ids()) {
    if (used[d]) devices_.push_back(d);
  }
}

DeviceId NodeOperations::DeviceOf(EntryId entry) const {
  return slot_.graph().plan().nodes[EntryAt(entry).node].device;
}

// Returns the device that a copy between devices reads from.
DeviceId NodeOperations::SourceOf(EntryId entry) const {
  const graph::Plan& plan = slot_.graph().plan();
  return plan.instances[plan.nodes[EntryAt(entry).node].src].device;
}

std::byte* NodeOperations::ParamsOn(DeviceId device) const { return on_device_[device].scratch + 2 * kScratchBytes; }

absl::Status NodeOperations::Make(Use use) {
  if (piece_of_.empty()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(regions_.Make(use == Use::kTimedRuns));
  FindPieces(use);
  const size_t tables = (piece_ops_.size() + devices_.size()) * sizeof(driver::CopyPiece);
  const size_t params = std::max<size_t>(program_.params.bytes, 1);
  PENSTOCK_ASSIGN_OR_RETURN(pinned_,
                            slot_.options().pinned.Allocate(kScratchBytes + tables, slot_.options().pinned_node));
  for (const DeviceId d : devices_) {
    const driver::DeviceRef& device = slot_.graph().device(d);
    PENSTOCK_ASSIGN_OR_RETURN(void* const scratch,
                              device.driver->AllocateDevice(device.local, 2 * kScratchBytes + params));
    on_device_[d].scratch = static_cast<std::byte*>(scratch);
  }
  pieces_ = reinterpret_cast<driver::CopyPiece*>(static_cast<std::byte*>(pinned_.data()) + kScratchBytes);
  for (const PieceId p : piece_ops_.ids()) {
    pieces_[p] = {};
    piece_ops_[p].pieces = pieces_ + p;
  }
  if (use != Use::kExport) MakeRefs();  // these belong to the slot
  return absl::OkStatus();
}

// Finds the copies that become batches of one piece: those that no graph accepts as copies, or only while they stay the
// same, and small ones to and from the host, which take half the time that way.
void NodeOperations::FindPieces(Use use) {
  for (const EntryId e : piece_of_.ids()) {
    const GraphNodeEntry& entry = EntryAt(e);
    if (entry.op != Op::kCopy) continue;
    const CopyEntry& copy = program_.copies[entry.index];
    const driver::CopyOp& op = tables_.copies[entry.index];
    const bool rows = program_.dynamic ? copy.may_have_rows : !driver::ShapeOf(&op).line;
    const bool refused = !driver::IsEmpty(op) && !driver::CheckNode(&op).ok();
    if (op.kind == driver::CopyKind::kPeer) continue;  // see CanBeSet
    if (!(entry.varies && rows) && !refused && !(IsSmall(op) && use != Use::kExport)) continue;
    piece_of_[e] = piece_ops_.next();
    set_pieces_.emplace_back();
    piece_ops_.push_back({.kind = op.kind, .count = 1, .size = {1, 1}, .tag = op.tag});
  }
}

// A node that fails its run must not keep later ones from their parameters, so the copy belongs to no node.
void NodeOperations::MakeRefs() {
  const bool refs = !program_.params.refs.empty();
  const size_t bytes = refs ? tables_.param_bytes.size() : 1;
  const void* const from = refs ? static_cast<const void*>(tables_.param_bytes.data()) : pinned_.data();
  for (size_t i = 0; i < devices_.size(); ++i) {
    driver::CopyPiece& piece = pieces_[piece_ops_.size() + i];
    piece = {.dst = ParamsOn(devices_[i]), .src = from, .width = bytes};
    on_device_[devices_[i]].refresh = {.pieces = &piece, .count = 1, .size = {bytes, bytes}};
  }
  ref_argv_ = tables_.argv;
  for (const RefPatch& ref : program_.params.refs) {
    const DeviceId device = slot_.graph().plan().nodes[program_.calls[ref.call].node].device;
    if (device < 0 || on_device_[device].scratch == nullptr) continue;  // a call in no graph
    const void* const at = ParamsOn(device) + program_.params.at[ref.param];
    std::memcpy(tables_.args.data() + ref.at, &at, sizeof(at));
    ref_argv_[ref.argv] = tables_.args.data() + ref.at;
  }
  const std::span<const std::byte> args = tables_.args.span();
  set_args_.assign(args.begin(), args.end());
}

bool NodeOperations::IsEngineCopy(EntryId entry) const {
  return EntryAt(entry).op == Op::kCopy && piece_of_[entry] < 0;
}

driver::CopyOp NodeOperations::PlaceholderOf(EntryId e, const driver::CopyOp& copy) {
  driver::CopyOp op = copy;
  has_line_[e] = true;
  const DeviceId at = DeviceOf(e);
  const DeviceId from = op.kind == driver::CopyKind::kPeer ? SourceOf(e) : at;
  op.dst = op.kind == driver::CopyKind::kDeviceToHost ? pinned_.data() : on_device_[at].scratch;
  op.src = op.kind == driver::CopyKind::kHostToDevice ? pinned_.data() : on_device_[from].scratch + kScratchBytes;
  op.width = op.height = op.depth = 1;
  return op;
}

absl::StatusOr<NodeOperations::Wanted> NodeOperations::Of(EntryId e, bool indirect) {
  const GraphNodeEntry& entry = EntryAt(e);
  const int32_t i = entry.index;
  switch (entry.op) {
    case Op::kKernel: return Wanted{indirect ? Indirect(i) : &tables_.kernels[i], tables_.kernels[i].rows == 0};
    case Op::kFill: return Wanted{&tables_.fills[i], driver::IsEmpty(tables_.fills[i])};
    case Op::kBatch: return Wanted{&tables_.batches[i], tables_.batches[i].count == 0};
    case Op::kHostcall: return Wanted{&hostcalls_->op(entry.index), false};
    case Op::kRegion: return Wanted{&regions_.Of(i), regions_.IsEmpty(i)};
    default: break;
  }
  const driver::CopyOp& copy = tables_.copies[i];
  const bool disabled = tables_.copies_disabled[i] || driver::IsEmpty(copy);
  const PieceId piece = piece_of_[e];
  if (piece < 0) return Wanted{&copy, disabled};
  driver::BatchOp& batch = piece_ops_[piece];
  if (disabled) return Wanted{&batch, true};
  PENSTOCK_ASSIGN_OR_RETURN(pieces_[piece], driver::PieceOf(copy));
  PENSTOCK_ASSIGN_OR_RETURN(batch.size, driver::SizeOf(batch));
  return Wanted{&batch, false};
}

// Valid until the next call.
const driver::KernelOp* NodeOperations::Indirect(CallId call) {
  const CallEntry& entry = program_.calls[call];
  indirect_ = tables_.kernels[call];
  indirect_.kernel = entry.indirect_kernel.kernel;
  indirect_.awaits = entry.indirect_kernel.awaits;
  indirect_.range = entry.indirect_range;
  indirect_.argv = ref_argv_.data() + entry.argv;
  indirect_.pointer_count += entry.ref_count;
  return &indirect_;
}

bool NodeOperations::IsSet(EntryId e) const {
  const GraphNodeEntry& entry = EntryAt(e);
  if (entry.op != Op::kRegion) return IsNodeSet(entry, piece_of_[e]);
  const std::vector<GraphNodeEntry>& nodes = program_.replay.regions[entry.index].nodes;
  return std::all_of(nodes.begin(), nodes.end(),
                     [this](const GraphNodeEntry& node) { return IsNodeSet(node, PieceId()); });
}

// Of copies between devices, which are no batches, CUDA takes new addresses for lines only.
bool NodeOperations::CanBeSet(EntryId e) const {
  const GraphNodeEntry& entry = EntryAt(e);
  if (entry.op != Op::kCopy || tables_.copies[entry.index].kind != driver::CopyKind::kPeer) return true;
  return has_line_[e] && driver::ShapeOf(&tables_.copies[entry.index]).line;
}

void NodeOperations::Keep(EntryId e) {
  const GraphNodeEntry& entry = EntryAt(e);
  if (entry.op == Op::kCopy && piece_of_[e] < 0) has_line_[e] = driver::ShapeOf(&tables_.copies[entry.index]).line;
  if (entry.op != Op::kRegion) return KeepNode(entry, piece_of_[e]);
  for (const GraphNodeEntry& node : program_.replay.regions[entry.index].nodes) KeepNode(node, PieceId());
  regions_.Write(entry.index);
}

bool NodeOperations::IsNodeSet(const GraphNodeEntry& entry, PieceId piece) const {
  const int32_t i = entry.index;
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
  if (piece < 0) return IsSame(set_copies_[i], tables_.copies[i]);
  return set_pieces_[piece] == piece_ops_[piece].size;
}

void NodeOperations::KeepNode(const GraphNodeEntry& entry, PieceId piece) {
  const int32_t i = entry.index;
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
      if (piece >= 0) set_pieces_[piece] = piece_ops_[piece].size;
  }
}

}  // namespace penstock::runtime
