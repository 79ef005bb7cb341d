// What the parts of the resident benchmark measure with.
//
// Threads: single-threaded.
#pragma once

#include <random>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {

struct Context {
  const Options& options;
  const bool cuda;  // whether device 0 is a CUDA device; otherwise only the results of Penstock's ways are of interest
  ps::Runtime& runtime;
  std::mt19937& random;

  void Run(std::vector<Way>& ways) const { Measure(ways, options.quick ? 1 : 3, options.repeats); }
};

// With and without regions, both in graph mode.
struct Regions {
  const char* name;
  ps::Resident resident;
};
inline constexpr Regions kRegions[] = {{"Penstock, graph mode", ps::Resident::kOff},
                                       {"Penstock, resident", ps::Resident::kOn}};
inline constexpr const Regions &kOff = kRegions[0], &kOn = kRegions[1];

}  // namespace bench
