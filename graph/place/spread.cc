#include "graph/place/spread.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "penstock/status_macros.h"

namespace penstock::graph {
namespace {

bool CopiesHost(const SimNode& node) {
  return node.resource == SimResource::kUpload || node.resource == SimResource::kDownload;
}

// A node that may be put on any device.
bool IsTask(const SimNode& node) { return !node.on_host && !CopiesHost(node); }

// The device of all nodes that are on one; -1: there is none.
absl::StatusOr<int32_t> OnlyDevice(const SimGraph& graph) {
  int32_t device = -1;
  for (const SimNode& node : graph.nodes) {
    if (node.on_host) continue;
    if (node.resource == SimResource::kPeer || (device >= 0 && node.device != device)) {
      return absl::InvalidArgumentError("the graph to spread is on several devices already");
    }
    device = node.device;
  }
  if (device < -1 || device >= static_cast<int32_t>(graph.devices.size())) {
    return absl::InvalidArgumentError("the graph to spread is on a device that does not exist");
  }
  return device;
}

absl::Status CheckEdges(const SimGraph& graph, const EdgeBytes& bytes) {
  if (bytes.size() != graph.nodes.size()) return absl::InvalidArgumentError("bytes are not those of the nodes' edges");
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto& after = graph.nodes[n].after;
    const bool all_before =
        std::all_of(after.begin(), after.end(), [n](int32_t p) { return p >= 0 && p < static_cast<int32_t>(n); });
    const bool fit = std::all_of(bytes[n].begin(), bytes[n].end(), [](int64_t size) { return size >= 0; });
    if (!all_before || !fit || bytes[n].size() != after.size()) {
      return absl::InvalidArgumentError("node " + std::to_string(n) + " has edges that are none, or not their bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const SpreadTarget& target) {
  const auto devices = static_cast<size_t>(std::max(target.devices, 0));
  if (devices > 0 && target.links.size() == devices * devices) return absl::OkStatus();
  return absl::InvalidArgumentError("there is no device to spread over, or not a link from each to each");
}

class Spreader {
 public:
  Spreader(const SimGraph& from, const EdgeBytes& bytes, const std::vector<int32_t>& device, const SpreadTarget& target)
      : from_(from), bytes_(bytes), device_(device), target_(target), at_(from.nodes.size()) {}

  SpreadGraph Spread(const SimDevice& each) {
    made_.graph.devices.assign(static_cast<size_t>(target_.devices), each);
    made_.graph.nodes.reserve(from_.nodes.size());
    PlaceHostCopies();
    for (int32_t n = 0; n < static_cast<int32_t>(from_.nodes.size()); ++n) AddNode(n);
    for (const std::vector<int32_t>& state : from_.states) {
      std::vector<int32_t>& touches = made_.graph.states.emplace_back();
      for (const int32_t n : state) touches.push_back(at_[static_cast<size_t>(n)]);
    }
    CountCrossings();
    return std::move(made_);
  }

 private:
  const SimNode& Node(int32_t n) const { return from_.nodes[static_cast<size_t>(n)]; }
  int32_t DeviceOf(int32_t n) const { return device_[static_cast<size_t>(n)]; }

  // Copies of which nothing is said stay on the first device.
  void PlaceHostCopies() {
    for (size_t n = 0; n < device_.size(); ++n) {
      if (CopiesHost(from_.nodes[n])) device_[n] = -1;
    }
    for (int32_t n = 0; n < static_cast<int32_t>(device_.size()); ++n) {
      for (size_t e = 0; e < Node(n).after.size(); ++e) {
        const int32_t p = Node(n).after[e];
        if (Node(p).on_host || Node(n).on_host || bytes_[static_cast<size_t>(n)][e] == 0) continue;
        int32_t& before = device_[static_cast<size_t>(p)];
        if (Node(p).resource == SimResource::kUpload && before < 0) before = DeviceOf(n);
        int32_t& own = device_[static_cast<size_t>(n)];
        if (Node(n).resource == SimResource::kDownload && own < 0) own = before;
      }
    }
    for (size_t n = 0; n < device_.size(); ++n) device_[n] = std::max(device_[n], 0);
  }

  void AddNode(int32_t n) {
    SimNode made = Node(n);
    made.crossings = -1;  // those of its edges now
    if (!made.on_host) {
      made.device = DeviceOf(n);
      made.lane = LaneOn(made.device, made.lane);
    }
    for (size_t e = 0; e < made.after.size(); ++e) {
      const int32_t p = made.after[e];
      const int64_t bytes = bytes_[static_cast<size_t>(n)][e];
      const bool is_there = made.on_host || Node(p).on_host || DeviceOf(p) == made.device || bytes == 0;
      made.after[e] = is_there ? at_[static_cast<size_t>(p)] : CopyTo(made.device, p, bytes);
    }
    at_[static_cast<size_t>(n)] = Add(std::move(made), n);
  }

  int32_t Add(SimNode node, int32_t origin) {
    made_.graph.nodes.push_back(std::move(node));
    made_.origin.push_back(origin);
    return static_cast<int32_t>(made_.origin.size()) - 1;
  }

  // The copy of a node's result that is made for a device, which has as many bytes as the node that needs most.
  int32_t CopyTo(int32_t device, int32_t n, int64_t bytes) {
    const auto [at, is_new] = copies_.try_emplace(int64_t{n} * target_.devices + device, -1);
    if (is_new) at->second = AddCopy(device, n);
    int64_t& copied = made_.graph.nodes[static_cast<size_t>(at->second)].bytes;
    made_.copied_bytes += std::clamp<int64_t>(bytes - copied, 0, INT64_MAX - made_.copied_bytes);
    copied = std::max(copied, bytes);
    return at->second;
  }

  int32_t AddCopy(int32_t device, int32_t n) {
    const PlaceLink& link = target_.links[static_cast<size_t>(DeviceOf(n)) * static_cast<size_t>(target_.devices) +
                                          static_cast<size_t>(device)];
    ++made_.copies;
    SimNode copy{.resource = SimResource::kPeer, .device = device, .from = DeviceOf(n), .graph = Node(n).graph};
    copy.us = link.us;
    copy.gbs = link.gbs;
    copy.after = {at_[static_cast<size_t>(n)]};
    return Add(std::move(copy), -1);
  }

  // Each device has lanes of its own.
  int32_t LaneOn(int32_t device, int32_t lane) {
    if (lane < 0) return -1;
    const auto next = static_cast<int32_t>(lanes_.size());
    return lanes_.try_emplace(int64_t{lane} * target_.devices + device, next).first->second;
  }

  void CountCrossings() {
    const std::vector<SimNode>& nodes = made_.graph.nodes;
    for (const SimNode& node : nodes) {
      for (const int32_t p : node.after) {
        const SimNode& before = nodes[static_cast<size_t>(p)];
        made_.crossings += !node.on_host && !before.on_host && node.device != before.device ? 1 : 0;
      }
    }
  }

  const SimGraph& from_;
  const EdgeBytes& bytes_;
  std::vector<int32_t> device_;  // of each node
  const SpreadTarget& target_;
  SpreadGraph made_;
  std::vector<int32_t> at_;  // of each node: its number in what is made
  // By a node or a lane, and a device.
  std::unordered_map<int64_t, int32_t> copies_, lanes_;
};

std::vector<PlaceTask> TasksOf(const SimGraph& graph, const EdgeBytes& bytes) {
  std::vector<PlaceTask> tasks(graph.nodes.size());
  std::vector<int32_t> named_by(graph.nodes.size(), -1);  // the task that named it last
  for (size_t n = 0; n < tasks.size(); ++n) {
    for (size_t e = 0; e < bytes[n].size(); ++e) {
      const int32_t p = graph.nodes[n].after[e];
      const auto before = static_cast<size_t>(p);
      if (std::exchange(named_by[before], static_cast<int32_t>(n)) == static_cast<int32_t>(n)) continue;
      const bool takes = IsTask(graph.nodes[n]) && IsTask(graph.nodes[before]);
      tasks[n].inputs.push_back({p, takes ? bytes[n][e] : 0});
    }
  }
  return tasks;
}

// Nothing is copied to the host or from there, since uploads and downloads are nodes: those links are like others for
// the sake of what is average.
std::vector<PlaceLink> LinksWithHost(const SpreadTarget& target) {
  const auto devices = static_cast<size_t>(target.devices);
  std::vector<PlaceLink> links;
  links.reserve((devices + 1) * (devices + 1));
  for (size_t a = 0; a <= devices; ++a) {
    for (size_t b = 0; b <= devices; ++b) {
      const bool with_host = a == devices || b == devices;
      PlaceLink link = with_host ? target.links[devices > 1 ? 1 : 0] : target.links[a * devices + b];
      link.us += target.crossing_us;
      links.push_back(link);
    }
  }
  return links;
}

}  // namespace

absl::StatusOr<PlaceGraph> MakePlaceGraph(const SimGraph& graph, const EdgeBytes& bytes, const SpreadTarget& target) {
  PENSTOCK_RETURN_IF_ERROR(CheckEdges(graph, bytes));
  PENSTOCK_RETURN_IF_ERROR(CheckTarget(target));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t only, OnlyDevice(graph));
  PlaceGraph made;
  made.tasks = TasksOf(graph, bytes);
  made.links = LinksWithHost(target);
  made.kinds = 2;
  const int32_t places = only < 0 ? 1 : graph.devices[static_cast<size_t>(only)].kernels;
  made.devices.assign(static_cast<size_t>(target.devices), {.places = places});
  made.devices.push_back({.places = target.workers, .kind = 1});
  for (const SimNode& node : graph.nodes) {
    const double node_us = node.resource == SimResource::kNothing ? 0 : target.node_us;
    made.costs.push_back(IsTask(node) ? node.Cost() + node_us : kCannotRun);
    made.costs.push_back(node.on_host ? node.Cost() : CopiesHost(node) ? 0 : kCannotRun);
  }
  return made;
}

void DealFirstTasks(PlaceGraph& graph) {
  const int32_t devices = static_cast<int32_t>(graph.devices.size()) - 1;
  int32_t next = 0;
  for (int32_t t = 0; t < static_cast<int32_t>(graph.tasks.size()); ++t) {
    PlaceTask& task = graph.tasks[static_cast<size_t>(t)];
    const bool takes =
        std::any_of(task.inputs.begin(), task.inputs.end(), [](const PlaceInput& i) { return i.bytes > 0; });
    if (takes || graph.cost(t, 0) == kCannotRun) continue;
    task.device = next;
    next = (next + 1) % devices;
  }
}

absl::StatusOr<SpreadGraph> SpreadOver(const SimGraph& graph, const EdgeBytes& bytes,
                                       const std::vector<int32_t>& device, const SpreadTarget& target) {
  PENSTOCK_RETURN_IF_ERROR(CheckEdges(graph, bytes));
  PENSTOCK_RETURN_IF_ERROR(CheckTarget(target));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t only, OnlyDevice(graph));
  if (device.size() != graph.nodes.size()) return absl::InvalidArgumentError("not each node has a device");
  for (size_t n = 0; n < device.size(); ++n) {
    if (!IsTask(graph.nodes[n]) || (device[n] >= 0 && device[n] < target.devices)) continue;
    return absl::InvalidArgumentError("node " + std::to_string(n) + " is assigned to a device that does not exist");
  }
  for (const std::vector<int32_t>& state : graph.states) {
    const auto nodes = static_cast<int32_t>(graph.nodes.size());
    const bool exist = std::all_of(state.begin(), state.end(), [nodes](int32_t n) { return n >= 0 && n < nodes; });
    if (!exist) return absl::InvalidArgumentError("a State is touched by a node that does not exist");
  }
  return Spreader(graph, bytes, device, target)
      .Spread(only < 0 ? SimDevice() : graph.devices[static_cast<size_t>(only)]);
}

}  // namespace penstock::graph
