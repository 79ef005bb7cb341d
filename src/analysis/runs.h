// The runs of a profile: its spans by graph and run.
//
// Threads: plain values, and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/profile.h"

namespace penstock::analysis {

// One run of a graph, as far as its spans are kept.
struct GraphRun {
  size_t graph = 0;  // place in Profile::graphs
  int64_t number = -1;  // as Span::run
  double begin_us = 0, end_us = 0;  // from its launch to its end; unless `whole`, of the spans that there are
  const Span* whole = nullptr;  // its kRun span; null if that is lost
  const Span* submit = nullptr;  // its kSubmit span; null if that is lost
  std::vector<const Span*> work;  // its spans that belong to a node, by their begin

  double length_us() const { return end_us - begin_us; }
};

// By graph, then by number. Spans that belong to no run of a graph in the profile are left out. The runs point into the
// profile, which must outlive them and not change.
std::vector<GraphRun> RunsOf(const Profile& profile);

}  // namespace penstock::analysis
