// A Pipeline that pulls the numbers of its items, timed.
//
// Threads: single-threaded.
#pragma once

#include <optional>
#include <utility>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {

// The items are 0 to count - 1. The pipeline is made before the clock starts, and all of its items have come out when
// it stops.
inline Sample PullAll(size_t count, ps::Stages<size_t> stages, ps::PipelineOptions options = {}) {
  auto pipe = Must(ps::Pipeline<size_t>::Create(std::move(stages), std::move(options)));
  const Clock::time_point begin = Clock::now();
  size_t next = 0;
  Must(pipe.Run([&]() -> std::optional<size_t> { return next < count ? std::optional(next++) : std::nullopt; },
                [](ps::Item<size_t>& item) { Must(item.status()); }));
  const double total = Microseconds(Clock::now() - begin);
  return {total, total};
}

}  // namespace bench
