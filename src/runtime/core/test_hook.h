// Where a driver can be changed or wrapped before a runtime uses it: by tests, and by PENSTOCK_CHECKED=1, which puts a
// checked driver in front of each and logs what it finds.
//
// Ownership: a wrapped driver may log through the runtime's logger, which outlives its drivers.
// Threads:   a hook holds for runtimes that its own thread creates.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "src/base/log.h"
#include "src/driver/driver.h"
#include "src/driver/host/host_driver.h"
#include "src/host/hostcall_poller.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/topology.h"

namespace penstock::runtime {

struct DriverHook {
  std::function<void(driver::host::HostDriverOptions&)> host_options{};  // may be null, like the next
  std::function<std::unique_ptr<driver::Driver>(std::unique_ptr<driver::Driver>)> wrap{};
  memory::PinnedPoolOptions pinned{};  // but for budget, node, on_node and returned
  std::shared_ptr<const memory::Topology> topology{};  // in place of this computer's
  // Of kernels that ask (driver/question.h): how long they wait without a sign of the poller, and by which clock.
  std::chrono::nanoseconds hostcall_patience = std::chrono::seconds(10);
  std::function<std::chrono::steady_clock::time_point()> hostcall_clock = std::chrono::steady_clock::now;
};

// Holds the hook for runtimes that this thread creates while it lives. They do not nest.
class ScopedDriverHook {
 public:
  explicit ScopedDriverHook(DriverHook hook);
  ~ScopedDriverHook();
  ScopedDriverHook(const ScopedDriverHook&) = delete;
  ScopedDriverHook& operator=(const ScopedDriverHook&) = delete;

 private:
  const DriverHook hook_;
};

// For RuntimeCore.
void ApplyHook(driver::host::HostDriverOptions& options);
std::unique_ptr<driver::Driver> ApplyHook(std::unique_ptr<driver::Driver> driver, bool checked,
                                          const base::Logger& logger);
memory::PinnedPoolOptions HookedPinnedOptions();
std::shared_ptr<const memory::Topology> HookedTopology();
host::HostcallPoller::Options HookedPollerOptions();

}  // namespace penstock::runtime
