// SlotDevices: what a slot has on devices: its streams and its memory. Slots whose runs are in order
// (CompileOptions::in_order) share the memory, and the streams too unless Launch nodes are captured on them.
//
// Ownership: owns the streams and, alone or with others, the memory; borrows the compiled graph and the runtime.
// Threads:   constant after Make.
// Errors:    Make returns the driver's error; what it had made by then is freed with the object.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class SlotDevices {
 public:
  // Uses the memory of `lender`, unless it is null.
  SlotDevices(const CompiledGraph& graph, RuntimeCore& runtime, std::shared_ptr<const SlotDevices> lender);
  SlotDevices(const SlotDevices&) = delete;
  SlotDevices& operator=(const SlotDevices&) = delete;
  ~SlotDevices();

  absl::Status Make();

  // Null except in Program::used_lanes.
  const Table<LaneId, driver::Stream>& streams() const { return streams_; }
  // The plan's arena on a device; null if there is none.
  std::byte* arena(DeviceId device) const { return arenas_[device]; }
  // LaunchContext::kZeroBytes zero bytes on a device of the runtime; null if no Launch node can ask for them.
  const void* zeros(DeviceId device) const { return zeros_[device]; }

 private:
  absl::Status MakeStreams();
  absl::Status MakeArenas();
  absl::Status MakeZeros();
  absl::StatusOr<void*> Allocate(const driver::DeviceRef& device, size_t bytes);
  absl::Status FillWithZeros(const driver::DeviceRef& device, void* memory, driver::Stream stream);

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
  const std::shared_ptr<const SlotDevices> lender_;
  Table<LaneId, driver::Stream> streams_;
  Table<DeviceId, std::byte*> arenas_;
  Table<DeviceId, void*> zeros_;
  std::vector<std::pair<driver::DeviceRef, void*>> allocated_;
};

}  // namespace penstock::runtime
