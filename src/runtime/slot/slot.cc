#include "src/runtime/slot/slot.h"

#include <algorithm>
#include <cstring>

#include "penstock/launch_context.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/run/parallel_submission.h"
#include "src/runtime/run/run_core.h"
#include "src/runtime/slot/copy_operations.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

static_assert(sizeof(driver::CopyPiece) == graph::kPieceBytes);

Slot::Slot(const Options& options, int slot_index)
    : index(slot_index),
      host_states(options.plan->host_steps.size()),
      hosts(*options.program),
      is_noop(options.plan->host_steps.size()),
      staged(static_cast<size_t>(options.program->staged_copies)),
      staged_begin(staged.size()),
      ticket(options.plan->states.size()),
      options_(options) {}

absl::StatusOr<std::unique_ptr<Slot>> Slot::Create(const Options& options, int index) {
  std::unique_ptr<Slot> slot(new Slot(options, index));
  PENSTOCK_RETURN_IF_ERROR(slot->MakeStreamsAndEvents());
  PENSTOCK_RETURN_IF_ERROR(slot->MakeArenas());
  PENSTOCK_RETURN_IF_ERROR(slot->MakeLaunchObjects());
  slot->MakeTicket();
  PENSTOCK_RETURN_IF_ERROR(slot->FillImages());
  slot->MakePartitions();
  slot->Use(Mode::kStream);
  return slot;
}

Slot::~Slot() {
  graphs.reset();
  const graph::Plan& plan = *options_.plan;
  const auto device = [&](int32_t d) -> const driver::DeviceRef& {
    return (*options_.devices)[static_cast<size_t>(d)];
  };
  for (size_t l = 0; l < launch.size(); ++l) {
    if (launch[l].empty()) continue;
    const driver::DeviceRef& d = device(plan.lanes[l].device);
    const driver::CurrentDevice current(*d.driver, d.local);
    const absl::Status cleared = launch[l].Clear();
    if (!cleared.ok()) options_.core->runtime().Log(LogLevel::kError, base::Str(cleared.message()));
  }
  for (const driver::Event event : stream_events) {
    if (event) options_.core->driver().DestroyEvent(event);
  }
  for (size_t e = 0; e < events.size(); ++e) device(plan.events[e].device).driver->DestroyEvent(events[e]);
  for (const auto* of_lanes : {&sync_events, &marks}) {
    for (size_t l = 0; l < of_lanes->size(); ++l) {
      if ((*of_lanes)[l]) device(plan.lanes[l].device).driver->DestroyEvent((*of_lanes)[l]);
    }
  }
  for (const auto* timing : {&begin_timing, &end_timing}) {
    for (size_t n = 0; n < timing->size(); ++n) {
      if ((*timing)[n]) device(plan.nodes[n].device).driver->DestroyEvent((*timing)[n]);
    }
  }
  for (size_t l = 0; l < streams.size(); ++l) device(plan.lanes[l].device).driver->DestroyStream(streams[l]);
  for (const auto& [owner, memory] : arenas_) options_.core->runtime().FreeDevice(owner, memory);
}

absl::Status Slot::MakeStreamsAndEvents() {
  const graph::Plan& plan = *options_.plan;
  const auto device = [&](int32_t d) -> const driver::DeviceRef& {
    return (*options_.devices)[static_cast<size_t>(d)];
  };
  for (size_t l = 0; l < plan.lanes.size(); ++l) {
    const driver::DeviceRef& d = device(plan.lanes[l].device);
    PENSTOCK_ASSIGN_OR_RETURN(driver::Stream stream, d.driver->CreateStream(d.local, plan.lanes[l].priority));
    streams.push_back(stream);
    for (const auto& [of_lanes, wanted] :
         {std::pair(&sync_events, options_.synchronous), std::pair(&marks, bool{options_.program->marked_lanes[l]})}) {
      of_lanes->emplace_back();
      if (wanted) {
        PENSTOCK_ASSIGN_OR_RETURN(of_lanes->back(), d.driver->CreateEvent(d.local, false));
      }
    }
  }
  seen_complete.assign(plan.events.size(), -1);
  for (const graph::PlanEvent& e : plan.events) {
    PENSTOCK_ASSIGN_OR_RETURN(driver::Event event, device(e.device).driver->CreateEvent(device(e.device).local, false));
    events.push_back(event);
  }
  for (const int32_t e : plan.done_events) done.push_back(events[static_cast<size_t>(e)]);
  if (!options_.timing) return absl::OkStatus();
  begin_timing.resize(plan.nodes.size());
  end_timing.resize(plan.nodes.size());
  // Of what is submitted by itself: no run with a trace is of both schedules.
  const Program& program = *options_.program;
  const Schedule& submitted = program.graphs.commands.empty() ? program.stream : program.graphs;
  for (const ExecCommand& command : submitted.commands) {
    if (command.node < 0) continue;
    const auto n = static_cast<size_t>(command.node);
    const driver::DeviceRef& d = device(plan.nodes[n].device);
    PENSTOCK_ASSIGN_OR_RETURN(begin_timing[n], d.driver->CreateEvent(d.local, true));
    PENSTOCK_ASSIGN_OR_RETURN(end_timing[n], d.driver->CreateEvent(d.local, true));
  }
  return absl::OkStatus();
}

absl::Status Slot::MakeArenas() {
  const graph::Plan& plan = *options_.plan;
  std::vector<std::byte*> base(options_.devices->size(), nullptr);
  std::byte* pinned_base = nullptr;
  for (const graph::Arena& arena : plan.arenas) {
    if (arena.bytes == 0) continue;
    if (arena.device < 0) {
      PENSTOCK_ASSIGN_OR_RETURN(pinned_,
                                options_.pinned->Allocate(static_cast<size_t>(arena.bytes), options_.pinned_node));
      pinned_base = static_cast<std::byte*>(pinned_.data());
      if (plan.pieces_offset >= 0) pieces = reinterpret_cast<driver::CopyPiece*>(pinned_base + plan.pieces_offset);
      continue;
    }
    const driver::DeviceRef& d = (*options_.devices)[static_cast<size_t>(arena.device)];
    PENSTOCK_ASSIGN_OR_RETURN(void* memory, d.driver->AllocateDevice(d.local, static_cast<size_t>(arena.bytes)));
    arenas_.emplace_back(d, memory);
    base[static_cast<size_t>(arena.device)] = static_cast<std::byte*>(memory);
  }
  pointers.assign(plan.instances.size(), nullptr);
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    const graph::Instance& instance = plan.instances[i];
    const BufferDecl& decl = options_.model->buffers[static_cast<size_t>(instance.buffer)];
    if (instance.space == graph::Space::kState && decl.keys == 0) pointers[i] = StateCore::Of(*decl.state).memory();
    if (!graph::InArena(instance.space)) continue;
    std::byte* from =
        instance.space == graph::Space::kPinned ? pinned_base : base[static_cast<size_t>(instance.device)];
    if (from != nullptr) pointers[i] = from + instance.offset;
  }
  staging = pointers;
  return absl::OkStatus();
}

// Zeros for the library calls on each CUDA device; it has them before the slot is used.
absl::Status Slot::MakeLaunchObjects() {
  const graph::Plan& plan = *options_.plan;
  std::vector<void*> zeros(options_.devices->size(), nullptr);
  for (const graph::PlanNode& node : plan.nodes) {
    if (node.kind != graph::PlanKind::kLaunch) continue;
    const driver::DeviceRef& d = (*options_.devices)[static_cast<size_t>(node.device)];
    void*& at = zeros[static_cast<size_t>(node.device)];
    if (at != nullptr || d.info.kind != driver::DeviceKind::kCuda) continue;
    PENSTOCK_ASSIGN_OR_RETURN(at, d.driver->AllocateDevice(d.local, LaunchContext::kZeroBytes));
    arenas_.emplace_back(d, at);
    PENSTOCK_RETURN_IF_ERROR(MakeZero(d, at, streams[static_cast<size_t>(node.lane)]));
  }
  launch.reserve(plan.lanes.size());
  for (size_t l = 0; l < plan.lanes.size(); ++l) {
    const auto device = static_cast<size_t>(plan.lanes[l].device);
    launch.emplace_back(*(*options_.devices)[device].driver, streams[l], zeros[device]);
  }
  return absl::OkStatus();
}

absl::Status Slot::MakeZero(const driver::DeviceRef& d, void* memory, driver::Stream stream) {
  const driver::CurrentDevice current(*d.driver, d.local);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, d.driver->CreateEvent(d.local, false));
  driver::FillOp fill;
  fill.dst = memory;
  fill.pattern_size = 1;
  fill.count = LaunchContext::kZeroBytes;
  fill.height = fill.depth = 1;
  absl::Status filled = d.driver->Fill(stream, fill);
  if (filled.ok()) filled = AwaitStream(*d.driver, event, stream, *options_.event_count);
  d.driver->DestroyEvent(event);
  return filled;
}

void Slot::MakeTicket() {
  ticket.core = options_.core;
  ticket.fault = &fault;
  state_events_.resize(ticket.places.size());
  for (size_t i = 0; i < ticket.places.size(); ++i) {
    const graph::StateUse& use = options_.plan->states[i];
    for (const int32_t e : use.done_events) state_events_[i].push_back(events[static_cast<size_t>(e)]);
    StatePlace& place = ticket.places[i];
    place.ticket = &ticket;
    const BufferDecl& decl = options_.model->buffers[static_cast<size_t>(use.buffer)];
    if (decl.keys == 0) place.queue = &StateCore::Of(*decl.state).queue();  // else each launch says which
    place.writes = use.written;
    place.done = &state_events_[i];
  }
}

// Those that a device copies lie in pinned memory.
absl::Status Slot::MakeParams() {
  const size_t bytes = options_.program->param_bytes;
  if (options_.program->refs.empty()) {
    own_params_.resize(bytes);
    param_bytes = own_params_;
    return absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(pinned_params_, options_.pinned->Allocate(bytes, options_.pinned_node));
  param_bytes = {static_cast<std::byte*>(pinned_params_.data()), bytes};
  return absl::OkStatus();
}

absl::Status Slot::FillImages() {
  const Program& program = *options_.program;
  const graph::Plan& plan = *options_.plan;
  const Model& model = *options_.model;
  PENSTOCK_RETURN_IF_ERROR(MakeParams());
  args = base::AlignedBytes(program.arg_image, program.arg_align);
  for (const uint32_t at : program.argv_image) argv.push_back(args.data() + at);
  boxes.resize(model.buffers.size() + program.slices.size());
  bound_ranges.resize(model.buffers.size());
  for (size_t b = 0; b < model.buffers.size(); ++b) {
    if (IsBound(model.buffers[b].role)) bound_order.push_back(static_cast<int32_t>(b));
  }
  param_values.resize(model.params.size());
  bound_pinned.resize(model.buffers.size());
  MakeCopies(plan, program, *options_.devices, *this);
  for (const FillEntry& f : program.fills) {
    const NodeDecl& decl = model.nodes[static_cast<size_t>(plan.nodes[static_cast<size_t>(f.node)].decl)];
    driver::FillOp op;
    op.pattern_size = static_cast<uint32_t>(decl.pattern.size());
    std::memcpy(op.pattern.data(), decl.pattern.data(), decl.pattern.size());
    op.tag = {&fault, f.node};
    fills.push_back(op);
  }
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const CallEntry& call = program.calls[i];
    const NodeDecl& decl = model.nodes[static_cast<size_t>(call.decl)];
    driver::KernelOp op;
    op.kernel = call.kernel.kernel;
    op.awaits = call.kernel.awaits;
    op.block = decl.shape.block;
    op.shared_bytes = decl.shape.shared_bytes;
    op.argv = argv.data() + call.argv;
    op.argc = static_cast<uint32_t>(decl.args.size());
    op.args = args.data() + call.block;
    op.args_align = call.align;
    op.args_size = static_cast<uint32_t>(decl.arg_block.size());
    op.pointer_offsets = program.pointer_offsets.data() + call.pointers;
    op.pointer_count = call.pointer_count;
    op.range = decl.code.range;
    op.call = decl.code.call_fallback;
    op.callable = decl.code.fallback.get();
    op.gate = &(*options_.gates)[i];
    op.tag = {&fault, call.node};
    op.uses = this;
    op.rows = 1;
    kernels.push_back(op);
  }
  if (!program.hostcalls.empty()) {
    const size_t bytes = program.hostcalls.size() * sizeof(driver::HostcallSlot);
    PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock questions, options_.pinned->Allocate(bytes, options_.pinned_node));
    hostcalls = std::make_unique<Hostcalls>(*options_.core, *this, std::move(questions));
  }
  PENSTOCK_RETURN_IF_ERROR(ApplyFixedShapes(model, plan, program, *this));
  PatchPointers(program.fixed_pointers);
  return absl::OkStatus();
}

void Slot::MakePartitions() {
  for (const LanePartition& split : options_.program->stream.partitions) {
    partitions.push_back(std::make_unique<ParallelSubmission>(*options_.core, *this, split));
  }
}

std::vector<bool> Slot::WasSubmitted() const {
  std::vector<bool> was(static_cast<size_t>(schedule->epilogue_begin));
  std::fill_n(was.begin(), first_unsubmitted, true);
  for (size_t i = 0; i < schedule->partitions.size(); ++i) {
    const LanePartition& split = schedule->partitions[i];
    if (split.begin != first_unsubmitted) continue;
    for (int32_t p = 0; p < split.parts(); ++p) {
      for (const PartCommand& c : split.part(p).first(static_cast<size_t>(partitions[i]->done(p)))) {
        was[static_cast<size_t>(c.command)] = true;
      }
    }
  }
  return was;
}

void Slot::Use(Mode mode) { schedule = mode == Mode::kGraph ? &options_.program->graphs : &options_.program->stream; }

void Slot::DropGraphs() {
  if (replay == nullptr) return;
  replay->Drop();
  replay = nullptr;
}

SlotGraphs::Options Slot::ReplayOptions(bool upload) const {
  const int32_t device = options_.plan->lanes[static_cast<size_t>(options_.program->replay.lane)].device;
  return {.program = options_.program,
          .plan = options_.plan,
          .device = &(*options_.devices)[static_cast<size_t>(device)],
          .pinned = options_.pinned,
          .pinned_node = options_.pinned_node,
          .event_count = options_.event_count,
          .core = options_.core,
          .upload = upload,
          .stamped = options_.timing};
}

absl::Status Slot::MakeReplay(bool upload, int32_t& node) {
  Use(Mode::kGraph);
  if (options_.plan->lanes.empty()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(graphs, SlotGraphs::Create(ReplayOptions(upload), *this, node));
  replay = graphs.get();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SlotGraphs>> Slot::ExportGraph(int32_t& node) {
  return SlotGraphs::Export(ReplayOptions(false), *this, node);
}

void Slot::ReleasePredecessors() {
  for (const Predecessor& a : ahead) a.run->Unref();
  ahead.clear();
  ahead_ended = 0;
  events_ahead.clear();
  stream_ahead = {};
}

void* Slot::AddressOf(int32_t instance, int32_t box) const {
  auto* const first = static_cast<std::byte*>(pointers[static_cast<size_t>(instance)]);
  return first == nullptr ? nullptr : first + boxes[static_cast<size_t>(box)].offset;
}

void Slot::PatchPointers(const std::vector<PointerPatch>& patches) {
  for (const PointerPatch& p : patches) {
    void* const first = AddressOf(p.instance, p.box);
    std::memcpy(args.data() + p.at, &first, sizeof(first));
  }
}

namespace {

constexpr int64_t kMaxGridX = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxGridYZ = 65535;
constexpr uint32_t kLineBlock = 256;  // threads of a ParallelFor over one dimension
constexpr uint32_t kTileX = 32, kTileY = 8;  // and over two or three

uint32_t Blocks(int64_t n, int64_t block, int64_t limit) {
  return static_cast<uint32_t>(std::min((n + block - 1) / block, limit));
}

// The kernel covers what the grid cannot by striding: see ParallelForKernel.
void SetRange(driver::KernelOp& op, const detail::Range& range, int rank) {
  op.rows = rank == 1 ? range.width : range.depth * range.height;
  op.row_elements = rank == 1 ? 1 : range.width;
  if (range.width == 0) op.rows = 0;
  if (rank == 1) {
    op.block = {kLineBlock, 1, 1};
    op.grid = {Blocks(range.width, kLineBlock, kMaxGridX), 1, 1};
  } else {
    op.block = {kTileX, kTileY, 1};
    op.grid = {Blocks(range.width, kTileX, kMaxGridX), Blocks(range.height, kTileY, kMaxGridYZ),
               Blocks(range.depth, 1, kMaxGridYZ)};
  }
}

void SetGrid(driver::KernelOp& op, const KernelShape& shape, const std::vector<int64_t>& params) {
  if (shape.per_thread) {
    op.grid = {Blocks(ValueOf(shape.threads, params), shape.block[0], kMaxGridX), 1, 1};
  } else {
    for (size_t i = 0; i < 3; ++i) op.grid[i] = static_cast<uint32_t>(ValueOf(shape.grid[i], params));
  }
  op.rows = op.grid[0] == 0 || op.grid[1] == 0 || op.grid[2] == 0 ? 0 : 1;
}

void WriteViews(const std::vector<ShapePatch>& patches, Slot& slot) {
  for (const ShapePatch& p : patches) {
    const BoxInRun& box = slot.boxes[static_cast<size_t>(p.box)];
    const detail::Range r = RangeOf(box.shape);
    const int64_t dims[5] = {r.depth, r.height, r.width, box.row / p.element_bytes, box.slice / p.element_bytes};
    std::memcpy(slot.args.data() + p.at, dims, sizeof(dims));
  }
}

void WriteRanges(const Model& model, const Program& program, const std::vector<RangePatch>& patches, Slot& slot) {
  for (const RangePatch& p : patches) {
    const NodeDecl& decl = model.nodes[static_cast<size_t>(program.calls[static_cast<size_t>(p.call)].decl)];
    const detail::Range range = RangeOf(ShapeOf(decl.extent, slot.param_values));
    std::memcpy(slot.args.data() + p.at, &range, sizeof(range));
    SetRange(slot.kernels[static_cast<size_t>(p.call)], range, decl.extent.rank);
  }
}

void WriteFills(const Program& program, bool dynamic, Slot& slot) {
  for (size_t i = 0; i < program.fills.size(); ++i) {
    const FillEntry& entry = program.fills[i];
    if (entry.dynamic != dynamic) continue;
    const BoxInRun& box = slot.boxes[static_cast<size_t>(entry.box)];
    const detail::Range size = RangeOf(box.shape);
    driver::FillOp& op = slot.fills[i];
    op.dst = slot.AddressOf(entry.instance, entry.box);
    op.count = static_cast<size_t>(size.width);
    op.height = static_cast<size_t>(size.height);
    op.depth = static_cast<size_t>(size.depth);
    op.pitch = static_cast<size_t>(box.row);
    op.slice = static_cast<size_t>(box.slice);
  }
}

}  // namespace

absl::Status ApplyFixedShapes(const Model& model, const graph::Plan& plan, const Program& program, Slot& slot) {
  PENSTOCK_RETURN_IF_ERROR(SetBoxes(model, program, false, slot));
  WriteViews(program.fixed_shapes, slot);
  WriteRanges(model, program, program.fixed_ranges, slot);
  WriteFills(program, false, slot);
  SetCopyShapes(program, slot);
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const CallEntry& call = program.calls[i];
    const NodeDecl& decl = model.nodes[static_cast<size_t>(call.decl)];
    if (plan.nodes[static_cast<size_t>(call.node)].kind == graph::PlanKind::kKernel && !call.dynamic_range) {
      SetGrid(slot.kernels[i], decl.shape, slot.param_values);
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyDynamicShapes(const Model& model, const Program& program, Slot& slot) {
  PENSTOCK_RETURN_IF_ERROR(SetBoxes(model, program, true, slot));
  WriteViews(program.dynamic_shapes, slot);
  WriteRanges(model, program, program.dynamic_ranges, slot);
  WriteFills(program, true, slot);
  SetCopyShapes(program, slot);
  for (const int32_t c : program.dynamic_grids) {
    const NodeDecl& decl = model.nodes[static_cast<size_t>(program.calls[static_cast<size_t>(c)].decl)];
    SetGrid(slot.kernels[static_cast<size_t>(c)], decl.shape, slot.param_values);
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
