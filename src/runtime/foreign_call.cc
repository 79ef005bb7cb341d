#include "src/runtime/foreign_call.h"

#include <exception>
#include <string>

#include "penstock/foreign.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/executable_core.h"

namespace penstock::runtime {

absl::Status CallForeign(ExecutableCore& core, Slot& slot, int32_t call, driver::Stream stream) {
  const CallEntry& entry = core.program().calls[static_cast<size_t>(call)];
  const driver::KernelOp& op = slot.kernels[static_cast<size_t>(call)];
  const DeviceRef& device = core.device(core.plan().nodes[static_cast<size_t>(entry.node)].device);
  if (device.info.kind == driver::DeviceKind::kHost) return core.driver().Launch(stream, op);
  const NodeCode& code = core.model().nodes[static_cast<size_t>(entry.decl)].code;
  PENSTOCK_RETURN_IF_ERROR(core.driver().Foreign(stream, {&slot.fault, entry.node}, slot));
  Foreign foreign(core.driver().NativeStream(stream), core.plan().nodes[static_cast<size_t>(entry.node)].device,
                  device.info.name);
  base::UserCodeScope scope;
  try {
    return code.call(slot.CallableOf(call, code), &foreign, op.argv);
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("the callable threw: ") + e.what());
  } catch (...) {
    return absl::InternalError("the callable threw something that is no std::exception");
  }
}

absl::StatusOr<driver::Graph> CaptureForeign(ExecutableCore& core, Slot& slot, int32_t call, driver::Stream stream) {
  driver::Driver& driver = core.driver();
  PENSTOCK_RETURN_IF_ERROR(driver.BeginCapture(stream));
  const absl::Status called = CallForeign(core, slot, call, stream);
  absl::StatusOr<driver::Graph> captured = driver.EndCapture(stream);
  if (called.ok()) return captured;
  if (captured.ok()) driver.DestroyGraph(*captured);
  return captured.ok() ? called : base::Suffixed(called, "; and " + base::Str(captured.status().message()));
}

}  // namespace penstock::runtime
