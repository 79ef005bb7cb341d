// How many threads help to submit to a device.
//
// Threads: stateless.
#pragma once

#include "absl/status/statusor.h"

namespace penstock::runtime {

// RuntimeOptions::submission_threads, or PENSTOCK_SUBMISSION_THREADS in its place; -1: to be decided by
// DefaultSubmissionThreads. InvalidArgument: the variable is no such number.
absl::StatusOr<int> SubmissionThreadsOf(int option);

// Of each of so many CUDA devices, on a computer of so many cores. Who launches, the completion thread, and those of
// the CUDA driver need cores too: as many submission threads as there are cores had the random DAG take 24 times as
// long.
int DefaultSubmissionThreads(int cores, int devices);

}  // namespace penstock::runtime
