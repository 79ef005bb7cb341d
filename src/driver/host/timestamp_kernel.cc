#include "src/driver/host/timestamp_kernel.h"

#include <atomic>
#include <chrono>

#include "src/driver/timestamp.h"

namespace penstock::driver::host {

absl::Status Stamp(void* /*callable*/, void* const* argv) {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  uint64_t& at = *static_cast<const TimestampArgs*>(argv[0])->at;
  std::atomic_ref<uint64_t>(at).store(static_cast<uint64_t>(now.count()), std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace penstock::driver::host
