// Measurement: how fast the runs of a runtime followed each other, and which choices the program left open.
// Runtime::Measured returns it; tune.h compares settings by it.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct Measurement {
  // The mean time in microseconds from the end of a run to that of the next, of all executables together. The first
  // quarter of the runs is left out, in which kernels are loaded, memory is pinned and modes are tried. The last run
  // counts until the items of pipelines have ended too. 0: no run has ended, or RuntimeOptions::measure is not set.
  double run_us = 0;
  int64_t runs = 0;  // that have ended, the first quarter included; 0 unless RuntimeOptions::measure is set
  // The settings (settings.h) that would have had an effect, as Settings::Set takes them, in the order of their names.
  std::vector<std::string> open{};
};

}  // namespace penstock
