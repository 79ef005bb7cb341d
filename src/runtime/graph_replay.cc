#include "src/runtime/graph_replay.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/current_device.h"
#include "src/driver/node_op.h"
#include "src/host/progress.h"
#include "src/runtime/executable_core.h"
#include "src/runtime/slot.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

constexpr size_t kScratchBytes = 256;  // on each side; placeholders are of one byte, and never run

bool IsEmpty(const driver::CopyOp& op) { return op.width == 0 || op.height == 0 || op.depth == 0; }
bool IsEmpty(const driver::FillOp& op) { return op.count == 0 || op.height == 0 || op.depth == 0; }

bool IsSame(const driver::CopyOp& a, const driver::CopyOp& b) {
  const bool box = a.width == b.width && a.height == b.height && a.depth == b.depth;
  const bool rows = a.dst_pitch == b.dst_pitch && a.src_pitch == b.src_pitch;
  return a.dst == b.dst && a.src == b.src && box && rows && a.dst_slice == b.dst_slice && a.src_slice == b.src_slice;
}

bool IsSame(const driver::FillOp& a, const driver::FillOp& b) {
  const bool box = a.count == b.count && a.height == b.height && a.depth == b.depth;
  return a.dst == b.dst && box && a.pitch == b.pitch && a.slice == b.slice;
}

}  // namespace

GraphReplay::GraphReplay(const Options& options, Slot& slot)
    : options_(options),
      replay_(options.program->replay),
      slot_(slot),
      driver_(*options.device->driver),
      nodes_(replay_.entries.size()),
      set_copies_(slot.copies),
      set_batches_(slot.batches),
      set_fills_(slot.fills),
      set_kernels_(slot.kernels.size()),
      set_args_(slot.args) {
  differing_.reserve(nodes_.size());
}

absl::StatusOr<std::unique_ptr<GraphReplay>> GraphReplay::Create(const Options& options, Slot& slot) {
  std::unique_ptr<GraphReplay> replay(new GraphReplay(options, slot));
  const driver::CurrentDevice current(*options.device->driver, options.device->local);
  replay->FindPieces();
  PENSTOCK_RETURN_IF_ERROR(replay->MakeScratch());
  for (int32_t g = 0; g < replay->replay_.graphs(); ++g) PENSTOCK_RETURN_IF_ERROR(replay->MakeGraph(g));
  PENSTOCK_RETURN_IF_ERROR(replay->UploadAll());
  return replay;
}

GraphReplay::~GraphReplay() {
  const driver::CurrentDevice current(driver_, options_.device->local);
  for (const driver::GraphExec exec : execs_) driver_.DestroyExec(exec);
  if (scratch_ != nullptr) driver_.FreeDevice(options_.device->local, scratch_);
}

// Which copies are batches of one piece: those that no graph takes as copies, or only as long as they stay as they are.
void GraphReplay::FindPieces() {
  for (size_t e = 0; e < nodes_.size(); ++e) {
    const ReplayEntry& entry = replay_.entries[e];
    if (entry.op != Op::kCopy) continue;
    const CopyEntry& copy = options_.program->copies[static_cast<size_t>(entry.index)];
    const driver::CopyOp& op = slot_.copies[static_cast<size_t>(entry.index)];
    const bool rows = options_.program->dynamic ? copy.may_have_rows : !driver::ShapeOf(&op).line;
    const bool refused = !IsEmpty(op) && !driver::CheckNode(&op).ok();
    if (!(entry.varies && rows) && !refused) continue;
    nodes_[e].piece = static_cast<int32_t>(piece_ops_.size());
    set_pieces_.emplace_back();
    piece_ops_.push_back({.kind = op.kind, .count = 1, .size = {1, 1}, .tag = op.tag});
  }
}

absl::Status GraphReplay::MakeScratch() {
  const bool needed = std::any_of(replay_.entries.begin(), replay_.entries.end(),
                                  [](const ReplayEntry& e) { return e.op == Op::kCopy || e.op == Op::kFill; });
  if (!needed) return absl::OkStatus();
  const size_t tables = piece_ops_.size() * sizeof(driver::CopyPiece);
  PENSTOCK_ASSIGN_OR_RETURN(pinned_, options_.pinned->Allocate(kScratchBytes + tables, options_.pinned_node));
  PENSTOCK_ASSIGN_OR_RETURN(scratch_, driver_.AllocateDevice(options_.device->local, 2 * kScratchBytes));
  pieces_ = reinterpret_cast<driver::CopyPiece*>(static_cast<std::byte*>(pinned_.data()) + kScratchBytes);
  for (size_t p = 0; p < piece_ops_.size(); ++p) {
    pieces_[p] = {};
    piece_ops_[p].pieces = pieces_ + p;
  }
  return absl::OkStatus();
}

absl::Status GraphReplay::MakeGraph(int32_t graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph made, driver_.CreateGraph(options_.device->local));
  const auto instantiate = [&]() -> absl::StatusOr<driver::GraphExec> {
    PENSTOCK_RETURN_IF_ERROR(AddNodes(graph, made));
    return driver_.Instantiate(made);
  };
  const absl::StatusOr<driver::GraphExec> exec = instantiate();
  driver_.DestroyGraph(made);
  PENSTOCK_RETURN_IF_ERROR(exec.status());
  execs_.push_back(*exec);
  return SwitchOffWhatNeverRuns(graph);
}

absl::Status GraphReplay::AddNodes(int32_t graph, driver::Graph to) {
  const int32_t begin = replay_.begin[static_cast<size_t>(graph)], end = replay_.begin[static_cast<size_t>(graph) + 1];
  std::vector<int32_t> after;
  for (int32_t e = begin; e < end; ++e) {
    const ReplayEntry& entry = replay_.entries[static_cast<size_t>(e)];
    const graph::PlanNode& planned = options_.plan->nodes[static_cast<size_t>(entry.node)];
    Node& node = nodes_[static_cast<size_t>(e)];
    after.clear();
    for (const int32_t p : replay_.preds[e]) {
      after.push_back(nodes_[static_cast<size_t>(begin) + static_cast<size_t>(p)].number);
    }
    absl::StatusOr<int32_t> number = AddNode(entry, node, to, after, planned.priority);
    if (!number.ok()) return options_.core->Describe(entry.node, number.status());
    node.graph = graph;
    node.number = *number;
  }
  return absl::OkStatus();
}

// What varies is set by the first launch, before it runs.
absl::StatusOr<int32_t> GraphReplay::AddNode(const ReplayEntry& entry, Node& node, driver::Graph to,
                                             const std::vector<int32_t>& after, int priority) {
  PENSTOCK_ASSIGN_OR_RETURN(const Wanted wanted, WantedOf(entry, node));
  node.known = !entry.varies && !wanted.off;
  if (node.known) return driver_.AddNode(to, after, wanted.op, priority);
  switch (entry.op) {
    case Op::kKernel: {
      driver::KernelOp op = slot_.kernels[static_cast<size_t>(entry.index)];
      if (wanted.off) op.grid = {1, 1, 1}, op.rows = 1;
      return driver_.AddNode(to, after, &op, priority);
    }
    case Op::kBatch: {
      driver::BatchOp op = slot_.batches[static_cast<size_t>(entry.index)];
      if (wanted.off) op.count = 1, op.size = {1, 1};
      return driver_.AddNode(to, after, &op, priority);
    }
    case Op::kFill: {
      driver::FillOp op = slot_.fills[static_cast<size_t>(entry.index)];
      op.dst = scratch_;
      op.count = op.height = op.depth = 1;
      return driver_.AddNode(to, after, &op, priority);
    }
    default: break;
  }
  if (node.piece >= 0) return driver_.AddNode(to, after, &piece_ops_[static_cast<size_t>(node.piece)], priority);
  driver::CopyOp op = slot_.copies[static_cast<size_t>(entry.index)];
  std::byte* const device = static_cast<std::byte*>(scratch_);
  op.dst = op.kind == driver::CopyKind::kDeviceToHost ? pinned_.data() : device;
  op.src = op.kind == driver::CopyKind::kHostToDevice ? pinned_.data() : device + kScratchBytes;
  op.width = op.height = op.depth = 1;
  return driver_.AddNode(to, after, &op, priority);
}

absl::Status GraphReplay::SwitchOffWhatNeverRuns(int32_t graph) {
  const auto begin = static_cast<size_t>(replay_.begin[static_cast<size_t>(graph)]);
  const auto end = static_cast<size_t>(replay_.begin[static_cast<size_t>(graph) + 1]);
  for (size_t e = begin; e < end; ++e) {
    if (nodes_[e].known || replay_.entries[e].varies) continue;
    const absl::Status off = Enable(nodes_[e], false);
    if (!off.ok()) return options_.core->Describe(replay_.entries[e].node, off);
  }
  return absl::OkStatus();
}

// Who has uploaded cannot destroy before that has ended, so that is awaited whatever fails: at a second try where the
// first fails.
absl::Status GraphReplay::UploadAll() {
  if (execs_.empty()) return absl::OkStatus();
  const driver::Stream stream = slot_.streams[static_cast<size_t>(replay_.lane)];
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, driver_.CreateEvent(options_.device->local, false));
  absl::Status uploaded;
  for (size_t g = 0; g < execs_.size() && uploaded.ok(); ++g) {
    uploaded = driver_.Upload(execs_[g], stream);
  }
  absl::Status awaited = AwaitUpload(event, stream);
  if (!awaited.ok()) {
    const absl::Status again = AwaitUpload(event, stream);
    if (!again.ok()) awaited = again;
  }
  driver_.DestroyEvent(event);
  return uploaded.ok() ? awaited : uploaded;
}

absl::Status GraphReplay::AwaitUpload(driver::Event event, driver::Stream stream) const {
  PENSTOCK_RETURN_IF_ERROR(driver_.Record(event, stream));
  absl::StatusOr<bool> complete = false;
  host::WaitForProgress(*options_.bell, driver_.rings(), host::TimePoint::max(), [&] {
    complete = driver_.Query(event);
    return !complete.ok() || *complete;
  });
  return complete.status();
}

void GraphReplay::CallMayDiffer(int32_t call) {
  const int32_t entry = replay_.of_call[static_cast<size_t>(call)];
  if (entry < 0 || nodes_[static_cast<size_t>(entry)].marked) return;
  nodes_[static_cast<size_t>(entry)].marked = true;
  differing_.push_back(entry);
}

absl::Status GraphReplay::Update(int32_t& node) {
  const std::vector<int32_t>& entries = all_differ_ ? replay_.varying : differing_;
  for (const int32_t e : entries) {
    const absl::Status updated = UpdateEntry(replay_.entries[static_cast<size_t>(e)], nodes_[static_cast<size_t>(e)]);
    if (updated.ok()) continue;
    node = replay_.entries[static_cast<size_t>(e)].node;
    all_differ_ = true;
    return updated;
  }
  for (const int32_t e : differing_) nodes_[static_cast<size_t>(e)].marked = false;
  differing_.clear();
  all_differ_ = false;
  return absl::OkStatus();
}

absl::Status GraphReplay::UpdateEntry(const ReplayEntry& entry, Node& node) {
  PENSTOCK_ASSIGN_OR_RETURN(const Wanted wanted, WantedOf(entry, node));
  if (!wanted.off && !(node.known && IsSet(entry, node))) {
    node.known = false;
    ++sets_;
    PENSTOCK_RETURN_IF_ERROR(driver_.SetNode(ExecOf(node), node.number, wanted.op));
    Keep(entry, node);
    node.known = true;
  }
  return node.enabled == wanted.off ? Enable(node, !wanted.off) : absl::OkStatus();
}

absl::Status GraphReplay::Enable(Node& node, bool enabled) {
  ++switches_;
  PENSTOCK_RETURN_IF_ERROR(driver_.EnableNode(ExecOf(node), node.number, enabled));
  node.enabled = enabled;
  return absl::OkStatus();
}

absl::StatusOr<GraphReplay::Wanted> GraphReplay::WantedOf(const ReplayEntry& entry, const Node& node) {
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel: return Wanted{&slot_.kernels[i], slot_.kernels[i].rows == 0};
    case Op::kFill: return Wanted{&slot_.fills[i], IsEmpty(slot_.fills[i])};
    case Op::kBatch: return Wanted{&slot_.batches[i], slot_.batches[i].count == 0};
    default: break;
  }
  const driver::CopyOp& copy = slot_.copies[i];
  const bool off = slot_.copies_off[i] || IsEmpty(copy);
  if (node.piece < 0) return Wanted{&copy, off};
  driver::BatchOp& batch = piece_ops_[static_cast<size_t>(node.piece)];
  if (off) return Wanted{&batch, true};
  PENSTOCK_ASSIGN_OR_RETURN(pieces_[node.piece], driver::PieceOf(copy));
  PENSTOCK_ASSIGN_OR_RETURN(batch.size, driver::SizeOf(batch));
  return Wanted{&batch, false};
}

bool GraphReplay::IsSet(const ReplayEntry& entry, const Node& node) const {
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel: {
      const driver::KernelOp& op = slot_.kernels[i];
      const auto at = static_cast<size_t>(op.args - slot_.args.data());
      return set_kernels_[i].grid == op.grid && set_kernels_[i].rows == op.rows &&
             std::memcmp(set_args_.data() + at, op.args, op.args_size) == 0;
    }
    case Op::kFill: return IsSame(set_fills_[i], slot_.fills[i]);
    case Op::kBatch:
      return set_batches_[i].count == slot_.batches[i].count && set_batches_[i].size == slot_.batches[i].size;
    default: break;
  }
  if (node.piece < 0) return IsSame(set_copies_[i], slot_.copies[i]);
  const auto p = static_cast<size_t>(node.piece);
  return set_pieces_[p] == piece_ops_[p].size;
}

void GraphReplay::Keep(const ReplayEntry& entry, const Node& node) {
  const auto i = static_cast<size_t>(entry.index);
  switch (entry.op) {
    case Op::kKernel: {
      const driver::KernelOp& op = slot_.kernels[i];
      set_kernels_[i] = {op.grid, op.rows};
      std::memcpy(set_args_.data() + (op.args - slot_.args.data()), op.args, op.args_size);
      break;
    }
    case Op::kFill: set_fills_[i] = slot_.fills[i]; break;
    case Op::kBatch: set_batches_[i] = slot_.batches[i]; break;
    default:
      set_copies_[i] = slot_.copies[i];
      if (node.piece >= 0)
        set_pieces_[static_cast<size_t>(node.piece)] = piece_ops_[static_cast<size_t>(node.piece)].size;
  }
}

absl::Status GraphReplay::Launch(int32_t graph, driver::Stream stream) {
  ++launches_;
  return driver_.LaunchGraph(execs_[static_cast<size_t>(graph)], stream);
}

void GraphReplay::AddTo(ReplayLedger& ledger) const {
  ledger.graphs += static_cast<int64_t>(execs_.size());
  ledger.graph_nodes += static_cast<int64_t>(nodes_.size());
  ledger.graph_launches += launches_.value.load(std::memory_order_relaxed);
  ledger.nodes_set += sets_.value.load(std::memory_order_relaxed);
  ledger.nodes_switched += switches_.value.load(std::memory_order_relaxed);
}

}  // namespace penstock::runtime
