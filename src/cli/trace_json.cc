#include "src/cli/trace_json.h"

#include <algorithm>

#include "src/analysis/critical_path.h"
#include "src/observe/chrome_json.h"

namespace penstock::cli {
namespace {

using nlohmann::ordered_json;

// What `f` makes of the first `top`.
template <class T, class F>
ordered_json FirstOf(const std::vector<T>& all, size_t top, F f) {
  ordered_json array = ordered_json::array();
  for (size_t i = 0; i < std::min(top, all.size()); ++i) array.push_back(f(all[i]));
  return array;
}

const char* AfterName(analysis::CriticalPath::After after) {
  switch (after) {
    case analysis::CriticalPath::After::kLaunch: return "launch";
    case analysis::CriticalPath::After::kNode: return "node";
    case analysis::CriticalPath::After::kLane: break;
  }
  return "lane";
}

ordered_json PathJson(const Profile::Graph& graph, const analysis::GraphRun& run) {
  const analysis::CriticalPath path = analysis::CriticalPathOf(graph, run);
  ordered_json steps = FirstOf(path.steps, path.steps.size(), [&](const analysis::CriticalPath::Step& step) {
    const Profile::Node& node = graph.nodes[static_cast<size_t>(step.node)];
    return ordered_json{{"node", step.node},      {"name", node.name},
                        {"where", node.where},    {"after", AfterName(step.after)},
                        {"gap_us", step.gap_us},  {"gap_submit_us", step.submit_us},
                        {"us", step.length_us()}, {"share", path.Share(step.length_us())}};
  });
  return {{"run", run.number},
          {"length_us", path.length_us()},
          {"gaps_us", path.gaps_us()},
          {"tail_us", path.tail_us},
          {"steps", std::move(steps)}};
}

}  // namespace

double GigaflopsPerSecond(const Profile::Node& node, const analysis::Summary::NodeUse& use) {
  return use.batched || use.median_us <= 0 ? 0 : node.flops / use.median_us / 1e3;
}

const char* EngineName(SpanKind kind) { return observe::KindName(kind); }

ordered_json TraceJson(const Profile& profile, const std::vector<analysis::GraphRun>& runs,
                       const analysis::Summary& summary, size_t top) {
  using analysis::Summary;
  ordered_json json{{"length_us", profile.length_us},
                    {"first_launch_us", summary.begin_us},
                    {"last_end_us", summary.end_us},
                    {"launches", summary.launches},
                    {"runs", summary.runs},
                    {"spans", profile.spans.size()},
                    {"lost_spans", profile.lost_spans},
                    {"lost_graphs", profile.lost_graphs}};
  json["engines"] = FirstOf(summary.engines, summary.engines.size(), [&](const Summary::EngineUse& use) {
    return ordered_json{{"device", use.device < 0 ? "host" : profile.devices[static_cast<size_t>(use.device)].name},
                        {"engine", EngineName(use.kind)},
                        {"spans", use.spans},
                        {"busy_us", use.busy_us},
                        {"share", summary.Share(use.busy_us)}};
  });
  json["nodes"] = FirstOf(summary.nodes, top, [&](const Summary::NodeUse& use) {
    const Profile::Graph& graph = profile.graphs[use.graph];
    const Profile::Node& node = graph.nodes[static_cast<size_t>(use.node)];
    ordered_json one{{"graph", graph.executable},  {"graph_name", graph.name},
                     {"node", use.node},           {"name", node.name},
                     {"kind", node.kind},          {"where", node.where},
                     {"runs", use.runs},           {"total_us", use.total_us},
                     {"median_us", use.median_us}, {"share", summary.Share(use.total_us)}};
    if (node.flops > 0) one["flops"] = node.flops;
    if (const double rate = GigaflopsPerSecond(node, use); rate > 0) one["gflops_per_second"] = rate;
    return one;
  });
  json["waits_us"] = summary.waits_us;
  json["waits"] = FirstOf(summary.waits, top, [](const Span* wait) {
    return ordered_json{{"graph", wait->executable},
                        {"name", wait->name},
                        {"track", wait->track},
                        {"begin_us", wait->begin_us},
                        {"us", std::max(0.0, wait->end_us - wait->begin_us)}};
  });
  json["graphs"] = FirstOf(summary.graphs, top, [&](const Summary::GraphUse& use) {
    const Profile::Graph& graph = profile.graphs[use.graph];
    ordered_json one{{"graph", graph.executable},  {"name", graph.name},          {"launches", graph.launches},
                     {"runs", use.runs},           {"total_us", use.total_us},    {"shortest_us", use.shortest_us},
                     {"median_us", use.median_us}, {"longest_us", use.longest_us}};
    if (use.runs > 0) one["median_run"] = PathJson(graph, runs[use.median_run]);
    return one;
  });
  json["pipelines"] = FirstOf(profile.pipelines, top, [](const Profile::Pipeline& pipeline) {
    const PipelineStats& stats = pipeline.stats;
    ordered_json one{{"accepted", stats.accepted}, {"delivered", stats.delivered}, {"failed", stats.failed},
                     {"dropped", stats.dropped},   {"refused", stats.refused},     {"window", stats.window}};
    one["bottleneck"] = stats.bottleneck;
    one["stages"] = FirstOf(stats.stages, stats.stages.size(), [](const StageStats& stage) {
      return ordered_json{{"name", stage.name},
                          {"capacity", stage.capacity},
                          {"done", stage.done},
                          {"failed", stage.failed},
                          {"busy", stage.busy}};
    });
    return one;
  });
  return json;
}

}  // namespace penstock::cli
