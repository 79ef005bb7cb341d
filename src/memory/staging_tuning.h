// Chooses the number of threads and the chunk size with which a ring keeps up with the link, from rates that are
// measured once, on first use.
//
// Ownership: releases everything that the measurement uses when it ends.
// Threads:   call it from one thread while no other thread copies, so that the rates mean something; concurrent copies
//            only distort them.
// Errors:    those of the driver.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"

namespace penstock::memory {

// In bytes per microsecond: one thread filling from and emptying to uncached memory, and the link in large copies.
struct StagingRates {
  double fill = 0, empty = 0, up = 0, down = 0;
  double copy_overhead = 0;  // microseconds between two copies on one stream
};

// Takes a few tens of milliseconds.
absl::StatusOr<StagingRates> MeasureStaging(driver::Driver& driver, PinnedPool& pool, int device);

// Chooses enough threads to fill and empty a third more than the link takes, plus one that feeds it, at most `most` in
// all; and chunks whose pauses cost about a tenth of the link (a thirtieth in large copies).
StagingOptions TuneStaging(const StagingRates& rates, int most);

// "13 threads, chunks of 2 to 4 MiB; ..."
std::string TextOf(const StagingRates& rates, const StagingOptions& options);

}  // namespace penstock::memory
