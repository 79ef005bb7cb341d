// How long a graph's steady state would take if its runs overlapped as far as what they use lets them.
//
// What cannot overlap with itself: each engine of a device; the thread that launches, with what it does between runs;
// each host node, whose callable is called once at a time; the threads that copy memory that is not pinned. The busiest
// of these is the bound.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "src/analysis/facts.h"

namespace penstock::analysis {

struct OverlapBound {
  double us = 0;  // of the graph's time
  std::string what;  // "cuda:0 kernels"
};

// What the thread that launches does between runs. kLeftOut: another thread does it; launches still take their time.
enum class BetweenRuns : uint8_t { kCounted, kLeftOut };
OverlapBound BoundOfOverlap(const Facts& facts, int graph, BetweenRuns between = BetweenRuns::kCounted);

// How many slots reach the bound, with a run in flight for each part of a run that takes as long as the bound.
int SlotsFor(const Facts& facts, int graph, const OverlapBound& bound);

// The only graph with a steady state; -1: there are several, or none.
int TheGraph(const Facts& facts);

// What the runs need of the wall time if none of them is launched late: the bound of their overlap, without what the
// program does between them, and no more of them at once than there are slots.
OverlapBound PaceOfRuns(const Facts& facts);

}  // namespace penstock::analysis
