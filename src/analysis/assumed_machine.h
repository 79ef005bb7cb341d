// A machine with every figure that an estimate needs: what is not known of it is assumed.
//
// The assumptions are in graph/common/assumed_figures.h: those of a small GPU of 2018 and of a processor of a few
// cores. An estimate that stands on them says so.
//
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::analysis {

struct AssumedMachine {
  Machine machine;  // with the devices of the profile, in its order
  std::vector<std::string> assumed;  // "cuda:0 uploads 12.0 GB/s": what was not known
};

// `known` may be null.
AssumedMachine AssumeMissing(const Profile& profile, const Machine* known);

}  // namespace penstock::analysis
