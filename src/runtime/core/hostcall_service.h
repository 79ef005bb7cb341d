// HostcallService: the thread that answers devices, and how much room each device has for kernels that wait for it.
//
// Ownership: owns the thread.
// Threads:   thread-safe; poller() once a StartPoller has returned OK.
// Locks:     mu_ guards the counts and the start; only the thread is started with it held.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/host/hostcall_poller.h"

namespace penstock::runtime {

class HostcallService {
 public:
  explicit HostcallService(const host::HostcallPoller::Options& options) : options_(options) {}

  host::HostcallPoller& poller() { return *poller_; }
  absl::Status StartPoller();
  void StopPoller();
  void DropPoller() { poller_.reset(); }
  // How long a question may wait without a sign of the poller.
  std::chrono::nanoseconds patience() const { return options_.patience; }

  // Keeps room for so many kernels that wait on each device, while they exist, or none. Empty: none.
  bool Reserve(const std::vector<int>& of_devices);
  void Release(const std::vector<int>& of_devices);
  // Empty, or why no kernel of the device may wait for the host.
  static std::string UnavailableReason(const driver::DeviceInfo& device);

 private:
  const host::HostcallPoller::Options options_;
  std::unique_ptr<host::HostcallPoller> poller_;  // set once, with mu_ held

  base::Mutex mu_;
  std::vector<int> reserved_ ABSL_GUARDED_BY(mu_);  // of each device
};

}  // namespace penstock::runtime
