#include "src/analysis/what_if.h"

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"

namespace penstock::analysis {
namespace {

// What a thread spends on submitting a node to a stream, and a graph (src/runtime/executable/tuning.h).
constexpr double kStreamNodeUs = 3, kGraphUs = 4;

void SetSlots(int32_t slots, graph::SimOptions& options) {
  if (options.in_flight == options.slots) options.in_flight = slots;
  options.slots = slots;
}

void SetMode(bool as_graphs, graph::SimOptions& options) {
  if (as_graphs == options.as_graphs) return;
  options.as_graphs = as_graphs;
  options.launch_us = 0;
  options.node_us = as_graphs ? 0 : kStreamNodeUs;
  options.graph_us = as_graphs ? kGraphUs : 0;
}

void SetBandwidth(graph::SimResource direction, double gbs, const Profile::Graph& of, graph::SimGraph& graph) {
  if (gbs == 0) return;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    graph::SimNode& node = graph.nodes[n];
    if (node.resource != direction) continue;
    node.us = 0;
    node.bytes = of.nodes[n].read_bytes;
    node.gbs = gbs;
  }
}

absl::Status Scale(const std::string& name, double factor, const Profile::Graph& of, graph::SimGraph& graph) {
  bool found = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (of.nodes[n].name != name) continue;
    found = true;
    graph.nodes[n].us *= factor;
    if (graph.nodes[n].gbs > 0) graph.nodes[n].gbs /= factor;
  }
  if (found) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("graph '", graph::OneLine(of.name), "' has no node '", graph::OneLine(name),
                                          "'; the nodes' names are those in the profile"));
}

}  // namespace

absl::StatusOr<SimulatedGraph> WithChanges(SimulatedGraph simulated, const Profile::Graph& of, const Changes& changes) {
  if (changes.slots) SetSlots(*changes.slots, simulated.options);
  if (changes.as_graphs) SetMode(*changes.as_graphs, simulated.options);
  SetBandwidth(graph::SimResource::kUpload, changes.upload_gbs, of, simulated.graph);
  SetBandwidth(graph::SimResource::kDownload, changes.download_gbs, of, simulated.graph);
  for (const auto& [name, factor] : changes.scale) {
    if (absl::Status status = Scale(name, factor, of, simulated.graph); !status.ok()) return status;
  }
  return simulated;
}

}  // namespace penstock::analysis
