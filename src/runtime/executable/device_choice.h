// Chooses which of several devices takes the next run: of those with a free slot, the one expected to finish it first.
//
// Threads: free functions without state.
#pragma once

#include <cstdint>

namespace penstock::runtime {

struct DeviceLoad {
  int taken = 0, slots = 0;
  double mean_ns = 0;  // mean duration of its recent runs; 0: unknown, so it is tried
  double busy_ns = 0;  // time until its next run can begin
  double weight = 1;  // 0: it takes only runs that name it
  int64_t last = 0;  // sequence number of its last begun run
};

// The slots work in parallel, so another run finishes when every taken slot has advanced by one run.
inline double CostOf(const DeviceLoad& load) {
  return load.busy_ns + load.mean_ns * (load.taken + 1) / (load.slots * load.weight);
}

// The best of `count` devices with loads `load_of(i)`; of equals, the one that has rested longest. -1: none.
template <class LoadOf>
int ChooseDevice(int count, LoadOf load_of) {
  int best = -1;
  double least = 0;
  int64_t last = 0;
  for (int i = 0; i < count; ++i) {
    const DeviceLoad load = load_of(i);
    if (load.taken >= load.slots || load.weight <= 0) continue;
    const double cost = CostOf(load);
    if (best >= 0 && (cost > least || (cost == least && load.last >= last))) continue;
    best = i, least = cost, last = load.last;
  }
  return best;
}

}  // namespace penstock::runtime
