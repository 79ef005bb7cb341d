// The plan as a Graphviz digraph: a cluster per lane and one for the host, in them a cluster per batch, and an arrow
// for each edge of the plan.
#include <string>
#include <string_view>

#include "graph/plan/plan.h"
#include "graph/plan/plan_names.h"

namespace penstock::graph {
namespace {

// In double quotes; names are the user's and may contain anything. A backslash would begin a Graphviz escape.
std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string NodeText(const Plan& plan, NodeId index) {
  const PlanNode& node = plan.nodes[index];
  return "    n" + std::to_string(index) + " [label=" + Quote(node.name + "\n" + KindName(node.kind)) +
         (node.decl < 0 ? ", style=dashed" : "") + "];\n";
}

std::string Cluster(const Plan& plan, LaneId lane, const std::string& label) {
  std::string nodes;
  NodeId open;  // a batch, whose nodes are adjacent
  const auto enter = [&](NodeId batch) {
    if (batch == open) return;
    if (open >= 0) nodes += "    }\n";
    if (batch >= 0) nodes += "    subgraph cluster_batch_" + std::to_string(batch) + " {\n    label=\"batch\";\n";
    open = batch;
  };
  for (const NodeId n : plan.nodes.ids()) {
    if (plan.nodes[n].lane != lane) continue;
    enter(plan.nodes[n].batch);
    nodes += NodeText(plan, n);
  }
  enter(NodeId());
  if (nodes.empty()) return nodes;
  return "  subgraph cluster_" + (lane < 0 ? "host" : std::to_string(lane)) + " {\n    label=" + Quote(label) + ";\n" +
         nodes + "  }\n";
}

}  // namespace

std::string PrintDot(const Plan& plan, const Model& model) {
  std::string text = "digraph " + Quote(model.name.view()) + " {\n  rankdir=LR;\n  node [shape=box];\n";
  text += Cluster(plan, LaneId(), "host");
  for (const LaneId l : plan.lanes.ids()) {
    const Lane& lane = plan.lanes[l];
    text +=
        Cluster(plan, l,
                "lane " + std::to_string(l) + ": " + LaneName(lane.kind) + " of device " + std::to_string(lane.device));
  }
  for (const NodeId n : plan.nodes.ids()) {
    for (const NodeId p : plan.nodes[n].preds) {
      text += "  n" + std::to_string(p) + " -> n" + std::to_string(n) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace penstock::graph
