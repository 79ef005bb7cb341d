// How many threads and how large chunks a ring needs to keep up with the link: measured once, where somebody needs it.
//
// Ownership: what the measurement uses is given back when it ends.
// Threads:   call it from one thread while nobody else copies, for rates that mean something; else only they suffer.
// Errors:    those of the driver.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"

namespace penstock::memory {

// In bytes a microsecond, by one thread, from and to memory that is in no cache; of the link, in large copies.
struct StagingRates {
  double fill = 0, empty = 0, up = 0, down = 0;
  double copy_overhead = 0;  // microseconds between two copies of one stream
};

// Takes some ten milliseconds.
absl::StatusOr<StagingRates> MeasureStaging(driver::Driver& driver, PinnedPool& pool, int device);

// Threads that fill and empty a third more than the link takes and one that feeds it, `most` of them at most; chunks
// whose pauses between them cost about a tenth of the link (a thirtieth in large copies).
StagingOptions TuneStaging(const StagingRates& rates, int most);

// "13 threads, chunks of 2 to 4 MiB; ..."
std::string TextOf(const StagingRates& rates, const StagingOptions& options);

}  // namespace penstock::memory
