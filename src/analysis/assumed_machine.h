// A machine with every figure that an estimate needs: what is not known of it is assumed.
//
// The assumptions are those of a small GPU of 2018 behind PCI Express 3, and of a processor of a few cores, so that a
// machine without a GPU, and a program that was recorded elsewhere, have estimates too. An estimate that stands on them
// says so.
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
