// Lets tests change or wrap a driver before a runtime uses it. PENSTOCK_CHECKED=1 uses it too, to put a checked driver
// in front of each driver and log its findings.
//
// Ownership: a wrapped driver may log through the runtime's logger, which outlives its drivers.
// Threads:   a hook applies to runtimes that its own thread creates.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "penstock/progress.h"
#include "src/base/log.h"
#include "src/driver/driver.h"
#include "src/driver/host/host_driver.h"
#include "src/host/hostcall_poller.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/topology.h"

namespace penstock::runtime {

struct DriverHook {
  std::function<void(driver::host::HostDriverOptions&)> host_options{};  // may be null, as may `wrap`
  std::function<std::unique_ptr<driver::Driver>(std::unique_ptr<driver::Driver>)> wrap{};
  memory::PinnedPoolOptions pinned{};  // except for budget, node, on_node and returned
  std::shared_ptr<const memory::Topology> topology{};  // replaces this machine's
  // How long hostcalls (driver/hostcall_slot.h) wait without a sign of life from the poller, and on which clock.
  std::chrono::nanoseconds hostcall_patience = std::chrono::seconds(10);
  std::function<std::chrono::steady_clock::time_point()> hostcall_clock = std::chrono::steady_clock::now;
  // By which calls of this thread tell their progress.
  std::function<std::chrono::steady_clock::time_point()> progress_clock = std::chrono::steady_clock::now;
};

// Applies the hook to runtimes that this thread creates during its lifetime. Scopes do not nest.
class ScopedDriverHook {
 public:
  explicit ScopedDriverHook(DriverHook hook);
  ~ScopedDriverHook();
  ScopedDriverHook(const ScopedDriverHook&) = delete;
  ScopedDriverHook& operator=(const ScopedDriverHook&) = delete;

 private:
  const DriverHook hook_;
};

// Called by RuntimeCore.
void ApplyHook(driver::host::HostDriverOptions& options);
std::unique_ptr<driver::Driver> ApplyHook(std::unique_ptr<driver::Driver> driver, bool checked,
                                          const base::Logger& logger);
memory::PinnedPoolOptions HookedPinnedOptions();
std::shared_ptr<const memory::Topology> HookedTopology();
host::HostcallPoller::Options HookedPollerOptions();
// `progress` at its pace. Called where a call of the user begins.
ProgressFunction PacedByHook(const ProgressFunction& progress);

}  // namespace penstock::runtime
