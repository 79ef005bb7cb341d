// The number of threads that help to submit to a device.
//
// Threads: stateless.
#pragma once

#include "absl/status/statusor.h"

namespace penstock::runtime {

// PENSTOCK_SUBMISSION_THREADS if set, otherwise `option` (RuntimeOptions::submission_threads), capped. -1 leaves the
// choice to DefaultSubmissionThreads. InvalidArgument if the variable is not such a number.
absl::StatusOr<int> SubmissionThreadsOf(int option);

// The number for each CUDA device on a machine with `cores` cores. The launching thread, the completion thread and the
// CUDA driver's threads need cores too: with as many submission threads as cores, the random DAG took 24 times as long.
int DefaultSubmissionThreads(int cores, int devices);

}  // namespace penstock::runtime
