#include "src/analysis/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/analysis/median.h"

namespace penstock::analysis {
namespace {

using Stretch = std::pair<double, double>;  // begin and end

// What at least one covers, within `begin` and `end`. It sorts them.
double Covered(std::vector<Stretch>& stretches, double begin, double end) {
  std::sort(stretches.begin(), stretches.end());
  double covered = 0, at = begin;
  for (const auto& [from, to] : stretches) {
    const double until = std::min(to, end);
    covered += std::max(0.0, until - std::max(at, from));
    at = std::max(at, until);
  }
  return covered;
}

void SetTimes(const Profile& profile, const std::vector<GraphRun>& runs, Summary& summary) {
  summary.end_us = profile.length_us;
  if (runs.empty()) return;
  summary.begin_us = runs[0].begin_us;
  summary.end_us = runs[0].end_us;
  for (const GraphRun& run : runs) {
    summary.begin_us = std::min(summary.begin_us, run.begin_us);
    summary.end_us = std::max(summary.end_us, run.end_us);
  }
}

constexpr std::array kEngines = {SpanKind::kKernel, SpanKind::kUpload, SpanKind::kDownload};

// The place in Summary::engines; -1: the span is of none.
int EngineOf(const Span& span, size_t devices) {
  if (span.kind == SpanKind::kHost) return static_cast<int>(devices * kEngines.size());
  const auto at = std::find(kEngines.begin(), kEngines.end(), span.kind) - kEngines.begin();
  if (at == static_cast<int>(kEngines.size()) || span.device < 0 || static_cast<size_t>(span.device) >= devices)
    return -1;
  return span.device * static_cast<int>(kEngines.size()) + static_cast<int>(at);
}

void AddEngines(const Profile& profile, Summary& summary) {
  for (int device = 0; device < static_cast<int>(profile.devices.size()); ++device) {
    for (const SpanKind kind : kEngines) summary.engines.push_back({device, kind});
  }
  summary.engines.push_back({-1, SpanKind::kHost});
  std::vector<std::vector<Stretch>> stretches(summary.engines.size());
  for (const Span& span : profile.spans) {
    const int engine = EngineOf(span, profile.devices.size());
    if (engine >= 0) stretches[static_cast<size_t>(engine)].emplace_back(span.begin_us, span.end_us);
  }
  for (size_t e = 0; e < stretches.size(); ++e) {
    summary.engines[e].spans = static_cast<int64_t>(stretches[e].size());
    summary.engines[e].busy_us = Covered(stretches[e], summary.begin_us, summary.end_us);
  }
}

void AddGraphs(const Profile& profile, const std::vector<GraphRun>& runs, Summary& summary) {
  std::vector<std::vector<std::pair<double, size_t>>> lengths(profile.graphs.size());  // with the run's place
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].whole != nullptr) lengths[runs[r].graph].emplace_back(runs[r].length_us(), r);
  }
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    summary.launches += profile.graphs[g].launches;
    std::vector<std::pair<double, size_t>>& of = lengths[g];
    if (of.empty() && profile.graphs[g].launches == 0) continue;
    Summary::GraphUse use{g};
    std::sort(of.begin(), of.end());
    use.runs = static_cast<int64_t>(of.size());
    for (const auto& [length, run] : of) use.total_us += length;
    if (!of.empty()) {
      use.shortest_us = of.front().first;
      use.longest_us = of.back().first;
      std::tie(use.median_us, use.median_run) = of[(of.size() - 1) / 2];
    }
    summary.graphs.push_back(use);
  }
  std::sort(summary.graphs.begin(), summary.graphs.end(), [](const Summary::GraphUse& a, const Summary::GraphUse& b) {
    return std::make_tuple(-a.total_us, a.graph) < std::make_tuple(-b.total_us, b.graph);
  });
}

// The times of one node in the runs, and where it stands first.
struct NodeTimesInRuns {
  size_t graph;
  int node;
  std::vector<double> in_runs;
  bool batched = false;
};

// A run's spans, with those of each node together.
std::vector<const Span*> ByNode(const GraphRun& run) {
  std::vector<const Span*> spans = run.work;
  std::sort(spans.begin(), spans.end(),
            [](const Span* a, const Span* b) { return std::tie(a->node, a) < std::tie(b->node, b); });
  return spans;
}

void AddNodes(const Profile& profile, const std::vector<GraphRun>& runs, Summary& summary) {
  using Declared = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, double>;
  std::map<Declared, NodeTimesInRuns> nodes;
  for (const GraphRun& run : runs) {
    const Profile::Graph& graph = profile.graphs[run.graph];
    const std::vector<const Span*> spans = ByNode(run);
    for (size_t begin = 0, end = 0; begin < spans.size(); begin = end) {
      const int place = spans[begin]->node;
      const Profile::Node& node = graph.nodes[static_cast<size_t>(place)];
      const Declared declared(graph.name, node.name, node.kind, node.where, node.flops);
      NodeTimesInRuns& times = nodes.try_emplace(declared, NodeTimesInRuns{run.graph, place, {}}).first->second;
      std::vector<Stretch> stretches;
      for (; end < spans.size() && spans[end]->node == place; ++end) {
        stretches.emplace_back(spans[end]->begin_us, spans[end]->end_us);
        times.batched = times.batched || spans[end]->name != node.name;
      }
      times.in_runs.push_back(Covered(stretches, summary.begin_us, summary.end_us));
    }
  }
  for (auto& [declared, times] : nodes) {
    Summary::NodeUse use{times.graph, times.node, static_cast<int64_t>(times.in_runs.size())};
    for (const double time : times.in_runs) use.total_us += time;
    use.median_us = Median(std::move(times.in_runs));
    use.batched = times.batched;
    summary.nodes.push_back(use);
  }
  std::sort(summary.nodes.begin(), summary.nodes.end(), [](const Summary::NodeUse& a, const Summary::NodeUse& b) {
    return std::make_tuple(-a.total_us, a.graph, a.node) < std::make_tuple(-b.total_us, b.graph, b.node);
  });
}

void AddWaits(const Profile& profile, Summary& summary) {
  const auto length = [](const Span* span) { return std::max(0.0, span->end_us - span->begin_us); };
  for (const Span& span : profile.spans) {
    if (span.kind != SpanKind::kWait || span.device >= 0) continue;
    summary.waits.push_back(&span);
    summary.waits_us += length(&span);
  }
  std::sort(summary.waits.begin(), summary.waits.end(), [&](const Span* a, const Span* b) {
    return std::make_tuple(-length(a), a) < std::make_tuple(-length(b), b);
  });
}

}  // namespace

Summary SummaryOf(const Profile& profile, const std::vector<GraphRun>& runs) {
  Summary summary;
  summary.runs = static_cast<int64_t>(runs.size());
  SetTimes(profile, runs, summary);
  AddEngines(profile, summary);
  AddGraphs(profile, runs, summary);
  AddNodes(profile, runs, summary);
  AddWaits(profile, summary);
  return summary;
}

}  // namespace penstock::analysis
