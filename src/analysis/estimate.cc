#include "src/analysis/estimate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/analysis/roofline.h"
#include "src/analysis/rules/words.h"
#include "src/analysis/sim_graph.h"
#include "src/analysis/what_if.h"

namespace penstock::analysis {
namespace {

// Enough for a steady state; fewer of large graphs.
constexpr int64_t kMostSimulatedRuns = 64, kLeastSimulatedRuns = 4;

bool IsStage(const Profile::Node& node) { return node.kind == "stage in" || node.kind == "stage out"; }
bool IsLoopOrBranch(const Profile::Node& node) { return node.kind == "conditional" || node.kind == "control"; }
// On a device, but without work of its own there: it waits for the host.
bool OnlyWaits(const Profile::Node& node) { return node.kind == "hostcall" || node.kind == "gate"; }

bool MayCompute(const Profile::Node& node) {
  return node.kind == "parallel for" || node.kind == "kernel" || node.kind == "launch";
}

// What a run needs of one device.
struct DeviceNeeds {
  double upload_us = 0, download_us = 0, memory_us = 0, arithmetic_us = 0;
  int64_t nodes = 0, kernels = 0;
};

class Estimator {
 public:
  Estimator(const Profile& profile, size_t graph, const Machine& machine, int64_t most_simulated)
      : profile_(profile),
        graph_(profile.graphs[graph]),
        machine_(machine),
        runs_(std::min(most_simulated / SimulatedNodes(), kMostSimulatedRuns)),
        needs_(profile.devices.size()) {
    made_.graph = graph;
    host_.memory = machine.host_copy;
    host_.fp32 = machine.host_fp32;
  }

  absl::StatusOr<Estimate> Make() {
    for (const Profile::Node& node : graph_.nodes) node.device < 0 ? AddHostNode(node) : AddDeviceNode(node);
    AddFloors();
    AddMemory();
    PENSTOCK_RETURN_IF_ERROR(SimulateRuns());
    CompareWithHost();
    AddNotes();
    return std::move(made_);
  }

 private:
  const Machine::Device& MachineOf(size_t device) const { return machine_.devices[device]; }

  void AddHostNode(const Profile::Node& node) {
    if (node.kind == "host") ++host_nodes_;
    const double bytes = static_cast<double>(node.read_bytes) + static_cast<double>(node.written_bytes);
    if (IsStage(node)) made_.unpinned_us += bytes / machine_.host_copy / 1e3;
  }

  void AddDeviceNode(const Profile::Node& node) {
    const auto at = static_cast<size_t>(node.device);
    DeviceNeeds& needs = needs_[at];
    ++needs.nodes;
    if (OnlyWaits(node)) return;
    const Roof roof = RoofOf(MachineOf(at), node);
    if (node.kind == "upload" || node.kind == "download") {
      const bool up = node.kind == "upload";
      (up ? made_.up_bytes : made_.down_bytes) += roof.bytes;
      (up ? needs.upload_us : needs.download_us) += MachineOf(at).copy_us + roof.us();
      return;
    }
    if (IsLoopOrBranch(node)) ++constructs_;
    ++needs.kernels;
    if (MayCompute(node) && node.flops == 0) ++uncounted_;
    made_.within_bytes += roof.bytes;
    made_.flops += roof.flops;
    needs.memory_us += roof.bytes_us();
    needs.arithmetic_us += roof.flops_us();
    made_.host_us += RoofOf(host_, node).us();
  }

  // To start the kernels of one device, in the mode that costs less.
  double StartMicros(size_t device) const {
    const Machine::Device& of = MachineOf(device);
    return static_cast<double>(needs_[device].kernels) * std::min(of.stream_node_us, of.graph_node_us);
  }

  void AddFloors() {
    for (size_t d = 0; d < needs_.size(); ++d) {
      const DeviceNeeds& needs = needs_[d];
      if (needs.nodes == 0) continue;
      const std::string name = graph::OneLine(profile_.devices[d].name);
      for (const auto& [what, us] : {std::pair("uploads", needs.upload_us), std::pair("downloads", needs.download_us),
                                     std::pair("memory", needs.memory_us), std::pair("arithmetic", needs.arithmetic_us),
                                     std::pair("launches", std::max(MachineOf(d).launch_us, StartMicros(d)))}) {
        if (us > 0) made_.floors.push_back({absl::StrCat(name, " ", what), us});
      }
    }
    const auto less = [](const Estimate::Floor& a, const Estimate::Floor& b) { return a.us < b.us; };
    made_.bound =
        static_cast<size_t>(std::max_element(made_.floors.begin(), made_.floors.end(), less) - made_.floors.begin());
  }

  double FloorMicros() const { return made_.floors.empty() ? 0 : made_.floors[made_.bound].us; }

  void AddMemory() {
    made_.slot_device_bytes = graph_.slot_device_bytes;
    made_.slot_pinned_bytes = graph_.slot_pinned_bytes;
    for (size_t d = 0; d < needs_.size(); ++d) {
      if (needs_[d].nodes > 0) ++made_.devices;
      const int64_t bytes = profile_.devices[d].memory_bytes;
      if (needs_[d].nodes > 0 && bytes < INT64_MAX - made_.device_memory_bytes) made_.device_memory_bytes += bytes;
    }
  }

  // With bound memory that is pinned: host steps that copy have nothing to do.
  absl::StatusOr<SimulatedGraph> GraphInMode(Mode mode) const {
    Profile declared;
    declared.devices = profile_.devices;
    declared.graphs.push_back(graph_);
    declared.graphs[0].report.mode = mode;
    PENSTOCK_ASSIGN_OR_RETURN(SimulatedGraph simulated, SimulatedGraphOf(declared, 0, &machine_));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      graph::SimNode& node = simulated.graph.nodes[n];
      if (IsStage(graph_.nodes[n])) node.resource = graph::SimResource::kNothing, node.us = 0, node.gbs = 0;
    }
    simulated.options.runs = static_cast<int32_t>(runs_);
    return simulated;
  }

  // In one run of the graph in each mode with each number of slots.
  int64_t SimulatedNodes() const {
    return int64_t{2} * Estimate::kMostSlots * static_cast<int64_t>(std::max<size_t>(1, graph_.nodes.size()));
  }

  // In place of simulations.
  absl::Status TakeFloors() {
    made_.latency_us = FloorMicros();
    for (int s = 1; s <= Estimate::kMostSlots; ++s) {
      made_.runs[static_cast<size_t>(s) - 1] = {.slots = s, .stream_us = FloorMicros(), .graph_us = FloorMicros()};
    }
    made_.notes.emplace_back("What runs should take is their floor alone: simulating so many nodes would take long.");
    return absl::OkStatus();
  }

  absl::Status SimulateRuns() {
    if (runs_ < kLeastSimulatedRuns) return TakeFloors();
    for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
      PENSTOCK_ASSIGN_OR_RETURN(const SimulatedGraph simulated, GraphInMode(mode));
      for (int s = 1; s <= Estimate::kMostSlots; ++s) {
        PENSTOCK_ASSIGN_OR_RETURN(const SimulatedGraph changed, WithChanges(simulated, graph_, {.slots = s}));
        PENSTOCK_ASSIGN_OR_RETURN(const graph::SimResult result, graph::Simulate(changed.graph, changed.options));
        Estimate::RunTime& run = made_.runs[static_cast<size_t>(s) - 1];
        run.slots = s;
        // The mean over some runs is off by up to a percent, since they begin and end in the middle of others.
        (mode == Mode::kStream ? run.stream_us : run.graph_us) = std::max(result.run_us, FloorMicros());
        if (s > 1) continue;
        const double latency = LatencyMicros(result);
        made_.latency_us = mode == Mode::kStream ? latency : std::min(latency, made_.latency_us);
      }
    }
    return absl::OkStatus();
  }

  void CompareWithHost() {
    for (size_t d = 0; d < needs_.size(); ++d) {
      if (needs_[d].nodes == 0) continue;
      if (!profile_.devices[d].is_cuda || constructs_ > 0) made_.host_us = 0;
      made_.overhead_us += needs_[d].upload_us + needs_[d].download_us + MachineOf(d).launch_us + StartMicros(d);
    }
    if (made_.host_us <= 0) made_.host_us = made_.overhead_us = 0;
  }

  void AddNotes() {
    if (host_nodes_ > 0) {
      made_.notes.push_back(absl::StrCat(
          "Host nodes, of which only the hand-over counts, since what their callables take is not known before a run: ",
          host_nodes_, "."));
    }
    if (constructs_ > 0) {
      made_.notes.push_back(absl::StrCat(
          "Constructs, each of which counts as one pass over what it declares, since how often they iterate is not "
          "known before a run: ",
          constructs_, "."));
    }
    if (uncounted_ > 0) {
      made_.notes.push_back(absl::StrCat(
          "Nodes on devices that do not say how much they compute (NodeRef::Flops), of which only bytes count: ",
          uncounted_, "."));
    }
  }

  const Profile& profile_;
  const Profile::Graph& graph_;
  const Machine& machine_;
  const int64_t runs_;  // to simulate
  Machine::Device host_;  // all cores, as if they were a device
  Estimate made_;
  std::vector<DeviceNeeds> needs_;  // of each device
  int64_t host_nodes_ = 0, constructs_ = 0;
  int64_t uncounted_ = 0;  // nodes that may compute and do not say how much
};

}  // namespace

absl::StatusOr<Estimate> EstimateOf(const Profile& profile, size_t graph, const Machine& machine,
                                    int64_t most_simulated) {
  return Estimator(profile, graph, machine, most_simulated).Make();
}

}  // namespace penstock::analysis
