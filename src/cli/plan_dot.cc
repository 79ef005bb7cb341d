#include <string>
#include <string_view>
#include <vector>

#include "graph/common/message.h"
#include "src/cli/plan_picture.h"

namespace penstock::cli {
namespace {

// In quotes; a backslash would begin a Graphviz escape.
std::string DotText(std::string_view text) {
  std::string out = "\"";
  for (const char c : graph::OneLine(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string DotId(const Profile::Graph& graph, int node) {
  return "g" + std::to_string(graph.executable) + "_n" + std::to_string(node);
}

std::string DotLane(const Profile& profile, const Profile::Graph& graph, int lane, const std::vector<int>& nodes) {
  if (nodes.empty()) return "";
  std::string dot = "    subgraph cluster_g" + std::to_string(graph.executable) + "_" +
                    (lane < 0 ? "host" : std::to_string(lane)) +
                    " {\n      label=" + DotText(LaneTitle(profile, graph, lane)) + ";\n";
  for (const int n : nodes) {
    const Profile::Node& node = graph.nodes[static_cast<size_t>(n)];
    dot += "      " + DotId(graph, n) + " [label=" + DotText(node.name + " (" + node.kind + ")") +
           (node.where.empty() ? ", style=dashed" : ", tooltip=" + DotText(node.where)) + "];\n";
  }
  return dot + "    }\n";
}

}  // namespace

std::string PlanDot(const Profile& profile, const GraphPlaces& graphs) {
  std::string dot = "digraph plan {\n  node [shape=box];\n";
  for (const size_t place : graphs) {
    const Profile::Graph& graph = profile.graphs[place];
    dot += "  subgraph cluster_g" + std::to_string(graph.executable) +
           " {\n    label=" + DotText("graph " + std::to_string(graph.executable) + " '" + graph.name + "'") + ";\n";
    const std::vector<std::vector<int>> lanes = NodesOfLanes(graph);
    for (size_t l = 0; l < lanes.size(); ++l) dot += DotLane(profile, graph, static_cast<int>(l) - 1, lanes[l]);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const int before : graph.nodes[n].after) {
        dot += "    " + DotId(graph, before) + " -> " + DotId(graph, static_cast<int>(n)) + ";\n";
      }
    }
    dot += "  }\n";
  }
  return dot + "}\n";
}

}  // namespace penstock::cli
