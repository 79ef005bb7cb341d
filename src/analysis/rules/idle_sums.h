// Idle time summed: how much of it each node, or each graph, causes.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "src/analysis/facts.h"

namespace penstock::analysis {

struct IdleSum {
  int graph = -1, node = -1;  // places in the profile; -1: none
  double us = 0;  // all of it
  double absorbed_us = 0;  // of this, hand-overs beside the step
  int64_t parts = 0;
  IdlePart longest;
};

// One for each node that causes idle time of that kind, or for each graph if the cause has no nodes (launches).
std::vector<IdleSum> SumIdle(const Facts& facts, IdleCause cause);

// When there was idle time of that kind.
TimeSet IdleTimes(const Facts& facts, IdleCause cause);

}  // namespace penstock::analysis
