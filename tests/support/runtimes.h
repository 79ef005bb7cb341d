// Runtimes on host devices of a thread each.
#pragma once

#include <string>

#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"

namespace penstock {

inline Runtime HostRuntime(int workers = 2, const std::string& devices = "host") {
  return *Runtime::Create({.devices = devices, .workers = workers, .host_device_threads = 1});
}

// Where devices do not ring an event count, as CUDA's do not, who waits has to look.
inline Runtime HostRuntimeThatRings(bool rings, int workers = 2, const std::string& devices = "host") {
  if (rings) return HostRuntime(workers, devices);
  const runtime::ScopedDriverHook silent(
      {.host_options = [](driver::host::HostDriverOptions& host) { host.event_count = nullptr; }});
  return HostRuntime(workers, devices);
}

}  // namespace penstock
