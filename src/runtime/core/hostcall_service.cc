#include "src/runtime/core/hostcall_service.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace penstock::runtime {

absl::Status HostcallService::StartPoller() {
  base::MutexLock lock(mu_);
  if (poller_ != nullptr) return absl::OkStatus();
  try {
    poller_ = std::make_unique<host::HostcallPoller>(options_);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(std::string("the system refuses a thread that answers devices: ") +
                                        error.what() + "; let this process or its user have more");
  }
  return absl::OkStatus();
}

void HostcallService::StopPoller() {
  host::HostcallPoller* poller = nullptr;
  {
    base::MutexLock lock(mu_);
    poller = poller_.get();
  }
  if (poller != nullptr) poller->Stop();
}

bool HostcallService::Reserve(const std::vector<int>& of_devices) {
  base::MutexLock lock(mu_);
  reserved_.resize(std::max(reserved_.size(), of_devices.size()));
  for (size_t d = 0; d < of_devices.size(); ++d) {
    if (reserved_[d] + of_devices[d] > driver::kMaxPendingHostcalls) return false;
  }
  for (size_t d = 0; d < of_devices.size(); ++d) reserved_[d] += of_devices[d];
  return true;
}

void HostcallService::Release(const std::vector<int>& of_devices) {
  base::MutexLock lock(mu_);
  for (size_t d = 0; d < of_devices.size(); ++d) reserved_[d] -= of_devices[d];
}

// If each launch is waited for, the thread that would answer may be the one that waits.
std::string HostcallService::UnavailableReason(const driver::DeviceInfo& device) {
  if (device.kind != driver::DeviceKind::kCuda) return "";
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) != "0" && *blocking != '\0') {
    return "CUDA_LAUNCH_BLOCKING is set";
  }
  // Nsight Compute runs a kernel many times and sets this undocumented variable for the programs that it runs.
  return std::getenv("NV_COMPUTE_PROFILER_PERFWORKS_DIR") != nullptr ? "a profiler replays kernels" : "";
}

}  // namespace penstock::runtime
