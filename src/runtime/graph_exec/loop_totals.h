// LoopTotals: what all runs of a loop have done and taken, in one slot or several.
//
// Threads: plain values.
#pragma once

#include <cstdint>

namespace penstock::runtime {

struct LoopTotals {
  int64_t iterations = 0;
  int64_t timed = 0;  // those that `nanos` stands for
  int64_t nanos = 0;

  void operator+=(const LoopTotals& other) {
    iterations += other.iterations;
    timed += other.timed;
    nanos += other.nanos;
  }
};

}  // namespace penstock::runtime
