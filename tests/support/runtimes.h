// Runtimes on host devices of a thread each.
#pragma once

#include <string>
#include <utility>

#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/sanitized.h"

namespace penstock {

inline Runtime HostRuntime(int workers = 2, const std::string& devices = "host") {
  return *Runtime::Create({.devices = devices, .workers = workers, .host_device_threads = 1});
}

// Where devices do not ring an event count, as CUDA's do not, who waits has to look.
inline Runtime HostRuntimeThatRings(bool rings, int workers = 2, const std::string& devices = "host") {
  runtime::DriverHook hook;
  if (!rings) hook.host_options = [](driver::host::HostDriverOptions& host) { host.event_count = nullptr; };
  if (kSanitized) hook.pinned.slab_bytes = 1 << 20;  // to zero more takes a sanitizer longer than most tests take
  const runtime::ScopedDriverHook scope(std::move(hook));
  return HostRuntime(workers, devices);
}

}  // namespace penstock
