// Estimates: what runs of a graph will cost on a machine, before any run: by the bytes and operations that its nodes
// declare, and by what the machine can do (assumed_machine.h).
//
// Bound memory counts as pinned: what copying it would take otherwise stands apart. Of a host node only the hand-over
// between it and the device is known, and of a construct one pass over what it declares; notes say where that matters.
//
// Threads: pure functions and plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::analysis {

struct Estimate {
  // What a run needs of one resource, with the resource to itself: no run takes less.
  struct Floor {
    std::string resource;  // "cuda:0 uploads"
    double us = 0;
  };
  // By the simulation of runs that are launched as fast as slots are free.
  struct RunTime {
    int slots = 0;
    double stream_us = 0, graph_us = 0;  // a run, on streams and as graphs
  };
  static constexpr int kMostSlots = 4;

  size_t graph = 0;  // place in Profile::graphs
  // What a run moves to devices, from them, and within them, and what it computes.
  double up_bytes = 0, down_bytes = 0, within_bytes = 0, flops = 0;
  std::vector<Floor> floors;  // in the order of resources
  size_t bound = 0;  // the place of the largest, if there are any
  double unpinned_us = 0;  // what host threads take to copy bound memory that is not pinned
  int64_t slot_device_bytes = 0, slot_pinned_bytes = 0, device_memory_bytes = 0;  // the last of all its devices
  int devices = 0;
  std::array<RunTime, kMostSlots> runs;
  double latency_us = 0;  // of a run, with one slot, in the faster mode
  // What transfers and launches of a run take one after the other, and what all cores of the host would take for its
  // work. Both 0: not to be compared, since the devices are no GPUs.
  double overhead_us = 0, host_us = 0;
  std::vector<std::string> notes;  // sentences

  bool is_too_small() const { return overhead_us > host_us; }  // for a GPU
  int64_t most_slots() const { return slot_device_bytes > 0 ? device_memory_bytes / slot_device_bytes : 0; }
};

// So many nodes are simulated in a second or two.
inline constexpr int64_t kMostSimulatedNodes = 1'600'000;

// Estimates the graph at that place. `machine` has the devices of the profile, with all figures. Where simulations of
// some runs would have more nodes than `most_simulated`, the floor stands for what runs take, and a note says so.
// Errors: those of Simulate.
absl::StatusOr<Estimate> EstimateOf(const Profile& profile, size_t graph, const Machine& machine,
                                    int64_t most_simulated = kMostSimulatedNodes);

}  // namespace penstock::analysis
