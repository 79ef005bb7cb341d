#include "src/cli/trace_text.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/analysis/critical_path.h"
#include "src/analysis/text.h"
#include "src/cli/plan_picture.h"
#include "src/cli/text.h"
#include "src/cli/trace_json.h"

namespace penstock::cli {
namespace {

using analysis::CriticalPath;
using analysis::Summary;

// "and 12 more" if a list of `all` is cut.
void WriteRest(size_t all, size_t top, const char* what, std::ostream& out) {
  if (all > top) out << "  and " << all - top << " more " << what << " (--top)\n";
}

void WriteTotals(const Profile& profile, const Summary& summary, std::ostream& out) {
  out << Wrapped(TimeText(profile.length_us) + " recorded, " + TimeText(summary.length_us()) +
                     " from the first launch to the last end: " + std::to_string(summary.launches) +
                     (summary.launches == 1 ? " launch, " : " launches, ") + CountText(summary.runs, "run") + " and " +
                     CountText(static_cast<int64_t>(profile.spans.size()), "span") + " kept.",
                 0)
      << '\n';
  if (profile.lost_spans > 0 || profile.lost_graphs > 0) {
    out << Wrapped(
               CountText(profile.lost_spans, "span") + " and " + CountText(profile.lost_graphs, "graph") +
                   " are lost: what follows is about the end of the program. RuntimeOptions::profile_spans keeps more.",
               0)
        << '\n';
  }
}

void WriteEngines(const Profile& profile, const Summary& summary, std::ostream& out) {
  TextTable table({"<engine", "<", "spans", "busy", "share"});
  for (const Summary::EngineUse& use : summary.engines) {
    if (use.spans == 0 && profile.devices.size() > 8) continue;
    table.Add({DeviceText(profile, use.device), use.device < 0 ? "code" : EngineName(use.kind),
               std::to_string(use.spans), TimeText(use.busy_us), PercentText(summary.Share(use.busy_us), 1)});
  }
  out << "\nHow busy each engine was from the first launch to the last end\n";
  table.Write(out);
}

void WriteTopNodes(const Profile& profile, const Summary& summary, size_t top, std::ostream& out) {
  if (summary.nodes.empty()) return;
  TextTable table({"<node", "<graph", "<kind", "runs", "total", "median", "share", "<line"});
  for (size_t i = 0; i < std::min(top, summary.nodes.size()); ++i) {
    const Summary::NodeUse& use = summary.nodes[i];
    const Profile::Graph& graph = profile.graphs[use.graph];
    const Profile::Node& node = graph.nodes[static_cast<size_t>(use.node)];
    table.Add({Shown(node.name, 20), Shown(graph.name, 14), Shown(node.kind, 12), std::to_string(use.runs),
               TimeText(use.total_us), TimeText(use.median_us), PercentText(summary.Share(use.total_us), 1),
               Shown(node.where, 16)});
  }
  out << "\nThe nodes that took most time; overlapping runs may add up to more than all of it\n";
  table.Write(out);
  WriteRest(summary.nodes.size(), top, "nodes", out);
}

// Of the nodes that say how many operations they do. A node's time in a span that is not its own says nothing.
void WriteOperations(const Profile& profile, const Summary& summary, size_t top, std::ostream& out) {
  TextTable table({"<node", "<graph", "operations", "median", "computed at", "FLOP/byte", "<line"});
  size_t found = 0;
  for (const Summary::NodeUse& use : summary.nodes) {
    const Profile::Graph& graph = profile.graphs[use.graph];
    const Profile::Node& node = graph.nodes[static_cast<size_t>(use.node)];
    if (node.flops <= 0 || use.batched || ++found > top) continue;
    const double bytes = static_cast<double>(node.read_bytes) + static_cast<double>(node.written_bytes);
    table.Add({Shown(node.name, 20), Shown(graph.name, 14), analysis::FlopsText(node.flops), TimeText(use.median_us),
               analysis::FlopRateText(GigaflopsPerSecond(node, use)),
               bytes > 0 ? analysis::NumberText(node.flops / bytes) : "-", Shown(node.where, 16)});
  }
  if (found == 0) return;
  out << "\nWhat nodes computed, as they declare (NodeRef::Flops)\n";
  table.Write(out);
  WriteRest(found, top, "nodes", out);
}

void WriteWaits(const Summary& summary, size_t top, std::ostream& out) {
  if (summary.waits.empty()) return;
  TextTable table({"<launch of", "<thread", "at", "waited"});
  for (size_t i = 0; i < std::min(top, summary.waits.size()); ++i) {
    const Span& wait = *summary.waits[i];
    table.Add({Shown(wait.name, 40), Shown(wait.track, 24), TimeText(wait.begin_us),
               TimeText(std::max(0.0, wait.end_us - wait.begin_us))});
  }
  out << "\nThe longest waits for a free slot; all " << summary.waits.size() << " together "
      << TimeText(summary.waits_us) << '\n';
  table.Write(out);
  WriteRest(summary.waits.size(), top, "waits", out);
}

std::string GapText(const CriticalPath::Step& step) {
  if (step.gap_us < 0.0005) return "";
  const std::string text = TimeText(step.gap_us);
  return step.submit_us > step.gap_us / 2 ? text + " submitting" : text;
}

// Of the steps the longest with their gaps, in the order of time.
std::vector<bool> StepsToShow(const CriticalPath& path, size_t top) {
  std::vector<size_t> order(path.steps.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto cost = [&](size_t i) { return path.steps[i].length_us() + path.steps[i].gap_us; };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return cost(a) != cost(b) ? cost(a) > cost(b) : a < b; });
  std::vector<bool> shown(path.steps.size());
  for (size_t i = 0; i < std::min(top, order.size()); ++i) shown[order[i]] = true;
  return shown;
}

void WriteCriticalPath(const Profile::Graph& graph, const analysis::GraphRun& run, size_t top, std::ostream& out) {
  const CriticalPath path = analysis::CriticalPathOf(graph, run);
  if (path.steps.empty()) return;
  const std::vector<bool> shown = StepsToShow(path, top);
  TextTable table({"gap before", "<step", "<kind", "took", "share", "<line"});
  for (size_t i = 0; i < path.steps.size();) {
    size_t left_out = 0;
    double us = 0, gaps = 0;
    for (; i < path.steps.size() && !shown[i]; ++i, ++left_out) {
      us += path.steps[i].length_us();
      gaps += path.steps[i].gap_us;
    }
    if (left_out > 0) {
      table.Add({TimeText(gaps), "(" + CountText(static_cast<int64_t>(left_out), "shorter step") + ")", "",
                 TimeText(us), PercentText(path.Share(us), 1), ""});
      continue;
    }
    const CriticalPath::Step& step = path.steps[i++];
    const Profile::Node& node = graph.nodes[static_cast<size_t>(step.node)];
    const bool by_lane = step.after == CriticalPath::After::kLane;
    table.Add({GapText(step), Shown(node.name, 24) + (by_lane ? " (its lane was busy)" : ""), Shown(node.kind, 12),
               TimeText(step.length_us()), PercentText(path.Share(step.length_us()), 1), Shown(node.where, 18)});
  }
  table.Add({TimeText(path.tail_us), "(the run's end)", "", "", "", ""});
  out << "  critical path of run " << run.number << ", " << TimeText(path.length_us()) << ": "
      << PercentText(path.Share(path.length_us() - path.gaps_us()), 1) << " in "
      << CountText(static_cast<int64_t>(path.steps.size()), "step") << ", "
      << PercentText(path.Share(path.gaps_us()), 1) << " in gaps\n";
  table.Write(out);
}

void WriteGraphs(const Profile& profile, const std::vector<analysis::GraphRun>& runs, const Summary& summary,
                 size_t top, std::ostream& out) {
  for (size_t i = 0; i < std::min(top, summary.graphs.size()); ++i) {
    const Summary::GraphUse& use = summary.graphs[i];
    const Profile::Graph& graph = profile.graphs[use.graph];
    out << "\ngraph " << graph.executable << " '" << Shown(graph.name) << "': " << CountText(use.runs, "run") << " of "
        << graph.launches;
    if (use.runs > 0) {
      out << ", " << TimeText(use.shortest_us) << " to " << TimeText(use.longest_us) << ", median "
          << TimeText(use.median_us);
    }
    out << '\n';
    if (use.runs > 0) WriteCriticalPath(graph, runs[use.median_run], top, out);
  }
  WriteRest(summary.graphs.size(), top, "graphs", out);
}

void WritePipelines(const Profile& profile, size_t top, std::ostream& out) {
  for (size_t p = 0; p < std::min(top, profile.pipelines.size()); ++p) {
    const PipelineStats& stats = profile.pipelines[p].stats;
    out << "\npipeline " << p + 1 << ": " << stats.accepted << " accepted, " << stats.delivered << " delivered, "
        << stats.failed << " failed, " << stats.dropped << " dropped, " << stats.refused << " refused, window "
        << stats.window << '\n';
    TextTable table({"<stage", "capacity", "done", "failed", "busy", "<"});
    for (size_t s = 0; s < stats.stages.size(); ++s) {
      const StageStats& stage = stats.stages[s];
      table.Add({Shown(stage.name), std::to_string(stage.capacity), std::to_string(stage.done),
                 std::to_string(stage.failed), PercentText(stage.busy, 1),
                 static_cast<int>(s) == stats.bottleneck ? "the bottleneck" : ""});
    }
    table.Write(out);
  }
  WriteRest(profile.pipelines.size(), top, "pipelines", out);
}

}  // namespace

void WriteTraceText(const Profile& profile, const std::vector<analysis::GraphRun>& runs, const Summary& summary,
                    size_t top, std::ostream& out) {
  WriteTotals(profile, summary, out);
  WriteEngines(profile, summary, out);
  WriteTopNodes(profile, summary, top, out);
  WriteOperations(profile, summary, top, out);
  WriteWaits(summary, top, out);
  WriteGraphs(profile, runs, summary, top, out);
  WritePipelines(profile, top, out);
}

}  // namespace penstock::cli
