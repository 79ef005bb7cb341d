#include "src/runtime/calls/launch_call.h"

#include <optional>

#include "penstock/launch_context.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/user_code.h"

namespace penstock::runtime {

absl::Status CallLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects, int32_t call) {
  const driver::Stream stream = objects.stream();
  driver::Driver& driver = objects.driver();
  const CallEntry& entry = graph.program().calls[call];
  const driver::KernelOp& op = slot.tables.kernels[call];
  const int32_t device = graph.plan().nodes[entry.node].device;
  const driver::DeviceInfo& info = graph.device(device).info;
  if (info.kind == driver::DeviceKind::kHost) return driver.Launch(stream, op);
  const NodeCode& code = graph.model().nodes[entry.decl].code;
  PENSTOCK_RETURN_IF_ERROR(driver.LaunchContext(stream, {&slot.fault, entry.node}, slot));
  LaunchContext launch(driver.NativeStream(stream), device, info.name, &objects);
  base::UserCodeScope scope;
  return base::CatchAll("the callable",
                        [&] { return code.call(slot.tables.CallableOf(call, code), &launch, op.argv); });
}

absl::StatusOr<CapturedLaunch> CaptureLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects,
                                             int32_t call) {
  for (int64_t calls = 1;; ++calls) {
    PENSTOCK_RETURN_IF_ERROR(objects.BeginCapture());
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<driver::Graph> captured,
                              objects.EndCapture(CallLaunch(graph, slot, objects, call)));
    if (captured) return CapturedLaunch{*captured, calls};
  }
}

}  // namespace penstock::runtime
