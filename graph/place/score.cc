#include "graph/place/score.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/common/assumed_figures.h"
#include "graph/place/figures.h"
#include "graph/plan/graph_schedule.h"
#include "graph/simulate/plan_sim_graph.h"
#include "graph/simulate/simulate.h"
#include "penstock/status_macros.h"

namespace penstock::graph {
namespace {

class Scorer {
 public:
  Scorer(const Plan& plan, const PlaceTasks& tasks, const MachineFigures& figures)
      : plan_(plan), tasks_(tasks), figures_(figures) {
    score_.work_us.assign(figures.devices.size(), 0);
  }

  absl::StatusOr<PlaceScore> Score(const ScoreOptions& options) {
    const bool as_graph = options.as_graph && MayBeGraphs();
    SimGraph graph = as_graph ? MakeSimGraph(plan_, {}, Graphs()) : MakeSimGraph(plan_, {});
    for (size_t d = 0; d < graph.devices.size(); ++d) graph.devices[d].kernels = figures_.devices[d].kernels;
    for (const NodeId n : plan_.nodes.ids()) SetCost(plan_.nodes[n], graph.nodes[static_cast<size_t>(n)]);
    SimOptions how{.runs = 1, .slots = 1, .workers = options.workers};
    how.as_graphs = as_graph;
    how.node_us = figures_.submit_us;
    how.crossing_us = figures_.crossing_us;
    if (as_graph) how.crossing_submit_us = assumed::kCrossingSubmitUs;
    PENSTOCK_ASSIGN_OR_RETURN(const SimResult result, Simulate(graph, how));
    score_.makespan_us = result.makespan_us + figures_.crossing_us * OtherDevices();
    return std::move(score_);
  }

 private:
  // As the runtime's mode selection has it.
  bool MayBeGraphs() const {
    return !IsOnSeveralDevices(plan_) || std::none_of(plan_.nodes.begin(), plan_.nodes.end(), [](const PlanNode& node) {
      return node.kind == PlanKind::kConditional;
    });
  }

  GraphSchedule Graphs() const {
    Table<NodeId, bool> refused(plan_.nodes.size());
    for (const NodeId n : plan_.nodes.ids()) refused[n] = plan_.nodes[n].kind == PlanKind::kGate;
    return MakeGraphSchedule(plan_, refused);
  }

  int OtherDevices() const {
    std::vector<bool> is_used(figures_.devices.size());
    for (const Lane& lane : plan_.lanes) is_used[static_cast<size_t>(lane.device)] = true;
    const auto used = static_cast<int>(std::count(is_used.begin(), is_used.end(), true));
    return std::max(used - 1, 0);
  }

  void SetCost(const PlanNode& node, SimNode& to) {
    if (to.resource == SimResource::kNothing && to.us == 0) return;  // it has nothing to do
    if (IsCopy(node.kind)) return SetCopy(node, to);
    if (node.decl < 0) return;
    to.us = tasks_.Cost(node.decl, node.device);
    if (to.on_host || node.kind == PlanKind::kHostcall) return;
    const auto device = static_cast<size_t>(node.device);
    score_.work_us[device] += to.us;
    if (to.us < 2 * figures_.devices[device].stream_node_us) to.resource = SimResource::kNothing;
  }

  static bool IsCopy(PlanKind kind) { return kind <= PlanKind::kHostCopy; }

  void SetCopy(const PlanNode& node, SimNode& to) {
    to.bytes = BytesOfCopy(node);
    if (node.kind == PlanKind::kPeerCopy) {
      const PlaceLink link = PeerLink(figures_, plan_.instances[node.src].device, node.device);
      to.us = link.us, to.gbs = link.gbs;
      score_.between_bytes += to.bytes;
      return;
    }
    to.us = node.device >= 0 ? figures_.devices[static_cast<size_t>(node.device)].copy_us : 0;
    to.gbs = Bandwidth(node);
    if (node.kind == PlanKind::kUpload || node.kind == PlanKind::kDownload) score_.host_bytes += to.bytes;
    if (node.kind == PlanKind::kDeviceCopy && node.decl >= 0) {
      score_.work_us[static_cast<size_t>(node.device)] += to.Cost();
    }
  }

  int64_t BytesOfCopy(const PlanNode& node) const {
    if (node.part < 0 && node.copy >= 0) return tasks_.copied[node.copy];
    return MostBytes(plan_, node);
  }

  double Bandwidth(const PlanNode& node) const {
    if (node.device < 0) return assumed::kHostCopy;
    const auto to = static_cast<size_t>(node.device);
    switch (node.kind) {
      case PlanKind::kUpload: return figures_.devices[to].upload;
      case PlanKind::kDownload: return figures_.devices[to].download;
      default: return figures_.devices[to].memory * assumed::kDeviceCopyShare;
    }
  }

  const Plan& plan_;
  const PlaceTasks& tasks_;
  const MachineFigures& figures_;
  PlaceScore score_;
};

}  // namespace

absl::StatusOr<PlaceScore> ScoreOf(const Plan& plan, const PlaceTasks& tasks, const MachineFigures& figures,
                                   const ScoreOptions& options) {
  return Scorer(plan, tasks, figures).Score(options);
}

}  // namespace penstock::graph
