// CompileOptions: what Runtime::Compile is told beside the graph.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/mode.h"
#include "penstock/trace.h"

namespace penstock {

// A device that takes its part of an executable's runs.
struct DeviceShare {
  // `index` in the runtime's device list, and the weight `of` that device.
  DeviceShare(int index, double of = 1) : device(index), weight(of) {}  // NOLINT: implicit
  int device;  // index in the runtime's list
  // How much faster than measured the device counts when the next run is given to one, and its part of the keys; 0:
  // it gets only what names it.
  double weight;
};

struct CompileOptions {
  int slots = 2;  // runs of the executable that can be in flight at once, on each of its devices
  int device = 0;  // of nodes without a pin
  // Not empty: instead of `device`, several, each of which can do all of a run (Executable).
  std::vector<DeviceShare> devices{};
  // How nodes are submitted (mode.h). PENSTOCK_MODE=stream|graph|auto wins.
  Mode mode = Mode::kAuto;
  int max_lanes = 8;  // streams for kernels, a device and slot; at least 1
  // The most bytes that the arenas of all slots may take on a device; 0: what the device has. Executable::memory()
  // tells what they take.
  int64_t device_bytes = 0;
  std::shared_ptr<Trace> trace{};  // record every run: on streams, but under Mode::kGraph in graphs (trace.h)
  // Runs the host code of every ParallelFor and of every Kernel and Launch that has a HostFallback beside the device's,
  // on copies of its buffers, and fails the run where the results differ. Slow; adds nodes to the plan. Nodes that
  // access a buffer twice, an alias, or a buffer with Unordered accesses are not checked; the log names them.
  // PENSTOCK_CHECK_AGAINST_HOST=1 does it for every executable. With more than one slot a host fallback may run twice
  // at once.
  bool check_against_host = false;
  double host_tolerance = 0;  // of float and double, relative, 0 or more; 0: equal bytes
};

}  // namespace penstock
