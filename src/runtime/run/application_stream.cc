#include "src/runtime/run/application_stream.h"

#include <algorithm>
#include <vector>

#include "penstock/status_macros.h"
#include "src/base/user_code.h"
#include "src/driver/current_device.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/run/run_core.h"

namespace penstock::runtime {
namespace {

absl::Status CheckDevice(const CompiledGraph& graph, int device) {
  const size_t lanes = graph.plan().lanes.size();
  for (size_t l = 0; l < lanes; ++l) {
    if (graph.local_device_of_lane(static_cast<int32_t>(l)) == device) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("it is of " + graph.driver().device(device).name +
                                    ", where no node of the plan runs; give one of a device that has nodes");
}

}  // namespace

absl::StatusOr<int> BeginBehindStream(const RunContext& context, RunSlot& slot, void* stream) {
  if (base::InUserCode()) {
    return absl::FailedPreconditionError(
        "launched inside a host node or callback, where waiting for the submission could deadlock; launch "
        "outside, or without a stream");
  }
  const CompiledGraph& graph = context.graph;
  driver::Driver& driver = graph.driver();
  PENSTOCK_ASSIGN_OR_RETURN(const int device, driver.DeviceOfNative(stream));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(graph, device));
  slot.queues.stream_events.resize(static_cast<size_t>(driver.device_count()));
  driver::Event& event = slot.queues.stream_events[device];
  driver::CurrentDevice current(driver, device);
  if (!event) {
    PENSTOCK_ASSIGN_OR_RETURN(event, driver.CreateEvent(device, false));
  }
  PENSTOCK_RETURN_IF_ERROR(driver.RecordOnNative(event, stream));
  slot.predecessors.stream = event;
  if (context.in_order) return device;
  for (const int32_t lane : slot.schedule->lanes) {
    current.Set(graph.local_device_of_lane(lane));
    PENSTOCK_RETURN_IF_ERROR(driver.Wait(slot.queues.streams[lane], event));
  }
  return device;
}

// A stream cannot wait for host steps, so those have ended when this returns. It also waits until a failed run has
// drained what it had submitted. The same goes for a run that the stream cannot be made to wait for: it is in flight,
// and its launcher relies on the order.
absl::Status HoldStream(RuntimeCore& runtime, driver::Driver& driver, RunCore& run, void* stream, int device) {
  Predecessor::Tail tail;
  absl::Status waits;
  const auto settled = [&] {
    if (!run.ended()) run.Advance();
    absl::StatusOr<Predecessor::Tail> now = run.LookAtTail();
    tail = now.ok() ? *std::move(now) : Predecessor::Tail();
    return run.ended() || (tail.submitted && waits.ok() && !run.HasHostWorkLeft());
  };
  const auto settle = [&] {
    if (settled()) return;
    run.Follow();
    if (host::WaitForProgress(runtime.event_count(), runtime.notifies_completion(), run.deadline().at(), settled))
      return;
    run.Advance();  // past its deadline: abandons it, unless another thread is about to end it
    host::WaitForProgress(runtime.event_count(), runtime.notifies_completion(), host::TimePoint::max(),
                          [&] { return run.ended(); });
  };
  settle();
  if (!run.ended() && !tail.ended) {
    const driver::CurrentDevice current(driver, device);
    for (const driver::Event event : *tail.done) {
      if (waits.ok()) waits = driver.MakeNativeWait(stream, event);
    }
    if (waits.ok()) return absl::OkStatus();
    runtime.NoteFault(waits);
    settle();
  }
  return run.drained() || tail.ended ? absl::OkStatus() : run.status();
}

}  // namespace penstock::runtime
