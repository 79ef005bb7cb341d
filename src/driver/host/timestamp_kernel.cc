#include "src/driver/host/timestamp_kernel.h"

#include <atomic>

#include "penstock/detail/decision.h"
#include "src/driver/timestamp.h"

namespace penstock::driver::host {

absl::Status Stamp(void* /*callable*/, void* const* argv) {
  uint64_t& at = *static_cast<const TimestampArgs*>(argv[0])->at;
  std::atomic_ref<uint64_t>(at).store(detail::DeviceNanos(), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace penstock::driver::host
