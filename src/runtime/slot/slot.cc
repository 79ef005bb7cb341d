#include "src/runtime/slot/slot.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "graph/common/message.h"
#include "graph/plan/plan_names.h"
#include "penstock/status_macros.h"
#include "src/base/annotate.h"
#include "src/runtime/slot/apply_shapes.h"
#include "src/runtime/slot/copy_operations.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

static_assert(sizeof(driver::CopyPiece) == graph::kPieceBytes);

namespace {

// Adopted memory may be less aligned than an alias of another type needs.
absl::StatusOr<void*> MemoryOfState(const CompiledGraph& graph, BufferId buffer) {
  const BufferDecl& decl = graph.model().buffers[buffer];
  void* const memory = StateCore::Of(*decl.state).memory();
  const BufferId alias = graph.program().buffers.max_alignment_alias[buffer];
  if (alias < 0) return memory;
  const BufferDecl& strict = graph.model().buffers[alias];
  if (reinterpret_cast<uintptr_t>(memory) % strict.type.align == 0) return memory;
  return absl::InvalidArgumentError(graph::Prefix(graph.model(), "state", decl.name) +
                                    ": was adopted at no multiple of " + std::to_string(strict.type.align) +
                                    " bytes, which the elements of its alias " + graph::Quoted(strict.name) +
                                    " need; adopt memory so aligned, such as Runtime::MakeDeviceBuffer gives");
}

}  // namespace

Slot::Slot(const Options& options, int slot_index)
    : index(slot_index), queues(options.graph), ticket(options.graph.plan().states.size()), options_(options) {}

absl::Status Slot::Make() {
  PENSTOCK_RETURN_IF_ERROR(MakeDevices());
  using SyncEvents = SlotQueues::SyncEvents;
  PENSTOCK_RETURN_IF_ERROR(
      queues.Make(*devices_, options_.runtime.synchronous() ? SyncEvents::kPerLane : SyncEvents::kNone));
  PENSTOCK_RETURN_IF_ERROR(MakePointers());
  MakeTicket();
  return MakeTables();
}

Slot::~Slot() = default;

absl::Status Slot::MakeDevices() {
  const Table<NodeId, graph::PlanNode>& nodes = graph().plan().nodes;
  const bool captures = std::any_of(nodes.begin(), nodes.end(),
                                    [](const graph::PlanNode& n) { return n.kind == graph::PlanKind::kLaunch; });
  if (options_.devices != nullptr && !captures) {
    devices_ = options_.devices;
    return absl::OkStatus();
  }
  auto own = std::make_shared<SlotDevices>(graph(), options_.runtime, options_.devices);
  PENSTOCK_RETURN_IF_ERROR(own->Make());
  devices_ = std::move(own);
  if (base::Annotating()) AnnotateStreams();
  return absl::OkStatus();
}

void Slot::AnnotateStreams() const {
  const graph::Plan& plan = graph().plan();
  for (const LaneId l : plan.lanes.ids()) {
    const driver::Stream stream = devices_->streams()[l];
    if (!stream) continue;
    base::AnnotateStream(graph().device(plan.lanes[l].device).driver->NativeStream(stream),
                         plan.graph + " slot " + std::to_string(index) + " " + graph::LaneName(plan.lanes[l].kind) +
                             " lane " + std::to_string(l));
  }
}

absl::Status Slot::MakePointers() {
  const graph::Plan& plan = graph().plan();
  std::byte* pinned_base = nullptr;
  if (!plan.arenas.empty() && plan.arenas[0].device < 0 && plan.arenas[0].bytes > 0) {
    const auto bytes = static_cast<size_t>(plan.arenas[0].bytes);
    PENSTOCK_ASSIGN_OR_RETURN(pinned_, options_.pinned.Allocate(bytes, options_.pinned_node));
    pinned_base = static_cast<std::byte*>(pinned_.data());
    if (plan.pieces_offset >= 0) {
      tables.pieces = reinterpret_cast<driver::CopyPiece*>(pinned_base + plan.pieces_offset);
    }
  }
  tables.pointers.assign(plan.instances.size(), nullptr);
  for (const InstanceId i : plan.instances.ids()) {
    const graph::Instance& instance = plan.instances[i];
    const BufferDecl& decl = graph().model().buffers[instance.buffer];
    if (instance.space == graph::Space::kState && decl.keys == 0) {
      PENSTOCK_ASSIGN_OR_RETURN(tables.pointers[i], MemoryOfState(graph(), instance.buffer));
    }
    if (!graph::InArena(instance.space)) continue;
    std::byte* from = instance.space == graph::Space::kPinned ? pinned_base : devices_->arena(instance.device);
    if (from != nullptr) tables.pointers[i] = from + instance.offset;
  }
  tables.staging = tables.pointers;
  return absl::OkStatus();
}

void Slot::MakeTicket() {
  ticket.core = options_.owner;
  ticket.fault = &fault;
  for (size_t i = 0; i < ticket.places.size(); ++i) {
    const graph::StateUse& use = graph().plan().states[i];
    StatePlace& place = ticket.places[i];
    place.ticket = &ticket;
    const BufferDecl& decl = graph().model().buffers[use.buffer];
    if (decl.keys == 0) place.queue = &StateCore::Of(*decl.state).queue();  // otherwise each launch decides
    place.writes = use.written;
    place.done = &queues.events().states[i];
  }
}

void Slot::UseEventsOf(Mode mode) {
  if (!queues.Use(mode)) return;
  for (size_t i = 0; i < ticket.places.size(); ++i) ticket.places[i].done = &queues.events().states[i];
}

// Parameters that a device copies are in pinned memory.
absl::Status Slot::MakeParams() {
  const size_t bytes = graph().program().params.bytes;
  if (graph().program().params.refs.empty()) {
    own_params_.resize(bytes);
    tables.param_bytes = own_params_;
    return absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(pinned_params_, options_.pinned.Allocate(bytes, options_.pinned_node));
  tables.param_bytes = {static_cast<std::byte*>(pinned_params_.data()), bytes};
  return absl::OkStatus();
}

void Slot::MakeFills() {
  for (const FillEntry& f : graph().program().fills) {
    const NodeDecl& decl = graph().model().nodes[graph().plan().nodes[f.node].decl];
    driver::FillOp op;
    op.pattern_size = static_cast<uint32_t>(decl.pattern.size());
    std::memcpy(op.pattern.data(), decl.pattern.data(), decl.pattern.size());
    op.tag = {&fault, f.node};
    tables.fills.push_back(op);
  }
}

void Slot::MakeKernels() {
  const Program& program = graph().program();
  for (const CallId c : program.calls.ids()) {
    const CallEntry& call = program.calls[c];
    const NodeDecl& decl = graph().model().nodes[call.decl];
    driver::KernelOp op;
    op.kernel = call.kernel.kernel;
    op.awaits = call.kernel.awaits;
    op.block = call.threads;
    op.shared_bytes = decl.shape.shared_bytes;
    op.argv = tables.argv.data() + call.argv;
    op.argc = static_cast<uint32_t>(decl.args.size());
    op.args = tables.args.data() + call.block;
    op.args_align = call.align;
    op.args_size = static_cast<uint32_t>(decl.arg_block.size());
    op.pointer_offsets = program.args.pointer_offsets.data() + call.pointers;
    op.pointer_count = call.pointer_count;
    op.range = decl.code.range;
    op.call = decl.code.call_fallback;
    op.callable = decl.code.fallback.get();
    op.gate = graph().device_gate(c);
    op.tag = {&fault, call.node};
    op.uses = this;
    op.rows = 1;
    tables.kernels.push_back(op);
  }
}

absl::Status Slot::MakeTables() {
  const Program& program = graph().program();
  const graph::Plan& plan = graph().plan();
  const Model& model = graph().model();
  PENSTOCK_RETURN_IF_ERROR(MakeParams());
  tables.args = base::AlignedBytes(program.args.image, program.args.align);
  for (const uint32_t at : program.args.argv) tables.argv.push_back(tables.args.data() + at);
  tables.boxes.resize(model.buffers.size() + program.slices.size());
  tables.param_values.resize(model.params.size());
  tables.bound_pinned.resize(model.buffers.size());
  tables.is_noop.resize(plan.host_steps.size());
  bound.ranges.resize(model.buffers.size());
  for (const BufferId b : model.buffers.ids()) {
    if (IsBound(model.buffers[b].role)) bound.order.push_back(b);
  }
  MakeCopies(plan, program, graph().devices(), fault, tables);
  MakeFills();
  MakeKernels();
  PENSTOCK_RETURN_IF_ERROR(ApplyFixedShapes(model, plan, program, tables));
  tables.PatchPointers(program.patches.fixed_pointers);
  return absl::OkStatus();
}

}  // namespace penstock::runtime
