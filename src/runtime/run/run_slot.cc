#include "src/runtime/run/run_slot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/run/parallel_submission.h"

namespace penstock::runtime {

void RunProgress::Reset(int64_t run, std::chrono::steady_clock::time_point until) {
  serial = run;
  deadline = until;
  next_command = 0;
  next_segment = 0;
  first_unsubmitted = -1;
  epilogue_submitted = false;
  lane_full = false;
}

RunSlot::RunSlot(const Options& options, int slot_index)
    : Slot(options, slot_index),
      host_states(options.graph.plan().host_steps.size()),
      hosts(options.graph.program()),
      staged(static_cast<size_t>(options.graph.program().staged_copies)),
      staged_begin(staged.size()) {
  progress.seen_complete.assign(options.graph.plan().events.size(), -1);
}

absl::StatusOr<std::unique_ptr<RunSlot>> RunSlot::Create(const Options& options, const Submitter& submitter,
                                                         int index) {
  std::unique_ptr<RunSlot> slot(new RunSlot(options, index));
  PENSTOCK_RETURN_IF_ERROR(slot->Make());
  PENSTOCK_RETURN_IF_ERROR(slot->MakeParts(submitter));
  slot->Use(Mode::kStream);
  return slot;
}

absl::Status RunSlot::MakeParts(const Submitter& submitter) {
  const graph::Plan& plan = graph().plan();
  const Program& program = graph().program();
  launch.reserve(plan.lanes.size());
  for (const LaneId l : plan.lanes.ids()) {
    const DeviceId device = plan.lanes[l].device;
    launch.emplace_back(*graph().device(device).driver, queues.streams[l], zeros(device));
  }
  if (!program.hostcalls.empty()) {
    const size_t bytes = program.hostcalls.size() * sizeof(driver::HostcallSlot);
    PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock pinned, options().pinned.Allocate(bytes, options().pinned_node));
    hostcalls.SetOwn(std::make_unique<Hostcalls>(graph(), options().runtime, *this, std::move(pinned)));
  }
  for (const LanePartition& range : program.stream.partitions) {
    partitions.push_back(std::make_unique<ParallelSubmission>(submitter, options().runtime, *this, range));
  }
  return absl::OkStatus();
}

RunSlot::~RunSlot() {
  graphs.reset();
  for (size_t l = 0; l < launch.size(); ++l) {
    if (launch[l].empty()) continue;
    const driver::DeviceRef& d = graph().device(graph().plan().lanes[l].device);
    const driver::CurrentDevice current(*d.driver, d.local);
    const absl::Status cleared = launch[l].Clear();
    if (cleared.ok()) continue;
    options().runtime.Log(LogLevel::kError, graph().Label() + ": " + base::Str(cleared.message()));
  }
}

void RunSlot::Use(Mode mode) {
  const Program& program = graph().program();
  schedule = mode == Mode::kGraph ? &program.graphs : &program.stream;
  UseEventsOf(mode);
}

void RunSlot::DropGraphs() {
  if (replay == nullptr) return;
  replay->Drop();
  replay = nullptr;
}

absl::Status RunSlot::MakeGraphs(SlotGraphs::Upload upload) {
  Use(Mode::kGraph);
  if (graph().plan().lanes.empty()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(graphs, SlotGraphs::Create(*this, {launch, hostcalls.own(), constructs}, upload));
  replay = graphs.get();
  return absl::OkStatus();
}

absl::Status RunSlot::MakeStop() {
  constexpr size_t kBytes = 16;  // which resident regions copy
  PENSTOCK_ASSIGN_OR_RETURN(stop_, options().pinned.Allocate(kBytes, options().pinned_node));
  auto* const stop = static_cast<uint32_t*>(stop_.data());
  std::memset(stop, 0, kBytes);
  fault.UseStop(stop);
  UseStop(stop);
  return absl::OkStatus();
}

void RunSlot::UseStop(const uint32_t* stop) {
  for (const auto& construct : constructs) construct->UseStop(stop);
  for (const auto& control : controls) control->UseStop(stop);
}

absl::Status RunSlot::DescribeFault() const {
  absl::Status cause = fault.status();
  const auto look_into = [&](const auto& construct) {
    if (construct->node() != fault.node()) return;
    if (absl::Status inner = construct->Failure(); !inner.ok()) cause = std::move(inner);
  };
  for (const auto& construct : constructs) look_into(construct);
  for (const auto& control : controls) look_into(control);
  return graph().Describe(fault.node(), cause);
}

absl::StatusOr<std::unique_ptr<WholeGraph>> RunSlot::ExportGraph() {
  return WholeGraph::Create(*this, launch, hostcalls.own());
}

int32_t RunSlot::Begin(int64_t serial, std::chrono::steady_clock::time_point deadline) {
  progress.Reset(serial, deadline);
  queues.state_waits.Reset();
  progress.annotation = base::BeginAnnotation(graph().annotations().run, serial);
  for (const auto& partition : partitions) partition->Reset();
  int32_t work = 0;
  for (size_t s = 0; s < host_states.size(); ++s) {
    host_states[s].store(HostStepState::kWaiting, std::memory_order_relaxed);
    work += tables.is_noop[s] ? 0 : 1;
  }
  hosts.Begin(*schedule, work);
  return work;
}

std::vector<bool> RunSlot::WasSubmitted() const {
  std::vector<bool> was(static_cast<size_t>(schedule->epilogue_begin));
  std::fill_n(was.begin(), progress.first_unsubmitted, true);
  for (size_t i = 0; i < schedule->partitions.size(); ++i) {
    const LanePartition& range = schedule->partitions[i];
    if (range.begin != progress.first_unsubmitted) continue;
    for (int32_t p = 0; p < range.parts(); ++p) {
      for (const PartCommand& c : range.part(p).first(static_cast<size_t>(partitions[i]->done(p)))) {
        was[c.command] = true;
      }
    }
  }
  return was;
}

}  // namespace penstock::runtime
