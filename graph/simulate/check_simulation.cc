// What Simulate refuses.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/simulate/sim_program.h"

namespace penstock::graph {
namespace {

constexpr int64_t kMostNodeRuns = 10'000'000, kMostEdgeRuns = 100'000'000;
constexpr double kMostBytes = 4e18;  // of all memory that runs hold together
constexpr int32_t kMostPlaces = 1 << 16;  // of a resource
constexpr double kMostMicros = 1e12;  // of all work together: 2^-20 us are counted in 64 bits

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("simulation: ", std::string(what)));
}

bool IsTime(double us) { return std::isfinite(us) && us >= 0; }

class SimulationCheck {
 public:
  SimulationCheck(const SimGraph& graph, const SimOptions& options) : graph_(graph), options_(options) {}

  absl::Status Run() {
    if (absl::Status status = Options(); !status.ok()) return status;
    if (absl::Status status = Devices(); !status.ok()) return status;
    double all_us = 0;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (const std::string wrong = WrongInNode(n); !wrong.empty()) {
        return Wrong(absl::StrCat("node ", n, " ", wrong));
      }
      all_us += MostMicros(graph_.nodes[n]);
    }
    all_us += options_.launch_us + options_.between_us + options_.period_us;
    if (!(all_us * options_.runs <= kMostMicros)) {
      return Wrong("all work together takes more than 10^12 us; simulate fewer runs, or correct the costs");
    }
    return Lists();
  }

 private:
  absl::Status Options() const {
    const SimOptions& o = options_;
    for (const auto& [name, count] : {std::pair("runs", o.runs), std::pair("slots", o.slots),
                                      std::pair("workers", o.workers), std::pair("threads", o.threads)}) {
      if (count < 1) return Wrong(absl::StrCat(name, " are ", count, "; there is at least one"));
      if (count > kMostPlaces && count != o.runs) return Wrong(absl::StrCat(name, " are more than ", kMostPlaces));
    }
    if (o.in_flight < 0) return Wrong("fewer than 0 runs in flight; say 0 for as many as there are slots");
    for (const auto& [name, us] :
         {std::pair("between_us", o.between_us), std::pair("period_us", o.period_us),
          std::pair("launch_us", o.launch_us), std::pair("node_us", o.node_us), std::pair("graph_us", o.graph_us),
          std::pair("stream_latency_us", o.stream_latency_us), std::pair("graph_latency_us", o.graph_latency_us),
          std::pair("start_us", o.start_us), std::pair("crossing_us", o.crossing_us),
          std::pair("crossing_submit_us", o.crossing_submit_us), std::pair("completion_us", o.completion_us)}) {
      if (!IsTime(us)) return Wrong(absl::StrCat(name, " is ", us, "; a time is finite and not negative"));
    }
    return Size();
  }

  // Whatever is done once for each run counts.
  absl::Status Size() const {
    size_t size = graph_.nodes.size() + graph_.memory.size() + graph_.states.size();
    if (static_cast<int64_t>(size) >= kMostNodeRuns / options_.runs) {
      return Wrong(absl::StrCat(size, " nodes, States and pieces of memory in ", options_.runs, " runs are more than ",
                                kMostNodeRuns, "; simulate fewer runs"));
    }
    size = 0;
    for (const SimNode& node : graph_.nodes) size += node.after.size();
    for (const SimMemory& memory : graph_.memory) size += memory.users.size();
    for (const std::vector<int32_t>& state : graph_.states) size += state.size();
    if (static_cast<int64_t>(size) > kMostEdgeRuns / options_.runs) {
      return Wrong(absl::StrCat(size, " predecessors and users of memory in ", options_.runs, " runs are more than ",
                                kMostEdgeRuns, "; simulate fewer runs"));
    }
    return absl::OkStatus();
  }

  absl::Status Devices() const {
    for (size_t d = 0; d < graph_.devices.size(); ++d) {
      const SimDevice& device = graph_.devices[d];
      if (device.kernels < 1 || device.kernels > kMostPlaces) {
        return Wrong(absl::StrCat("device ", d, " runs ", device.kernels, " kernels at a time; 1 to ", kMostPlaces));
      }
      for (const double slowdown : {device.upload_slowdown, device.download_slowdown}) {
        if (!(slowdown >= 1 && slowdown <= 1e3)) {
          return Wrong(absl::StrCat("device ", d, " slows copies down by ", slowdown, "; 1 to 1000"));
        }
      }
    }
    return absl::OkStatus();
  }

  bool IsDevice(int32_t d) const { return d >= 0 && d < static_cast<int32_t>(graph_.devices.size()); }

  std::string WrongInNode(size_t n) const {
    const SimNode& node = graph_.nodes[n];
    const SimResource on = node.resource;
    if (on > SimResource::kWorker) return "is a launch, which no node is";
    if (on == SimResource::kWorker && !node.on_host) return "occupies a worker, but is no host step";
    if (node.on_host && on != SimResource::kWorker && on != SimResource::kNothing) return "is a host step on a device";
    if (!node.on_host && !IsDevice(node.device)) return absl::StrCat("is on device ", node.device, ", which is none");
    if (on == SimResource::kPeer && !IsDevice(node.from)) {
      return absl::StrCat("copies from device ", node.from, ", which is none");
    }
    if (!IsTime(node.us) || !IsTime(node.gbs) || node.bytes < 0 || !IsTime(node.Cost())) {
      return absl::StrCat("takes ", node.us, " us and ", node.bytes, " bytes at ", node.gbs,
                          " GB/s; a cost is finite and not negative");
    }
    if (node.crossings < -1 || node.crossings > kMostPlaces) {
      return absl::StrCat("waits for ", node.crossings, " events of other devices; -1 to ", kMostPlaces);
    }
    for (const int32_t before : node.after) {
      if (before < 0 || before >= static_cast<int32_t>(n)) {
        return absl::StrCat("follows node ", before,
                            ", which does not come before it; list the nodes in the order of submission");
      }
      const SimNode& other = graph_.nodes[static_cast<size_t>(before)];
      if (!node.on_host && !other.on_host && other.graph > node.graph) {
        return absl::StrCat("is in graph ", node.graph, ", but follows node ", before, " of graph ", other.graph,
                            "; number graphs in the order of submission");
      }
    }
    return {};
  }

  double MostMicros(const SimNode& node) const {
    double us = node.Cost();
    if (IsDevice(node.device)) {
      const SimDevice& device = graph_.devices[static_cast<size_t>(node.device)];
      us *= std::max(device.upload_slowdown, device.download_slowdown);
    }
    const auto edges = static_cast<double>(std::max<int64_t>(node.crossings, std::ssize(node.after)));
    us += edges * options_.crossing_submit_us;
    return us + options_.node_us + options_.graph_us + options_.stream_latency_us + options_.graph_latency_us +
           options_.start_us + options_.crossing_us + options_.completion_us;
  }

  absl::Status Lists() const {
    const auto count = static_cast<int32_t>(graph_.nodes.size());
    double bytes = 0;
    for (const SimMemory& memory : graph_.memory) {
      bytes += static_cast<double>(memory.bytes) * options_.runs;
      for (const int32_t n : memory.users) {
        if (n < 0 || n >= count) return Wrong(absl::StrCat("node ", n, ", which uses memory, does not exist"));
      }
      if (memory.bytes < 0) return Wrong("memory of fewer than 0 bytes");
    }
    if (bytes > kMostBytes) return Wrong("all runs hold more than 4e18 bytes");
    for (const std::vector<int32_t>& state : graph_.states) {
      for (size_t i = 0; i < state.size(); ++i) {
        const int32_t n = state[i];
        if (n < 0 || n >= count) return Wrong(absl::StrCat("node ", n, ", which touches a State, does not exist"));
        if (i > 0 && state[i - 1] >= n) return Wrong("the nodes that touch a State are not in ascending order");
      }
    }
    return absl::OkStatus();
  }

  const SimGraph& graph_;
  const SimOptions& options_;
};

}  // namespace

absl::Status CheckSimulation(const SimGraph& graph, const SimOptions& options) {
  return SimulationCheck(graph, options).Run();
}

}  // namespace penstock::graph
