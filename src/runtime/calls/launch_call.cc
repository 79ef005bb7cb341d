#include "src/runtime/calls/launch_call.h"

#include "penstock/launch_context.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/user_code.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

absl::Status CallLaunch(ExecutableCore& core, Slot& slot, int32_t call, int32_t lane) {
  const driver::Stream stream = slot.streams[static_cast<size_t>(lane)];
  const CallEntry& entry = core.program().calls[static_cast<size_t>(call)];
  const driver::KernelOp& op = slot.kernels[static_cast<size_t>(call)];
  const driver::DeviceRef& device = core.device(core.plan().nodes[static_cast<size_t>(entry.node)].device);
  if (device.info.kind == driver::DeviceKind::kHost) return core.driver().Launch(stream, op);
  const NodeCode& code = core.model().nodes[static_cast<size_t>(entry.decl)].code;
  PENSTOCK_RETURN_IF_ERROR(core.driver().LaunchContext(stream, {&slot.fault, entry.node}, slot));
  LaunchContext launch(core.driver().NativeStream(stream), core.plan().nodes[static_cast<size_t>(entry.node)].device,
                       device.info.name, &slot.launch[static_cast<size_t>(lane)]);
  base::UserCodeScope scope;
  return base::CatchAll("the callable", [&] { return code.call(slot.CallableOf(call, code), &launch, op.argv); });
}

absl::StatusOr<driver::Graph> CaptureLaunch(ExecutableCore& core, Slot& slot, int32_t call, int32_t lane,
                                            int64_t& calls) {
  LaunchObjects& objects = slot.launch[static_cast<size_t>(lane)];
  for (;;) {
    PENSTOCK_RETURN_IF_ERROR(objects.BeginCapture());
    ++calls;
    bool again = false;
    absl::StatusOr<driver::Graph> captured = objects.EndCapture(CallLaunch(core, slot, call, lane), again);
    if (!again) return captured;
  }
}

}  // namespace penstock::runtime
