#include "src/analysis/over_devices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "graph/place/assign.h"
#include "graph/place/spread.h"
#include "penstock/status_macros.h"
#include "src/analysis/text.h"

namespace penstock::analysis {
namespace {

using graph::PlaceLink;

constexpr int64_t kMostNodesOverDevices = 400'000;  // of all runs on one device

std::string NameOfSpread(const Profile::Graph& graph) {
  return absl::StrCat("graph '", graph::OneLine(graph.name), "'");
}

// The device of the graph's nodes.
absl::StatusOr<int> DeviceToSpread(const Profile::Graph& graph) {
  int device = -1;
  for (const Profile::Node& node : graph.nodes) {
    if (node.device < 0) continue;
    if (node.kind == "peer copy" || (device >= 0 && node.device != device)) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOfSpread(graph),
                       " runs on several devices already; --devices spreads one that was profiled on one device"));
    }
    device = node.device;
  }
  if (device >= 0) return device;
  return absl::FailedPreconditionError(
      absl::StrCat(NameOfSpread(graph), " has no node on a device, so there is nothing to spread over devices"));
}

// The machine's devices that are like the one of the graph, or if it knows none of the kind, like its first.
std::vector<size_t> DevicesLike(const Machine::Device& one, const Machine& machine) {
  std::vector<size_t> like;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    const Machine::Device& other = machine.devices[d];
    if (other.description == one.description && other.is_cuda == one.is_cuda) like.push_back(d);
  }
  return like;
}

double PeerRate(const Machine& machine, size_t from, size_t to) {
  return from < machine.peers.size() && to < machine.peers[from].size() ? machine.peers[from][to] : 0;
}

// A copy to the host, and one from there.
std::optional<PlaceLink> LinkThroughHost(const Machine::Device& device) {
  if (device.upload <= 0 || device.download <= 0) return std::nullopt;
  return PlaceLink{2 * device.copy_us, graph::assumed::ThroughHost(device.download, device.upload)};
}

// Among these devices; nothing where no rate was measured and the device's copies are unknown too.
std::optional<PeerLinks> MeasuredLinks(const Machine& machine, const Machine::Device& device,
                                       const std::vector<size_t>& like) {
  PeerLinks links;
  const std::optional<PlaceLink> through_host = LinkThroughHost(device);
  std::optional<PlaceLink> first;
  bool all_known = true;
  for (const size_t from : like) {
    std::vector<PlaceLink>& row = links.measured.emplace_back();
    for (const size_t to : like) {
      const double rate = PeerRate(machine, from, to);
      const bool has_link = !through_host || rate > through_host->gbs;
      const double us = has_link ? graph::assumed::kPeerCopyUs : through_host->us;
      row.push_back(rate > 0 ? PlaceLink{us, rate} : through_host.value_or(PlaceLink()));
      if (rate > 0 && !first) first = row.back();
      all_known = all_known && (from == to || rate > 0);
    }
  }
  if (!through_host && (!first || !all_known)) return std::nullopt;
  links.other = first ? *first : *through_host;
  if (!first || !all_known) {
    links.notes.push_back(absl::StrCat(first ? "some pairs" : "no pair", " of devices ", first ? "were not" : "was",
                                       " measured; a copy between ", first ? "those" : "devices",
                                       " goes through the host, at ", RateText(through_host->gbs)));
  }
  return links;
}

// The graph to spread, and how.
class OverDevicesSimulation {
 public:
  OverDevicesSimulation(const SimulatedGraph& simulated, const Profile::Graph& of, PeerLinks links)
      : graph_(simulated.graph), options_(simulated.options) {
    made_.links = std::move(links);
    options_.crossing_us = made_.links.crossing_us;
    options_.crossing_submit_us = made_.links.crossing_submit_us;
    graph_.memory.clear();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      auto& bytes = bytes_.emplace_back();
      for (const int32_t p : graph_.nodes[n].after) bytes.push_back(BytesOf(p, n, of));
    }
  }

  absl::StatusOr<OverDevices> Simulate(const std::vector<int32_t>& counts) {
    PENSTOCK_ASSIGN_OR_RETURN(const SpreadTimes one, TimesOnOne());
    made_.one_us = one.run_us;
    for (const int32_t devices : counts) {
      DeviceCount& count = made_.counts.emplace_back();
      count.devices = devices;
      count.ways.push_back(one);
      count.ways.back().busy /= devices;
      if (devices > 1) PENSTOCK_RETURN_IF_ERROR(AddWays(count));
      for (size_t w = 1; w < count.ways.size(); ++w) {
        if (count.ways[w].run_us < count.best_way().run_us) count.best = w;
      }
    }
    return std::move(made_);
  }

 private:
  // An edge that is none is refused when the graph is spread.
  static int64_t BytesOf(int32_t from, size_t to, const Profile::Graph& of) {
    if (from < 0 || static_cast<size_t>(from) >= of.nodes.size()) return 0;
    return std::min(of.nodes[static_cast<size_t>(from)].written_bytes, of.nodes[to].read_bytes);
  }

  graph::SpreadTarget TargetOf(int32_t devices) const {
    graph::SpreadTarget target;
    target.devices = devices;
    for (int32_t a = 0; a < devices; ++a) {
      for (int32_t b = 0; b < devices; ++b) target.links.push_back(made_.links.Between(a, b));
    }
    target.workers = options_.workers;
    target.node_us = options_.as_graphs ? options_.graph_latency_us : options_.stream_latency_us;
    target.crossing_us = options_.crossing_us;
    return target;
  }

  absl::StatusOr<SpreadTimes> TimesOnOne() const {
    const std::vector<int32_t> first(graph_.nodes.size(), 0);
    return TimesOf(SpreadWay::kOne, first, TargetOf(1));
  }

  absl::Status AddWays(DeviceCount& count) const {
    const graph::SpreadTarget target = TargetOf(count.devices);
    PENSTOCK_ASSIGN_OR_RETURN(graph::PlaceGraph tasks, MakePlaceGraph(graph_, bytes_, target));
    PENSTOCK_ASSIGN_OR_RETURN(const graph::Assignment heft, AssignByHeft(tasks));
    DealFirstTasks(tasks);
    PENSTOCK_ASSIGN_OR_RETURN(const graph::Assignment affinity, AssignByAffinity(tasks, 0));
    for (const auto& [way, assignment] :
         {std::pair(SpreadWay::kAffinity, &affinity), std::pair(SpreadWay::kHeft, &heft)}) {
      PENSTOCK_ASSIGN_OR_RETURN(const SpreadTimes times, TimesOf(way, assignment->device, target));
      count.ways.push_back(times);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SpreadTimes> TimesOf(SpreadWay way, const std::vector<int32_t>& device,
                                      const graph::SpreadTarget& target) const {
    PENSTOCK_ASSIGN_OR_RETURN(const graph::SpreadGraph spread, SpreadOver(graph_, bytes_, device, target));
    PENSTOCK_ASSIGN_OR_RETURN(const graph::SimResult result, graph::Simulate(spread.graph, options_));
    SpreadTimes times{.way = way, .run_us = result.run_us, .latency_us = LatencyMicros(result)};
    times.copied_bytes = spread.copied_bytes;
    times.copies = spread.copies;
    times.crossings = spread.crossings;
    times.busy = BusyShare(result, target.devices);
    times.link_share = LinkShare(spread.graph, result.run_us);
    return times;
  }

  static double BusyShare(const graph::SimResult& result, int32_t devices) {
    double shares = 0;
    for (const graph::SimUse& use : result.uses) {
      if (use.resource == graph::SimResource::kKernel) shares += use.busy_us / use.places;
    }
    return result.makespan_us > 0 ? shares / result.makespan_us / devices : 0;
  }

  static double LinkShare(const graph::SimGraph& spread, double run_us) {
    std::vector<double> from(spread.devices.size()), to(spread.devices.size());
    for (const graph::SimNode& node : spread.nodes) {
      if (node.resource != graph::SimResource::kPeer) continue;
      from[static_cast<size_t>(node.from)] += node.Cost();
      to[static_cast<size_t>(node.device)] += node.Cost();
    }
    const double most = std::max(*std::max_element(from.begin(), from.end()), *std::max_element(to.begin(), to.end()));
    return run_us > 0 ? most / run_us : 0;
  }

  graph::SimGraph graph_;
  graph::SimOptions options_;
  graph::EdgeBytes bytes_;
  OverDevices made_;
};

}  // namespace

PlaceLink PeerLinks::Between(int32_t from, int32_t to) const {
  const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  return a < measured.size() && b < measured.size() ? measured[a][b] : other;
}

absl::StatusOr<PeerLinks> PeerLinksOf(const Profile& profile, const Profile::Graph& graph, const Machine* machine,
                                      double peer_gbs) {
  PENSTOCK_ASSIGN_OR_RETURN(const int of_graph, DeviceToSpread(graph));
  if (peer_gbs > 0) {
    PeerLinks links;
    links.other = {graph::assumed::kPeerCopyUs, peer_gbs};
    return links;
  }
  const Machine::Device* device = machine == nullptr ? nullptr : DeviceOf(*machine, profile, of_graph);
  if (device == nullptr && machine != nullptr && !machine->devices.empty()) device = &machine->devices.front();
  if (device != nullptr) {
    std::optional<PeerLinks> links = MeasuredLinks(*machine, *device, DevicesLike(*device, *machine));
    if (links) return *std::move(links);
  }
  return absl::FailedPreconditionError(
      "how fast devices copy to each other is not known; name a machine file with --machine FILE ('penstock calibrate' "
      "makes one), or say --peer-gbs");
}

const char* NameOf(SpreadWay way) {
  switch (way) {
    case SpreadWay::kOne: return "one";
    case SpreadWay::kAffinity: return "affinity";
    case SpreadWay::kHeft: return "heft";
  }
  return "?";
}

int32_t RunsOverDevices(size_t nodes) {
  const int64_t runs = kMostNodesOverDevices / std::max<int64_t>(1, static_cast<int64_t>(nodes));
  return static_cast<int32_t>(std::clamp<int64_t>(runs, 4, 64));
}

absl::StatusOr<OverDevices> SimulateOverDevices(const SimulatedGraph& simulated, const Profile::Graph& graph,
                                                PeerLinks links, const std::vector<int32_t>& counts) {
  return OverDevicesSimulation(simulated, graph, std::move(links)).Simulate(counts);
}

}  // namespace penstock::analysis
