// How many single-precision operations a device does: chains of multiply-adds in registers, as plain code has them.
//
// Where the command was not compiled by nvcc (PENSTOCK_BUILD_CUDA_PROGRAMS), it has no kernel for CUDA devices, whose
// figure is then unknown. On host devices the figure is that of the code which this compiler makes without options for
// a processor: code with wider vectors exceeds it.
//
// Threads: one thread.
// Errors:  ResourceExhausted: the memory does not fit. DataLoss: the device has computed something else.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/ps.h"
#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

// GFLOP/s, a multiply-add counting as two; 0: unknown.
absl::StatusOr<double> FlopRate(Runtime& runtime, int device, bool quick, const Effort& effort);

}  // namespace penstock::cli::measure
