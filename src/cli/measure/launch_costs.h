// What launches and tiny nodes cost on a device.
//
// The tiny kernel is a Fill of four bytes that differ, which the library's own kernel does on CUDA devices: a command
// without kernels of its own has no emptier one.
//
// Threads: free function.
// Errors:  those of Compile, Launch and Wait. FailedPrecondition: PENSTOCK_MODE or PENSTOCK_SYNC has chosen the mode.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/ps.h"
#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

// In microseconds.
struct LaunchCosts {
  double launch = 0;  // until Launch returns, of a graph of one kernel
  double empty_run = 0;  // of the same, until Wait returns
  double stream_node = 0, graph_node = 0;  // of each kernel of a chain
  double host_node = 0;  // what a host node between each two kernels of a chain adds
  double small_copy = 0;  // of each copy of four bytes to the device in a chain, pinned
};

absl::StatusOr<LaunchCosts> MeasureLaunches(Runtime& runtime, int device, const Effort& effort);

}  // namespace penstock::cli::measure
