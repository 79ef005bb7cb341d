#include "src/analysis/facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "src/analysis/median.h"

namespace penstock::analysis {
namespace {

constexpr double kWorthATime = 0.05;  // of the wall time
constexpr double kFarMicros = 1e15;  // 30 years

bool IsPossible(const Span& span) {
  return std::abs(span.begin_us) < kFarMicros && std::abs(span.end_us) < kFarMicros && span.begin_us <= span.end_us;
}

const char* EngineName(SpanKind kind) {
  switch (kind) {
    case SpanKind::kUpload: return "uploads";
    case SpanKind::kDownload: return "downloads";
    default: return "kernels";
  }
}

// The graphs' runs in order of their launch, for each graph.
struct LaunchedRun {
  double begin, end;
  int slot;
};
bool LaunchedBefore(const LaunchedRun& a, const LaunchedRun& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

// The steady state begins after the first run of each slot, but after a quarter of the runs at the latest.
size_t FirstWarmRun(const std::vector<LaunchedRun>& runs) {
  std::set<int> slots;
  for (const LaunchedRun& run : runs) slots.insert(run.slot);
  return std::max<size_t>(1, std::min(slots.size(), runs.size() / 4));
}

int MostAtOnce(const std::vector<LaunchedRun>& runs) {
  std::vector<std::pair<double, int>> changes;
  for (const LaunchedRun& run : runs) {
    changes.emplace_back(run.begin, 1);
    changes.emplace_back(run.end, -1);
  }
  std::sort(changes.begin(), changes.end());  // at one moment an end comes before a begin
  int now = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return most;
}

}  // namespace

Facts::Facts(const Profile& profile, const Machine* machine) : profile_(profile), machine_(machine) {
  MapSpans();
  FindWindows();
  FindEngines();
  idle_ = FindIdleParts(profile_, working_, window_);
  LeaveOutRecording();
  CountNodes();
  CountRuns();
}

void Facts::MapSpans() {
  std::unordered_map<int64_t, int> places;
  for (size_t g = 0; g < profile_.graphs.size(); ++g) places[profile_.graphs[g].executable] = static_cast<int>(g);
  for (size_t s = 0; s < profile_.spans.size(); ++s) {
    const auto place = places.find(profile_.spans[s].executable);
    graph_of_.push_back(place == places.end() ? -1 : place->second);
    if (IsPossible(profile_.spans[s])) valid_.push_back(static_cast<int>(s));
  }
}

void Facts::FindWindows() {
  graphs_.resize(profile_.graphs.size());
  std::vector<std::vector<LaunchedRun>> runs(graphs_.size());
  for (const int s : valid_) {
    const Span& span = profile_.spans[static_cast<size_t>(s)];
    if (span.kind == SpanKind::kRun && GraphOf(s) >= 0) {
      runs[static_cast<size_t>(GraphOf(s))].push_back({span.begin_us, span.end_us, span.slot});
    }
  }
  std::vector<Interval> windows;
  for (size_t g = 0; g < graphs_.size(); ++g) {
    if (runs[g].size() < 2) continue;
    std::sort(runs[g].begin(), runs[g].end(), LaunchedBefore);
    runs[g].erase(runs[g].begin(), runs[g].begin() + static_cast<std::ptrdiff_t>(FirstWarmRun(runs[g])));
    GraphFacts& graph = graphs_[g];
    graph.steady = true;
    graph.runs = static_cast<int64_t>(runs[g].size());
    graph.window = {runs[g][0].begin, runs[g][0].end};
    double total = 0;
    for (const LaunchedRun& run : runs[g]) {
      graph.window.end = std::max(graph.window.end, run.end);
      total += run.end - run.begin;
    }
    graph.run_us = total / static_cast<double>(graph.runs);
    graph.most_in_flight = MostAtOnce(runs[g]);
    windows.push_back(graph.window);
  }
  window_ = TimeSet(std::move(windows));
  wall_us_ = window_.length();
}

void Facts::FindEngines() {
  for (const int s : valid_) {
    const Interval at{profile_.spans[static_cast<size_t>(s)].begin_us, profile_.spans[static_cast<size_t>(s)].end_us};
    const auto& windows = window_.intervals();
    const auto after = std::lower_bound(windows.begin(), windows.end(), at.begin,
                                        [](const Interval& w, double begin) { return w.end <= begin; });
    if (after == windows.end() || after->begin >= at.end) continue;
    working_.push_back(s);
    if (GraphOf(s) >= 0) graphs_[static_cast<size_t>(GraphOf(s))].spans.push_back(s);
  }
  std::map<std::pair<int, SpanKind>, std::vector<Interval>> busy;
  for (const int s : working_) {
    const Span& span = profile_.spans[static_cast<size_t>(s)];
    const bool works =
        span.kind == SpanKind::kUpload || span.kind == SpanKind::kDownload || span.kind == SpanKind::kKernel;
    if (works && span.device >= 0) busy[{span.device, span.kind}].push_back(At(s));
  }
  for (auto& [of, intervals] : busy) {
    const auto device = static_cast<size_t>(of.first);
    const std::string name =
        device < profile_.devices.size() ? profile_.devices[device].name : "device " + std::to_string(of.first);
    Engine engine{of.first, of.second, name + " " + EngineName(of.second), Clip(std::move(intervals))};
    engine.busy_us = engine.busy.length();
    engines_.push_back(std::move(engine));
  }
}

void Facts::LeaveOutRecording() {
  const auto is_recording = [](const IdlePart& part) { return part.cause == IdleCause::kRecording; };
  std::vector<Interval> recording;
  for (const IdlePart& part : idle_) {
    if (is_recording(part)) recording.push_back(part.at);
  }
  std::erase_if(idle_, is_recording);
  window_ = window_.Minus(TimeSet(std::move(recording)));
  wall_us_ = window_.length();
}

void Facts::CountNodes() {
  std::map<std::pair<int, int>, std::vector<double>> lengths;
  for (size_t g = 0; g < graphs_.size(); ++g) graphs_[g].nodes.resize(profile_.graphs[g].nodes.size());
  for (const int s : working_) {
    const int n = NodeOf(s);
    if (n < 0) continue;
    const auto g = static_cast<size_t>(GraphOf(s));
    NodeFacts& node = graphs_[g].nodes[static_cast<size_t>(n)];
    const Span& span = profile_.spans[static_cast<size_t>(s)];
    lengths[{GraphOf(s), n}].push_back(At(s).length());
    if (span.name != profile_.graphs[g].nodes[static_cast<size_t>(n)].name) node.batched = true;
    if (node.span < 0 || At(s).length() > At(node.span).length()) node.span = s;
  }
  for (auto& [of, all] : lengths) {
    NodeFacts& node = graphs_[static_cast<size_t>(of.first)].nodes[static_cast<size_t>(of.second)];
    node.count = static_cast<int64_t>(all.size());
    for (const double us : all) node.total_us += us;
    node.shortest_us = *std::min_element(all.begin(), all.end());
    node.median_us = Median(std::move(all));
  }
}

void Facts::CountRuns() {
  std::vector<int64_t> launches(graphs_.size(), 0);
  std::vector<double> launched_us(graphs_.size(), 0);
  std::vector<bool> nested(graphs_.size(), true);
  std::vector<int> runs;
  for (const int s : working_) {
    const Span& span = profile_.spans[static_cast<size_t>(s)];
    const int graph = GraphOf(s);
    if (graph < 0) continue;
    if (span.kind == SpanKind::kRun) runs.push_back(s);
    if (span.kind != SpanKind::kSubmit || span.begin_us < graphs_[static_cast<size_t>(graph)].window.begin) continue;
    ++launches[static_cast<size_t>(graph)];
    launched_us[static_cast<size_t>(graph)] += span.end_us - span.begin_us;
  }
  std::sort(runs.begin(), runs.end(), [&](int a, int b) {
    return profile_.spans[static_cast<size_t>(a)].begin_us < profile_.spans[static_cast<size_t>(b)].begin_us;
  });
  // The latest ends of two graphs so far: a run is compared with that which is not its own.
  std::pair<double, int> latest{-kFarMicros, -1}, second{-kFarMicros, -1};
  for (const int s : runs) {
    const double end = profile_.spans[static_cast<size_t>(s)].end_us;
    const int graph = GraphOf(s);
    if ((latest.second == graph ? second : latest).first < end) nested[static_cast<size_t>(graph)] = false;
    if (end >= latest.first) {
      if (latest.second != graph) second = latest;
      latest = {end, graph};
    } else if (latest.second != graph && end > second.first) {
      second = {end, graph};
    }
  }
  FindTimes(runs);
  for (size_t g = 0; g < graphs_.size(); ++g) {
    graphs_[g].is_body = graphs_[g].steady && nested[g];
    if (launches[g] > 0) graphs_[g].submit_us = launched_us[g] / static_cast<double>(launches[g]);
  }
}

void Facts::FindTimes(const std::vector<int>& runs) {
  std::vector<Interval> all;
  std::vector<std::vector<Interval>> own(graphs_.size());
  for (const int s : runs) {
    all.push_back(At(s));
    own[static_cast<size_t>(GraphOf(s))].push_back(At(s));
  }
  const TimeSet in_flight(std::move(all));
  for (size_t g = 0; g < graphs_.size(); ++g) {
    if (Share(graphs_[g].run_us * static_cast<double>(graphs_[g].runs)) < kWorthATime) continue;
    const TimeSet others = in_flight.Minus(TimeSet(std::move(own[g])));
    graphs_[g].time = TimeSet({graphs_[g].window}).And(window_).Minus(others);
    graphs_[g].time_us = graphs_[g].time.length();
  }
}

const Engine* Facts::busiest() const {
  const Engine* most = nullptr;
  for (const Engine& engine : engines_) {
    if (most == nullptr || engine.busy_us > most->busy_us) most = &engine;
  }
  return most;
}

double Facts::FloorCut(SpanKind kind, double us) const {
  double floor = 0;
  for (const Engine& engine : engines_) floor = std::max(floor, engine.busy_us - (engine.kind == kind ? us : 0));
  return floor_us() - floor;
}

int Facts::NodeOf(int span) const {
  const int node = profile_.spans[static_cast<size_t>(span)].node;
  const int graph = GraphOf(span);
  if (graph < 0 || node < 0) return -1;
  return static_cast<size_t>(node) < profile_.graphs[static_cast<size_t>(graph)].nodes.size() ? node : -1;
}

Interval Facts::At(int span) const {
  const Span& of = profile_.spans[static_cast<size_t>(span)];
  return {of.begin_us, of.end_us};
}

}  // namespace penstock::analysis
