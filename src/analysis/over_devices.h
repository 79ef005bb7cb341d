// A graph of a profile over several devices: what it would take if its nodes were spread over so many, in each of
// several ways (graph/place/spread.h), and which of them is best.
//
// All devices are like the one on which the graph ran, and so are costs. A profile does not say how many bytes a node
// takes from another one: the fewer of what the one writes and what the other reads count, which may be too many.
//
// Threads: pure functions and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/common/assumed_figures.h"
#include "graph/place/place_graph.h"
#include "penstock/profile.h"
#include "src/analysis/machine.h"
#include "src/analysis/sim_graph.h"

namespace penstock::analysis {

// How results get from one device to another.
struct PeerLinks {
  double crossing_us = graph::assumed::kCrossingUs,
         crossing_submit_us = graph::assumed::kCrossingSubmitUs;  // as in graph::SimOptions
  // Among the devices that were measured; all other links are like `other`.
  std::vector<std::vector<graph::PlaceLink>> measured{};
  graph::PlaceLink other{};
  std::vector<std::string> notes{};  // sentences: where this is from

  graph::PlaceLink Between(int32_t from, int32_t to) const;
};

// `machine` may be null; `peer_gbs` is 0 or stands for all that was measured. Errors: FailedPrecondition if the graph
// has no node on a device, or is on several, or if nothing says how fast a copy is.
absl::StatusOr<PeerLinks> PeerLinksOf(const Profile& profile, const Profile::Graph& graph, const Machine* machine,
                                      double peer_gbs);

// Ways to assign nodes to devices. A later one is best only if it is faster.
//   kOne       all on one
//   kAffinity  those that take nothing from others on a device go to the devices in turn, all others to where most of
//              the bytes are that they take
//   kHeft      HEFT (graph/place/assign.h)
enum class SpreadWay : uint8_t { kOne, kAffinity, kHeft };
const char* NameOf(SpreadWay way);

struct SpreadTimes {
  SpreadWay way{};
  double run_us = 0, latency_us = 0;  // as in SimResult; from the launch of a run to its end, on average
  int64_t copied_bytes = 0;  // a run, between devices
  int32_t copies = 0, crossings = 0;  // a run
  double busy = 0;  // the share of the time in which a device's places for kernels are taken, on average
  // What the copies from a device, or to one, take of a run if they are made one after the other: more than 1 is more
  // than one link can do. Of the device for which it is most.
  double link_share = 0;
};

struct DeviceCount {
  int32_t devices = 1;
  std::vector<SpreadTimes> ways{};
  size_t best = 0;  // a place in `ways`
  const SpreadTimes& best_way() const { return ways[best]; }
};

struct OverDevices {
  PeerLinks links;
  double one_us = 0;  // a run on one device
  std::vector<DeviceCount> counts{};
};

constexpr int32_t kMostDevices = 1024;

// How many runs of a graph with so many nodes to simulate: enough for a steady state, and fewer of large ones.
int32_t RunsOverDevices(size_t nodes);

// `simulated` is of this graph; `counts` are from 1 to kMostDevices. Errors: those of Simulate.
absl::StatusOr<OverDevices> SimulateOverDevices(const SimulatedGraph& simulated, const Profile::Graph& graph,
                                                PeerLinks links, const std::vector<int32_t>& counts);

}  // namespace penstock::analysis
