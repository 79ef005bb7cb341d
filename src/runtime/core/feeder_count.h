// How many threads help to submit to a device.
//
// Threads: stateless.
#pragma once

#include "absl/status/statusor.h"

namespace penstock::runtime {

// RuntimeOptions::feeders, or PENSTOCK_FEEDERS in its place; -1: to be decided by DefaultFeeders. InvalidArgument: the
// variable is no such number.
absl::StatusOr<int> FeedersOf(int option);

// Of each of so many CUDA devices, on a computer of so many cores. Who launches, the completion thread, and those of
// the CUDA driver need cores too: as many feeders as there are cores had the random DAG take 24 times as long.
int DefaultFeeders(int cores, int devices);

}  // namespace penstock::runtime
