// The plan as a Graphviz digraph: a cluster per lane and one for the host, in them a cluster per batch, and an arrow
// for each edge of the plan. A construct is a cluster of the plans of its condition and bodies; arrows from and to it
// end at its border.
#include <string>
#include <string_view>
#include <vector>

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

// What names begin with in the plan of a part is its own.
std::string DotId(const std::string& prefix, NodeId index) { return prefix + "n" + std::to_string(index); }

std::string NodeText(const Plan& plan, NodeId index, const std::string& prefix) {
  const PlanNode& node = plan.nodes[index];
  return "    " + DotId(prefix, index) + " [label=" + Quote(node.name + "\n" + KindName(node.kind)) +
         (node.decl < 0 ? ", style=dashed" : "") + "];\n";
}

std::string Cluster(const Plan& plan, LaneId lane, const std::string& label, const std::string& prefix) {
  std::string nodes;
  NodeId open;  // a batch, whose nodes are adjacent
  const auto enter = [&](NodeId batch) {
    if (batch == open) return;
    if (open >= 0) nodes += "    }\n";
    if (batch >= 0)
      nodes += "    subgraph cluster_" + prefix + "batch_" + std::to_string(batch) + " {\n    label=\"batch\";\n";
    open = batch;
  };
  for (const NodeId n : plan.nodes.ids()) {
    if (plan.nodes[n].lane != lane || IsConstruct(plan.nodes[n].kind)) continue;
    enter(plan.nodes[n].batch);
    nodes += NodeText(plan, n, prefix);
  }
  enter(NodeId());
  if (nodes.empty()) return nodes;
  return "  subgraph cluster_" + prefix + (lane < 0 ? "host" : std::to_string(lane)) + " {\n    label=" + Quote(label) +
         ";\n" + nodes + "  }\n";
}

std::string Indented(const std::string& lines) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
    end = lines.find('\n', begin) + 1;
    text += "    " + lines.substr(begin, end - begin);
  }
  return text;
}

std::string Contents(const Plan& plan, const std::vector<PartPlan>& parts, const std::string& prefix);

std::string Construct(const Plan& plan, NodeId index, const std::vector<PartPlan>& parts, const std::string& prefix) {
  const std::string id = DotId(prefix, index);
  std::string kind, text;
  for (const PartPlan& part : parts) {
    if (part.construct != plan.nodes[index].decl) continue;
    const std::string inner = id + "_" + std::to_string(&part - parts.data());
    kind = "\n" + std::string(ControlName(part.kind));
    text += "    subgraph cluster_" + inner + " {\n      label=" + Quote(part.label) + ";\n" +
            Indented(Contents(*part.plan, part.parts, inner + "_")) + "    }\n";
  }
  return "  subgraph cluster_" + id + " {\n    label=" + Quote(plan.nodes[index].name + kind) + ";\n    " + id +
         " [shape=point, style=invis];\n" + text + "  }\n";
}

std::string Arrow(const Plan& plan, NodeId from, NodeId to, const std::string& prefix) {
  const auto at_border = [&](const char* end, NodeId n) {
    return IsConstruct(plan.nodes[n].kind) ? std::string(" [") + end + "=cluster_" + DotId(prefix, n) + "]" : "";
  };
  return "  " + DotId(prefix, from) + " -> " + DotId(prefix, to) + at_border("ltail", from) + at_border("lhead", to) +
         ";\n";
}

std::string Contents(const Plan& plan, const std::vector<PartPlan>& parts, const std::string& prefix) {
  std::string text = Cluster(plan, LaneId(), "host", prefix);
  for (const LaneId l : plan.lanes.ids()) {
    const Lane& lane = plan.lanes[l];
    text += Cluster(
        plan, l, "lane " + std::to_string(l) + ": " + LaneName(lane.kind) + " of device " + std::to_string(lane.device),
        prefix);
  }
  for (const NodeId n : plan.nodes.ids()) {
    if (IsConstruct(plan.nodes[n].kind)) text += Construct(plan, n, parts, prefix);
  }
  for (const NodeId n : plan.nodes.ids()) {
    for (const NodeId p : plan.nodes[n].preds) text += Arrow(plan, p, n, prefix);
  }
  return text;
}

}  // namespace

std::string PrintDot(const Plan& plan, const Model& model, const std::vector<PartPlan>& parts) {
  return "digraph " + Quote(model.name.view()) + " {\n  rankdir=LR;\n" + (parts.empty() ? "" : "  compound=true;\n") +
         "  node [shape=box];\n" + Contents(plan, parts, "") + "}\n";
}

}  // namespace penstock::graph
