// HostcallService: the thread that answers hostcalls, and each device's capacity for kernels that wait for it.
//
// Ownership: owns the thread.
// Threads:   thread-safe; poller() may be called once StartPoller has returned OK.
// Locks:     mu_ guards the counts and the start; nothing else is called with it held except starting the thread.
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
  // How long a hostcall may wait without a sign of life from the poller.
  std::chrono::nanoseconds patience() const { return options_.patience; }

  // Reserves capacity on each device for the given number of waiting kernels. Returns false, reserving nothing, if a
  // device lacks it. An empty list reserves nothing.
  bool Reserve(const std::vector<int>& of_devices);
  void Release(const std::vector<int>& of_devices);
  // Why no kernel on the device may wait for the host; empty if it may.
  static std::string UnavailableReason(const driver::DeviceInfo& device);

 private:
  const host::HostcallPoller::Options options_;
  std::unique_ptr<host::HostcallPoller> poller_;  // set once, with mu_ held

  base::Mutex mu_;
  std::vector<int> reserved_ ABSL_GUARDED_BY(mu_);  // one for each device
};

}  // namespace penstock::runtime
