#include "src/runtime/slot/state_waits.h"

#include "penstock/status_macros.h"

namespace penstock::runtime {
namespace {

DeviceId DeviceOfState(const graph::Plan& plan, size_t use) { return plan.instances[plan.states[use].instance].device; }

}  // namespace

StateWaits::~StateWaits() {
  for (size_t use = 0; use < waits_.size(); ++use) {
    for (const driver::Event event : {waits_[use].begin, waits_[use].end}) {
      if (event) graph_.device(DeviceOfState(graph_.plan(), use)).driver->DestroyEvent(event);
    }
  }
}

absl::Status StateWaits::Make() {
  waits_.resize(graph_.plan().states.size());
  for (size_t use = 0; use < waits_.size(); ++use) {
    const driver::DeviceRef& device = graph_.device(DeviceOfState(graph_.plan(), use));
    PENSTOCK_ASSIGN_OR_RETURN(waits_[use].begin, device.driver->CreateEvent(device.local, true));
    PENSTOCK_ASSIGN_OR_RETURN(waits_[use].end, device.driver->CreateEvent(device.local, true));
  }
  return absl::OkStatus();
}

void StateWaits::Reset() {
  for (Wait& wait : waits_) {
    wait.lane = LaneId();
    wait.ended = false;
  }
}

absl::Status StateWaits::Begin(int32_t use, LaneId lane, driver::Stream stream) {
  if (waits_.empty()) return absl::OkStatus();
  Wait& wait = waits_[static_cast<size_t>(use)];
  const bool is_there = graph_.plan().lanes[lane].device == DeviceOfState(graph_.plan(), static_cast<size_t>(use));
  if (wait.lane >= 0 || !is_there) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(graph_.driver().Record(wait.begin, stream));
  wait.lane = lane;
  return absl::OkStatus();
}

absl::Status StateWaits::End(int32_t use, LaneId lane, driver::Stream stream) {
  Wait* const wait = Find(use, lane);
  if (wait == nullptr) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(graph_.driver().Record(wait->end, stream));
  wait->ended = true;
  return absl::OkStatus();
}

StateWaits::Wait* StateWaits::Find(int32_t use, LaneId lane) {
  if (waits_.empty()) return nullptr;
  Wait& wait = waits_[static_cast<size_t>(use)];
  return wait.lane == lane && !wait.ended ? &wait : nullptr;
}

}  // namespace penstock::runtime
