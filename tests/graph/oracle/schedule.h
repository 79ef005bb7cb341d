// One legal interleaving of a run: every operation starts once all that it waits for has ended, and ends at some later
// time. Nothing else restricts the choice, which is random.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/graph/oracle/execution.h"

namespace penstock::graph {

struct Moment {
  int32_t node;  // of the plan
  bool ends;     // or starts
};

// The starts and ends of all nodes. The execution must have no problem.
std::vector<Moment> RandomSchedule(const Execution& run, std::mt19937_64& random);

}  // namespace penstock::graph
