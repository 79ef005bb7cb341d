// Roof: the least time in which a device could execute a node, by what the node declares: its bytes over a bandwidth
// and its floating-point operations over the device's peak, whichever takes longer (Williams, Waterman and Patterson
// 2009).
//
// Threads: plain values, and a pure function.
#pragma once

#include <algorithm>

#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::analysis {

struct Roof {
  double bytes = 0, gbs = 0;  // that it moves, over the link or in memory, and the device's GB/s; 0: unknown
  double flops = 0, gflops = 0;  // that it does, and the device's GFLOP/s; 0: unknown

  double bytes_us() const { return gbs > 0 ? bytes / gbs / 1e3 : 0; }
  double flops_us() const { return gflops > 0 ? flops / gflops / 1e3 : 0; }
  double us() const { return std::max(bytes_us(), flops_us()); }  // 0: unknown
  bool is_of_flops() const { return flops_us() > bytes_us(); }
};

// Returns the roof of a node on that device. A copy moves what it reads.
Roof RoofOf(const Machine::Device& device, const Profile::Node& node);

// Whether the time of a node can be told from what it declares. A kernel or launch may do anything with its buffers,
// unless it says how much it computes.
bool TellsItsWork(const Profile::Node& node);

}  // namespace penstock::analysis
