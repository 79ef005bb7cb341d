// What the environment may set instead of RuntimeOptions: pinned memory, submission threads, polling cores.
//
// Threads: free functions, which read the environment.
// Errors:  InvalidArgument with the text and what to write instead.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/limits.h"

namespace penstock::runtime {

// Parses "268435456" or "256M": a number of bytes, or of KiB, MiB or GiB if K, M or G follows it.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// The limit on a runtime's pinned memory in bytes: PENSTOCK_PINNED_BYTES if set, otherwise `option`
// (RuntimeOptions::pinned_bytes); at most `usable`. 0, as the option or in the environment, means half of the machine's
// memory or a quarter of a cgroup's limit: pinned pages are lost to everything else, a machine with all memory pinned
// stops working, and in a cgroup the process is killed.
absl::StatusOr<int64_t> PinnedBudgetOf(int64_t option, const base::UsableMemory& usable);

// The number of threads that help to submit to a device: PENSTOCK_SUBMISSION_THREADS if set, otherwise `option`
// (RuntimeOptions::submission_threads), capped. -1 leaves the choice to DefaultSubmissionThreads.
absl::StatusOr<int> SubmissionThreadsOf(int option);

// The number for each CUDA device on a machine with `cores` cores. The launching thread, the completion thread and the
// CUDA driver's threads need cores too: with as many submission threads as cores, the random DAG took 24 times as long.
int DefaultSubmissionThreads(int cores, int devices);

// The cores that polling threads keep busy: PENSTOCK_POLLING_CORES if set, otherwise the option
// (RuntimeOptions::polling_cores). Refused if it is no list of numbers or has a core twice.
absl::StatusOr<std::vector<int>> PollingCoresOf(std::vector<int> option);

// The name of the source of that list, for messages: the option or the variable.
const char* PollingCoresSource();

}  // namespace penstock::runtime
