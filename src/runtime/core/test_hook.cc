#include "src/runtime/core/test_hook.h"

#include <string>
#include <utility>

#include "src/base/pace.h"
#include "src/driver/checked/checked_driver.h"

namespace penstock::runtime {
namespace {

thread_local const DriverHook* hook = nullptr;

}  // namespace

ScopedDriverHook::ScopedDriverHook(DriverHook h) : hook_(std::move(h)) { hook = &hook_; }
ScopedDriverHook::~ScopedDriverHook() { hook = nullptr; }

void ApplyHook(driver::host::HostDriverOptions& options) {
  if (hook != nullptr && hook->host_options) hook->host_options(options);
}

memory::PinnedPoolOptions HookedPinnedOptions() { return hook == nullptr ? memory::PinnedPoolOptions() : hook->pinned; }

std::shared_ptr<const memory::Topology> HookedTopology() { return hook == nullptr ? nullptr : hook->topology; }

host::HostcallPoller::Options HookedPollerOptions() {
  if (hook == nullptr) return {};
  return {.patience = hook->hostcall_patience, .now = hook->hostcall_clock};
}

ProgressFunction PacedByHook(const ProgressFunction& progress) {
  return hook == nullptr ? base::Paced(progress) : base::Paced(progress, hook->progress_clock);
}

std::unique_ptr<driver::Driver> ApplyHook(std::unique_ptr<driver::Driver> driver, bool checked,
                                          const base::Logger& logger) {
  if (hook != nullptr && hook->wrap) return hook->wrap(std::move(driver));
  if (!checked) return driver;
  const auto report = [&logger](const std::string& violation) { logger.Log(LogLevel::kError, violation); };
  return driver::checked::CreateCheckedDriver(std::move(driver),
                                              std::make_shared<driver::checked::CallRecorder>(report));
}

}  // namespace penstock::runtime
