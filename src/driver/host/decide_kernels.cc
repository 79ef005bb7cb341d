#include "src/driver/host/decide_kernels.h"

#include <atomic>

#include "src/driver/loop_kernels.h"

namespace penstock::driver::host {

absl::Status DecideLoop(void* /*callable*/, void* const* argv) {
  const detail::Decision& decision = static_cast<const DecideArgs*>(argv[0])->decision;
  detail::Switch(decision, detail::Decide(decision, 1));
  return absl::OkStatus();
}

absl::Status LookAtStop(void* /*callable*/, void* const* argv) {
  const LookArgs& args = *static_cast<const LookArgs*>(argv[0]);
  const uint32_t stop = std::atomic_ref(*const_cast<uint32_t*>(args.stop)).load(std::memory_order_relaxed);
  if (stop != 0) detail::StopLoop(*args.state, stop);
  return absl::OkStatus();
}

}  // namespace penstock::driver::host
