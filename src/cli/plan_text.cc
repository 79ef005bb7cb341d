#include <string>

#include "src/cli/plan_picture.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

// "0, 3, 7 and 12 more".
std::string AfterText(const std::vector<int>& after) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < after.size(); ++i) {
    if (i == kMost && after.size() > kMost + 1) return text + " +" + std::to_string(after.size() - i);
    text += (i == 0 ? "" : ",") + std::to_string(after[i]);
  }
  return text;
}

const char* ModeText(Mode mode) {
  switch (mode) {
    case Mode::kStream: return "submitted on streams";
    case Mode::kGraph: return "submitted as graphs";
    case Mode::kAuto: break;
  }
  return "submitted either way in turn";
}

std::string LaneText(const Profile& profile, const Profile::Graph& graph, int lane) {
  if (lane < 0) return "host";
  const Profile::Lane& of = graph.lanes[static_cast<size_t>(lane)];
  return std::to_string(lane) + " " + DeviceText(profile, of.device);
}

void WriteNodes(const Profile& profile, const Profile::Graph& graph, std::ostream& out) {
  TextTable table({"node", "<name", "<kind", "<lane", "<after", "reads", "writes", "<line"});
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Profile::Node& node = graph.nodes[n];
    table.Add({std::to_string(n), Shown(node.name, 20), Shown(node.kind, 12),
               Shown(LaneText(profile, graph, node.lane), 9), AfterText(node.after), SizeText(node.read_bytes),
               SizeText(node.written_bytes), Shown(node.where, 18)});
  }
  if (!table.empty()) table.Write(out);
}

}  // namespace

std::string DeviceText(const Profile& profile, int device) {
  return device < 0 ? "host" : Shown(profile.devices[static_cast<size_t>(device)].name, 20);
}

std::string LaneTitle(const Profile& profile, const Profile::Graph& graph, int lane) {
  if (lane < 0) return "host";
  const Profile::Lane& of = graph.lanes[static_cast<size_t>(lane)];
  return DeviceText(profile, of.device) + " lane " + std::to_string(lane) + " " + Shown(of.kind, 12);
}

std::vector<std::vector<int>> NodesOfLanes(const Profile::Graph& graph) {
  std::vector<std::vector<int>> nodes(graph.lanes.size() + 1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    nodes[static_cast<size_t>(graph.nodes[n].lane + int64_t{1})].push_back(static_cast<int>(n));
  }
  return nodes;
}

std::string CandidateText(const Profile& profile, const PlacementReport::Candidate& candidate) {
  std::string text = "  placement " + Shown(candidate.name) + ": " + Shown(candidate.why, 1000);
  if (candidate.work_us.empty()) return text;
  text += "; " + TimeText(candidate.makespan_us) + " a run, gain " + PercentText(candidate.gain) + "; work";
  for (size_t d = 0; d < candidate.work_us.size() && d < profile.devices.size(); ++d) {
    if (candidate.work_us[d] <= 0) continue;
    text += " " + Shown(profile.devices[d].name) + " " + TimeText(candidate.work_us[d]) + ",";
  }
  return text + " copies " + SizeText(candidate.between_bytes) + " between devices, " + SizeText(candidate.host_bytes) +
         " with the host";
}

std::string GraphHeading(const Profile::Graph& graph) {
  return "graph " + std::to_string(graph.executable) + " '" + Shown(graph.name) +
         "': " + CountText(static_cast<int64_t>(graph.nodes.size()), "node") + ", " +
         CountText(static_cast<int64_t>(graph.lanes.size()), "lane") + ", " + CountText(graph.slots, "slot") + " of " +
         SizeText(graph.slot_device_bytes) + " device and " + SizeText(graph.slot_pinned_bytes) +
         " pinned memory; launched " + CountText(graph.launches, "time") + ", " + ModeText(graph.report.mode);
}

void WritePlanText(const Profile& profile, const GraphPlaces& graphs, std::ostream& out) {
  for (const size_t place : graphs) {
    const Profile::Graph& graph = profile.graphs[place];
    if (place != graphs[0]) out << '\n';
    out << Wrapped(GraphHeading(graph), 4) << '\n';
    WriteNodes(profile, graph, out);
    for (const PlacementReport::Candidate& candidate : graph.placement) {
      out << Wrapped(CandidateText(profile, candidate), 8) << '\n';
    }
    for (const std::string& note : graph.report.notes) out << Wrapped("  note: " + Shown(note, 1000), 8) << '\n';
  }
}

}  // namespace penstock::cli
