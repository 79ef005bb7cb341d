// Which of several devices takes the next run: the one that should be done with it first, of those with a free slot.
//
// Threads: free functions without state.
#pragma once

#include <cstdint>

namespace penstock::runtime {

struct DeviceLoad {
  int taken = 0, slots = 0;
  double mean_ns = 0;  // of its runs of late; 0: not known, so that it is tried
  double ahead_ns = 0;  // until its next run can begin
  double weight = 1;  // 0: it takes none that nobody has given it
  int64_t last = 0;  // a number for when it began one last
};

// The slots work at once, so another run is through when all that are taken have moved on by one.
inline double CostOf(const DeviceLoad& load) {
  return load.ahead_ns + load.mean_ns * (load.taken + 1) / (load.slots * load.weight);
}

// The best of `count`, whose loads `load_of(i)` tells; of equals the one that has rested longest. -1: none may take it.
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
