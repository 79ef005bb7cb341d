#include "tests/conformance/checked_runtimes.h"

#include <utility>

#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/sanitized.h"

namespace penstock::conformance {

using driver::checked::CallRecorder;

constexpr size_t kSlabBytes = 1 << 20;  // small: a test may make a thousand runtimes

absl::StatusOr<Runtime> CreateUncheckedRuntime(const RuntimeOptions& options) {
  if (!kSanitized) return Runtime::Create(options);
  const runtime::ScopedDriverHook hook({.pinned = {.slab_bytes = kSlabBytes}});
  return Runtime::Create(options);
}

absl::StatusOr<Runtime> CheckedRuntimes::CreateRuntime(const RuntimeOptions& options, uint64_t order_seed,
                                                       std::chrono::nanoseconds hostcall_patience) {
  const runtime::ScopedDriverHook hook(
      {.host_options = [order_seed](driver::host::HostDriverOptions& host) { host.order_seed = order_seed; },
       .wrap =
           [this](std::unique_ptr<driver::Driver> driver) {
             witnesses_.push_back(std::make_shared<CallRecorder>());
             return driver::checked::CreateCheckedDriver(std::move(driver), witnesses_.back());
           },
       .pinned = {.slab_bytes = kSlabBytes},
       .hostcall_patience = hostcall_patience});
  return Runtime::Create(options);
}

std::string CheckedRuntimes::Complaints() const {
  std::string text;
  for (const auto& witness : witnesses_) {
    for (const std::string& violation : witness->violations()) text += violation + "\n";
    if (const auto left = witness->gauges(); !(left == driver::checked::Gauges{})) {
      text += "still alive: " + TextOf(left) + "\n";
    }
  }
  return text;
}

}  // namespace penstock::conformance
