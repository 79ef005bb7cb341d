#include "src/runtime/slot/slot_devices.h"

#include <cstdint>

#include "penstock/launch_context.h"
#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"

namespace penstock::runtime {

SlotDevices::SlotDevices(const CompiledGraph& graph, RuntimeCore& runtime, std::shared_ptr<const SlotDevices> lender)
    : graph_(graph),
      runtime_(runtime),
      lender_(std::move(lender)),
      streams_(graph.plan().lanes.size()),
      arenas_(graph.devices().size(), nullptr),
      zeros_(graph.devices().size(), nullptr) {}

SlotDevices::~SlotDevices() {
  for (const auto& [owner, memory] : allocated_) runtime_.FreeDevice(owner, memory);
  for (const LaneId l : streams_.ids()) {
    if (streams_[l]) graph_.device(graph_.plan().lanes[l].device).driver->DestroyStream(streams_[l]);
  }
}

absl::Status SlotDevices::Make() {
  PENSTOCK_RETURN_IF_ERROR(MakeStreams());
  if (lender_ != nullptr) {
    arenas_ = lender_->arenas_;
    zeros_ = lender_->zeros_;
    return absl::OkStatus();
  }
  PENSTOCK_RETURN_IF_ERROR(MakeArenas());
  return MakeZeros();
}

absl::Status SlotDevices::MakeStreams() {
  for (const LaneId l : streams_.ids()) {
    if (!graph_.program().used_lanes[l]) continue;
    const graph::Lane& lane = graph_.plan().lanes[l];
    const driver::DeviceRef& d = graph_.device(lane.device);
    PENSTOCK_ASSIGN_OR_RETURN(streams_[l], d.driver->CreateStream(d.local, lane.priority));
  }
  return absl::OkStatus();
}

absl::Status SlotDevices::MakeArenas() {
  for (const graph::Arena& arena : graph_.plan().arenas) {
    if (arena.bytes == 0 || arena.device < 0) continue;
    PENSTOCK_ASSIGN_OR_RETURN(void* memory, Allocate(graph_.device(arena.device), static_cast<size_t>(arena.bytes)));
    arenas_[arena.device] = static_cast<std::byte*>(memory);
  }
  return absl::OkStatus();
}

// For the library calls on each CUDA device, which is given these zeros before the slot is used.
absl::Status SlotDevices::MakeZeros() {
  for (const graph::PlanNode& node : graph_.plan().nodes) {
    if (node.kind != graph::PlanKind::kLaunch) continue;
    const driver::DeviceRef& d = graph_.device(node.device);
    void*& at = zeros_[node.device];
    if (at != nullptr || d.info.kind != driver::DeviceKind::kCuda) continue;
    PENSTOCK_ASSIGN_OR_RETURN(at, Allocate(d, LaunchContext::kZeroBytes));
    PENSTOCK_RETURN_IF_ERROR(FillWithZeros(d, at, streams_[node.lane]));
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> SlotDevices::Allocate(const driver::DeviceRef& device, size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(void* memory, device.driver->AllocateDevice(device.local, bytes));
  allocated_.emplace_back(device, memory);
  return memory;
}

absl::Status SlotDevices::FillWithZeros(const driver::DeviceRef& d, void* memory, driver::Stream stream) {
  const driver::CurrentDevice current(*d.driver, d.local);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, d.driver->CreateEvent(d.local, false));
  driver::FillOp fill;
  fill.dst = memory;
  fill.pattern_size = 1;
  fill.count = LaunchContext::kZeroBytes;
  fill.height = fill.depth = 1;
  absl::Status filled = d.driver->Fill(stream, fill);
  if (filled.ok()) filled = AwaitStream(*d.driver, event, stream, runtime_.event_count());
  d.driver->DestroyEvent(event);
  return filled;
}

}  // namespace penstock::runtime
