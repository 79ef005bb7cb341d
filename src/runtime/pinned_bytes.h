// How much pinned memory a runtime may have: RuntimeOptions::pinned_bytes, PENSTOCK_PINNED_BYTES, or the default.
//
// Threads: free functions; the second reads the environment.
// Errors:  InvalidArgument with the text and what to write instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::runtime {

// "268435456", "256M": a number of bytes, or of KiB, MiB or GiB with K, M or G behind it.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// The budget in bytes. 0, as the option or in the environment, is half of this computer's memory: pages that are pinned
// are lost to everything else, and a computer with all of them pinned does not go on.
absl::StatusOr<int64_t> PinnedBudgetOf(int64_t option);

}  // namespace penstock::runtime
