#include "src/analysis/critical_path.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "src/analysis/node_order.h"

namespace penstock::analysis {
namespace {

// When each node of a run was at work, from the first of its spans to the last.
class NodeTimes {
 public:
  NodeTimes(const Profile::Graph& graph, const GraphRun& run) : times_(graph.nodes.size()) {
    for (const Span* span : run.work) {
      Time& time = times_[static_cast<size_t>(span->node)];
      if (!time.known) time = {true, span->begin_us, span->begin_us};
      time.begin = std::min(time.begin, span->begin_us);
      time.end = std::max({time.end, span->begin_us, span->end_us});
    }
  }
  bool known(int node) const { return of(node).known; }
  double begin(int node) const { return of(node).begin; }
  double end(int node) const { return of(node).end; }
  // The one that ended last; -1: neither is a node.
  int Later(int a, int b) const {
    if (a < 0 || b < 0) return std::max(a, b);
    return end(a) < end(b) ? b : a;
  }

 private:
  struct Time {
    bool known = false;
    double begin = 0, end = 0;
  };
  const Time& of(int node) const { return times_[static_cast<size_t>(node)]; }

  std::vector<Time> times_;
};

// For each node, which of those that it follows ended last, through nodes without spans; -1: none.
std::vector<int> LatestBefore(const Profile::Graph& graph, const NodeTimes& times) {
  std::vector<int> latest(graph.nodes.size(), -1);
  for (const int node : NodeOrder(graph)) {
    int& of = latest[static_cast<size_t>(node)];
    for (const int before : graph.nodes[static_cast<size_t>(node)].after) {
      of = times.Later(of, times.known(before) ? before : latest[static_cast<size_t>(before)]);
    }
  }
  return latest;
}

// For each node, the one before it on its lane; -1: none.
std::vector<int> BeforeOnLane(const Profile::Graph& graph, const NodeTimes& times) {
  std::vector<int> before(graph.nodes.size(), -1);
  if (graph.report.mode != Mode::kStream) return before;
  const auto lane = [&](int node) { return graph.nodes[static_cast<size_t>(node)].lane; };
  std::vector<int> on_lanes;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    if (times.known(node) && lane(node) >= 0) on_lanes.push_back(node);
  }
  std::sort(on_lanes.begin(), on_lanes.end(), [&](int a, int b) {
    return std::make_tuple(lane(a), times.begin(a), times.end(a), a) <
           std::make_tuple(lane(b), times.begin(b), times.end(b), b);
  });
  for (size_t i = 1; i < on_lanes.size(); ++i) {
    if (lane(on_lanes[i]) == lane(on_lanes[i - 1])) before[static_cast<size_t>(on_lanes[i])] = on_lanes[i - 1];
  }
  return before;
}

// The path, last node first. `after` says how each was reached from the one before it in time.
std::vector<CriticalPath::Step> StepsBackwards(const Profile::Graph& graph, const NodeTimes& times) {
  using After = CriticalPath::After;
  const std::vector<int> latest = LatestBefore(graph, times), on_lane = BeforeOnLane(graph, times);
  int node = -1;
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    if (times.known(n)) node = times.Later(node, n);
  }
  std::vector<bool> seen(graph.nodes.size());
  std::vector<CriticalPath::Step> steps;
  while (node >= 0 && !seen[static_cast<size_t>(node)]) {
    seen[static_cast<size_t>(node)] = true;
    const int by_edge = latest[static_cast<size_t>(node)];
    const int before = times.Later(by_edge, on_lane[static_cast<size_t>(node)]);
    CriticalPath::Step& step = steps.emplace_back();
    step.node = node;
    step.after = before < 0 ? After::kLaunch : before == by_edge ? After::kNode : After::kLane;
    node = before;
  }
  return steps;
}

double Overlap(double begin, double end, const Span* with) {
  return with == nullptr ? 0 : std::max(0.0, std::min(end, with->end_us) - std::max(begin, with->begin_us));
}

}  // namespace

double CriticalPath::gaps_us() const {
  double us = tail_us;
  for (const Step& step : steps) us += step.gap_us;
  return us;
}

CriticalPath CriticalPathOf(const Profile::Graph& graph, const GraphRun& run) {
  const NodeTimes times(graph, run);
  CriticalPath path;
  path.begin_us = run.begin_us;
  path.steps = StepsBackwards(graph, times);
  std::reverse(path.steps.begin(), path.steps.end());
  double at = run.begin_us;
  for (CriticalPath::Step& step : path.steps) {
    step.begin_us = std::max(at, times.begin(step.node));
    step.end_us = std::max(step.begin_us, times.end(step.node));
    step.gap_us = step.begin_us - at;
    step.submit_us = Overlap(at, step.begin_us, run.submit);
    at = step.end_us;
  }
  path.end_us = std::max(at, run.end_us);
  path.tail_us = path.end_us - at;
  return path;
}

}  // namespace penstock::analysis
