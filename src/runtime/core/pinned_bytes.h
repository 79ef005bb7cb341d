// The limit on a runtime's pinned memory: RuntimeOptions::pinned_bytes, PENSTOCK_PINNED_BYTES, or the default.
//
// Threads: free functions; PinnedBudgetOf reads the environment.
// Errors:  InvalidArgument with the text and what to write instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/base/limits.h"

namespace penstock::runtime {

// Parses "268435456" or "256M": a number of bytes, or of KiB, MiB or GiB if K, M or G follows it.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// The budget in bytes, at most `usable`. 0, as the option or in the environment, means half of the machine's memory or
// a quarter of a cgroup's limit: pinned pages are lost to everything else, a machine with all memory pinned stops
// working, and in a cgroup the process is killed.
absl::StatusOr<int64_t> PinnedBudgetOf(int64_t option, const base::UsableMemory& usable);

}  // namespace penstock::runtime
