// How much pinned memory a runtime may have: RuntimeOptions::pinned_bytes, PENSTOCK_PINNED_BYTES, or the default.
//
// Threads: free functions; the second reads the environment.
// Errors:  InvalidArgument with the text and what to write instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/base/limits.h"

namespace penstock::runtime {

// "268435456", "256M": a number of bytes, or of KiB, MiB or GiB with K, M or G behind it.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// The budget in bytes, at most `usable`. 0, as the option or in the environment, is half of the machine's memory, or a
// quarter of a cgroup's limit: pages that are pinned are lost to everything else, a machine with all of them pinned
// does not go on, and in a cgroup the process is killed.
absl::StatusOr<int64_t> PinnedBudgetOf(int64_t option, const base::UsableMemory& usable);

}  // namespace penstock::runtime
