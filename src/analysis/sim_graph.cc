#include "src/analysis/sim_graph.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/assumed_figures.h"
#include "graph/common/message.h"
#include "src/analysis/roofline.h"
#include "src/analysis/time_set.h"

namespace penstock::analysis {
namespace {

using graph::SimNode;
using graph::SimResource;

constexpr double kMostSpread = 1.25;  // of the mean time of kernels to the shortest, where they do not wait

double MeanMicros(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The most intervals at a time.
int32_t MostAtATime(const std::vector<Interval>& intervals) {
  std::vector<std::pair<double, int32_t>> changes;
  for (const Interval& i : intervals) changes.insert(changes.end(), {{i.begin, 1}, {i.end, -1}});
  std::sort(changes.begin(), changes.end());
  int32_t now = 0, most = 0;
  for (const auto& [us, change] : changes) most = std::max(most, now += change);
  return most;
}

// How many intervals there are at a time, on average where there is one.
double MeanAtATime(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
  double sum = 0, covered = 0, until = -1;
  for (const Interval& i : intervals) {
    sum += i.length();
    covered += std::max(0.0, i.end - std::max(i.begin, until));
    until = std::max(until, i.end);
  }
  return covered > 0 ? sum / covered : 1;
}

// From which device a copy between devices copies: that of a node before it on another device, or the other one of
// two; -1: neither tells, or the node is no such copy.
int SourceOfPeerCopy(const Profile::Graph& graph, const Profile::Node& node, size_t devices) {
  if (node.kind != "peer copy") return -1;
  for (const int p : node.after) {
    if (p < 0 || static_cast<size_t>(p) >= graph.nodes.size()) continue;
    const int device = graph.nodes[static_cast<size_t>(p)].device;
    if (device >= 0 && device != node.device) return device;
  }
  return devices == 2 && (node.device == 0 || node.device == 1) ? 1 - node.device : -1;
}

// A copy from a device that is not known, such as that of a State, counts as a kernel.
SimResource SimResourceOf(const Profile::Node& node, int source) {
  if (node.device < 0) return SimResource::kWorker;
  if (source >= 0) return SimResource::kPeer;
  if (node.kind == "upload") return SimResource::kUpload;
  if (node.kind == "download") return SimResource::kDownload;
  return node.kind == "hostcall" || node.kind == "gate" ? SimResource::kNothing : SimResource::kKernel;
}

// What does one thing at a time, or a few: a device's kernels, a copy engine, or the link from one device to another.
struct SimEngine {
  int device = -1;
  SimResource resource = SimResource::kKernel;
  int from = -1;  // kPeer
  friend auto operator<=>(const SimEngine&, const SimEngine&) = default;
};

class GraphMeasurer {
 public:
  GraphMeasurer(const Profile& profile, size_t graph, const Machine* machine)
      : profile_(profile), graph_(profile.graphs[graph]), machine_(machine) {}

  absl::StatusOr<SimulatedGraph> Read() {
    for (const Profile::Graph& graph : profile_.graphs) graphs_.try_emplace(graph.executable, &graph);
    SortSpans();
    if (nodes_.empty() && machine_ == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          Name(), ": no spans of its nodes in the profile; its costs are unknown; profile a program that runs it"));
    }
    AddNodes();
    if (!status_.ok()) return status_;
    if (!nodes_.empty()) MeasureNodes();
    MeasureRuns();
    MeasureLaunches();
    if (nodes_.empty()) EstimateSubmission();
    AddMemory();
    return std::move(made_);
  }

 private:
  using RunNode = std::pair<int64_t, int>;

  std::string Name() const { return absl::StrCat("graph '", graph::OneLine(graph_.name), "'"); }

  static bool IsTimed(const Span& span) {
    return std::isfinite(span.begin_us) && std::isfinite(span.end_us) && span.begin_us <= span.end_us &&
           std::abs(span.begin_us) < 1e12 && std::abs(span.end_us) < 1e12;
  }

  // Runs are numbered as they were launched.
  void SortSpans() {
    std::set<int64_t> runs;
    for (const Span& span : profile_.spans) {
      if (span.executable == graph_.executable && span.run >= 0) runs.insert(span.run);
    }
    if (runs.size() > 1) first_ = *std::next(runs.begin(), static_cast<int64_t>((runs.size() + 3) / 4));
    for (const Span& span : profile_.spans) {
      if (!IsTimed(span)) continue;
      const bool is_work = span.kind <= SpanKind::kHost;
      // A hostcall takes a thread of the host, and the kernel that waits for it hardly anything.
      if (is_work && span.kind != SpanKind::kHost && span.device >= 0 && span.executable >= 0) {
        on_device_[EngineOf(span)].push_back({span.begin_us, span.end_us});
      }
      if (span.executable == graph_.executable) Sort(span, is_work);
    }
    for (auto& [slot, waits] : waits_) {
      std::sort(waits.begin(), waits.end(), [](const Span* x, const Span* y) { return x->end_us < y->end_us; });
    }
  }

  SimEngine EngineOf(const Span& span) const {
    if (span.kind == SpanKind::kUpload) return {span.device, SimResource::kUpload};
    if (span.kind == SpanKind::kDownload) return {span.device, SimResource::kDownload};
    const auto of = graphs_.find(span.executable);
    if (of == graphs_.end() || span.node < 0 || static_cast<size_t>(span.node) >= of->second->nodes.size()) {
      return {span.device, SimResource::kKernel};
    }
    const int from = SourceOf(*of->second, of->second->nodes[static_cast<size_t>(span.node)]);
    return {span.device, from < 0 ? SimResource::kKernel : SimResource::kPeer, from};
  }
  int SourceOf(const Profile::Graph& graph, const Profile::Node& node) const {
    return SourceOfPeerCopy(graph, node, profile_.devices.size());
  }
  static SimEngine EngineOf(const SimNode& node) {
    return {node.device, node.resource, node.resource == SimResource::kPeer ? node.from : -1};
  }

  void Sort(const Span& span, bool is_work) {
    if (span.kind == SpanKind::kWait && span.device < 0) waits_[span.slot].push_back(&span);
    if (is_work && span.node >= 0 && span.node < static_cast<int>(graph_.nodes.size())) {
      // A loop has a span for each iteration.
      const auto [at, is_first] = nodes_.try_emplace({span.run, span.node}, Interval{span.begin_us, span.end_us});
      at->second.begin = std::min(at->second.begin, span.begin_us);
      at->second.end = std::max(at->second.end, span.end_us);
      if (span.device < 0) workers_.insert(span.track);
    }
    if (span.kind == SpanKind::kRun) {
      begins_.push_back(span.begin_us);
      ends_.push_back(span.end_us);
    }
    if (span.run < first_) return;
    if (span.kind == SpanKind::kRun) runs_.push_back({span.begin_us, span.end_us});
    if (span.kind == SpanKind::kSubmit) launches_.push_back(&span);
  }

  void AddNodes() {
    made_.options.as_graphs = graph_.report.mode == Mode::kGraph;
    made_.sources.assign(graph_.nodes.size(), CostSource::kEstimated);
    made_.graph.devices.resize(profile_.devices.size());
    for (const Profile::Node& from : graph_.nodes) {
      SimNode& to = made_.graph.nodes.emplace_back();
      to.from = SourceOf(graph_, from);
      to.resource = SimResourceOf(from, to.from);
      to.on_host = from.device < 0;
      to.device = from.device;
      to.lane = from.lane;
      to.after.assign(from.after.begin(), from.after.end());
      if (machine_ != nullptr && nodes_.empty()) Estimate(from, to);
    }
    made_.options.slots = std::max(1, graph_.slots);
    made_.options.workers = std::max<int32_t>(1, static_cast<int32_t>(workers_.size()));
  }

  void Estimate(const Profile::Node& from, SimNode& to) {
    const Machine::Device* device = DeviceOf(*machine_, profile_, from.device);
    if (to.on_host) {
      to.bytes = from.read_bytes > INT64_MAX - from.written_bytes ? INT64_MAX : from.read_bytes + from.written_bytes;
      to.gbs = machine_->host_copy;
      if (from.kind == "host") to.us = HandOverMicros();
    } else if (device == nullptr) {
      const std::string name = graph::OneLine(profile_.devices[static_cast<size_t>(from.device)].name);
      status_ = absl::FailedPreconditionError(absl::StrCat(
          Name(), ": has not run, and the machine file knows no device '", name,
          "' of that kind; calibrate the machine that it is to run on, or profile a program that runs it"));
    } else {
      const bool copies = to.resource == SimResource::kUpload || to.resource == SimResource::kDownload;
      to.us = copies ? device->copy_us : made_.options.as_graphs ? device->graph_node_us : device->stream_node_us;
      to.us += RoofOf(*device, from).us();
      if (copies) SlowBothWays(*device, made_.graph.devices[static_cast<size_t>(from.device)]);
    }
  }

  // The first device of the graph that the machine knows; null: none.
  const Machine::Device* FirstDevice() const {
    for (const Profile::Node& node : graph_.nodes) {
      if (const Machine::Device* device = DeviceOf(*machine_, profile_, node.device)) return device;
    }
    return nullptr;
  }

  double HandOverMicros() const { return FirstDevice() == nullptr ? 0 : FirstDevice()->host_node_us; }

  void EstimateSubmission() {
    const Machine::Device* device = FirstDevice();
    if (device == nullptr) return;
    made_.options.launch_us = device->launch_us;
    if (!made_.options.as_graphs) made_.options.node_us = device->stream_node_us;
  }

  static void SlowBothWays(const Machine::Device& from, graph::SimDevice& to) {
    if (from.upload_both_ways > 0) to.upload_slowdown = std::max(1.0, from.upload / from.upload_both_ways);
    if (from.download_both_ways > 0) to.download_slowdown = std::max(1.0, from.download / from.download_both_ways);
  }

  std::vector<double> EndsOn(const SimEngine& engine) {
    std::vector<double> ends;
    for (const Interval& i : on_device_[engine]) ends.push_back(i.end);
    std::sort(ends.begin(), ends.end());
    return ends;
  }

  // What a span took once it had a place: the i-th of a resource to end had one at the latest when the (i - places)-th
  // ended. `ends`: when those of the resource ended, ascending.
  static double MicrosInPlace(const Interval& span, const std::vector<double>& ends, int32_t places) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), span.end) - ends.begin();
    if (at < places) return span.length();
    return span.end - std::clamp(ends[static_cast<size_t>(at - places)], span.begin, span.end);
  }

  // As many as overlap on average, but fewer if kernels took longer, once they had a place, than the shortest of
  // any run: those that overlapped waited for each other. With more places a span waits less for one, so it takes
  // longer: a binary search finds how many there are.
  int32_t KernelsAtOnce(int device, const std::vector<double>& ends) {
    std::vector<std::pair<int, Interval>> warm;
    std::vector<double> shortest(graph_.nodes.size(), -1);
    for (const auto& [key, span] : nodes_) {
      const SimNode& node = made_.graph.nodes[static_cast<size_t>(key.second)];
      if (node.resource != SimResource::kKernel || node.device != device) continue;
      double& least = shortest[static_cast<size_t>(key.second)];
      least = least < 0 ? span.length() : std::min(least, span.length());
      if (key.first >= first_) warm.emplace_back(key.second, span);
    }
    const double overlap = MeanAtATime(on_device_[{device, SimResource::kKernel}]);
    int32_t fits = 1, beyond = static_cast<int32_t>(std::lround(std::min(1e4, overlap))) + 1;
    while (beyond - fits > 1) {
      const int32_t places = std::midpoint(fits, beyond);
      (TakesAsShortest(warm, shortest, ends, places) ? fits : beyond) = places;
    }
    return fits;
  }

  // Whether, with so many places, nodes take about as long on average as their shortest spans. `warm`: each node with a
  // span.
  bool TakesAsShortest(const std::vector<std::pair<int, Interval>>& warm, const std::vector<double>& shortest,
                       const std::vector<double>& ends, int32_t places) const {
    std::vector<std::pair<double, int>> sums(graph_.nodes.size());
    for (const auto& [node, span] : warm) {
      auto& [sum, count] = sums[static_cast<size_t>(node)];
      sum += MicrosInPlace(span, ends, places);
      ++count;
    }
    double mean = 0, least = 0;
    for (size_t n = 0; n < sums.size(); ++n) {
      if (sums[n].second == 0) continue;
      mean += sums[n].first / sums[n].second;
      least += shortest[n];
    }
    return mean <= kMostSpread * least;
  }

  void MeasureNodes() {
    std::vector<std::vector<double>> costs(graph_.nodes.size());
    std::map<SimEngine, std::vector<double>> ends;
    for (const auto& [key, span] : nodes_) {
      if (key.first < first_) continue;
      const SimNode& node = made_.graph.nodes[static_cast<size_t>(key.second)];
      std::vector<double>& to = costs[static_cast<size_t>(key.second)];
      if (node.on_host || node.resource == SimResource::kNothing) {
        to.push_back(span.length());
        continue;
      }
      graph::SimDevice& device = made_.graph.devices[static_cast<size_t>(node.device)];
      const auto [at, is_new] = ends.try_emplace(EngineOf(node));
      if (is_new) at->second = EndsOn(at->first);
      const bool is_kernel = node.resource == SimResource::kKernel;
      if (is_new && is_kernel) device.kernels = KernelsAtOnce(node.device, at->second);
      to.push_back(MicrosInPlace(span, at->second, is_kernel ? device.kernels : 1));
    }
    for (size_t n = 0; n < costs.size(); ++n) {
      made_.sources[n] = costs[n].empty() ? CostSource::kNothing : CostSource::kMeasured;
      made_.graph.nodes[n].us = MeanMicros(costs[n]);
      if (costs[n].empty()) made_.graph.nodes[n].resource = SimResource::kNothing;
    }
  }

  void MeasureRuns() {
    made_.measured_runs = static_cast<int32_t>(runs_.size());
    if (runs_.empty()) return;
    std::vector<double> ends, lengths;
    for (const Interval& run : runs_) {
      ends.push_back(run.end);
      lengths.push_back(run.length());
    }
    std::sort(ends.begin(), ends.end());
    made_.latency_us = MeanMicros(lengths);
    if (ends.size() > 1) made_.run_us = (ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
  }

  // When the application wanted to launch: before it waited for a slot.
  double WantedAt(const Span& launch) const {
    double at = launch.begin_us;
    const auto of_slot = waits_.find(launch.slot);
    if (of_slot == waits_.end()) return at;
    const auto behind = std::upper_bound(of_slot->second.begin(), of_slot->second.end(), launch.begin_us,
                                         [](double begin, const Span* wait) { return begin < wait->end_us; });
    if (behind == of_slot->second.begin()) return at;
    const Span& last = **std::prev(behind);
    return launch.begin_us - last.end_us < 50 ? std::min(at, last.begin_us) : at;
  }

  void MeasureLaunches() {
    graph::SimOptions& options = made_.options;
    if (launches_.empty()) return;
    std::sort(launches_.begin(), launches_.end(),
              [](const Span* x, const Span* y) { return x->begin_us < y->begin_us; });
    std::vector<Interval> launches;
    std::vector<double> lengths;
    for (const Span* span : launches_) {
      launches.push_back({span->begin_us, span->end_us});
      lengths.push_back(launches.back().length());
    }
    options.threads = std::clamp(MostAtATime(launches), 1, 256);
    const int32_t most = runs_.empty() ? 0 : MostAtATime(runs_);
    options.in_flight = most < options.slots || waits_.empty() ? most : 0;
    const double launch_us = MeanMicros(lengths);
    const auto submitted = std::count_if(made_.graph.nodes.begin(), made_.graph.nodes.end(),
                                         [](const SimNode& node) { return !node.on_host; });
    (options.as_graphs || submitted == 0 ? options.launch_us : options.node_us) =
        options.as_graphs || submitted == 0 ? launch_us : launch_us / static_cast<double>(submitted);
    MeasureBetween();
    MeasureLatencies();
    MeasureCrossings();
  }

  // From the end of the last of a node's predecessors, where that is on another device, until the node begins: what a
  // quarter of the nodes wait at least once, since others wait for a place on the device too. On streams a node may
  // begin late because it was submitted late, so there it is at most what was measured elsewhere.
  void MeasureCrossings() {
    std::map<int, double> shortest;
    for (const auto& [key, span] : nodes_) {
      if (key.first < first_) continue;
      const Profile::Node& node = graph_.nodes[static_cast<size_t>(key.second)];
      const Interval* last = nullptr;
      int from = -1;
      for (const int p : node.after) {
        const auto before = nodes_.find({key.first, p});
        if (before == nodes_.end() || (last != nullptr && before->second.end <= last->end)) continue;
        last = &before->second;
        from = graph_.nodes[static_cast<size_t>(p)].device;
      }
      if (from < 0 || node.device < 0 || from == node.device) continue;
      const double gap = std::max(0.0, span.begin - last->end);
      const auto [at, is_new] = shortest.try_emplace(key.second, gap);
      if (!is_new) at->second = std::min(at->second, gap);
    }
    std::vector<double> gaps;
    for (const auto& [node, gap] : shortest) gaps.push_back(gap);
    made_.options.crossing_us = LowerQuartile(gaps);
    if (!made_.options.as_graphs) {
      made_.options.crossing_us = std::min(made_.options.crossing_us, graph::assumed::kCrossingUs);
    }
  }

  static double LowerQuartile(std::vector<double>& values) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 4);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }

  // What the application did between two launches of a thread, once a run more was allowed.
  void MeasureBetween() {
    std::sort(begins_.begin(), begins_.end());
    std::sort(ends_.begin(), ends_.end());
    std::vector<double> between;
    const auto threads = static_cast<size_t>(made_.options.threads);
    for (size_t i = threads; i < launches_.size(); ++i) {
      double from = launches_[i - threads]->end_us;
      const auto begun = std::upper_bound(begins_.begin(), begins_.end(), from) - begins_.begin();
      const auto end = std::upper_bound(ends_.begin(), ends_.end(), from);
      const int32_t in_flight = made_.options.in_flight;
      if (in_flight > 0 && begun - (end - ends_.begin()) >= in_flight && end != ends_.end()) from = *end;
      between.push_back(std::max(0.0, WantedAt(*launches_[i]) - from));
    }
    made_.options.between_us = MeanMicros(between);
  }

  // From the end of a launch to the first node on a device, if that is the first of all; from the last node to the end
  // of the run, if that is on a device, and otherwise from a node to a host step after it, which may have waited for a
  // worker: the shortest counts.
  void MeasureLatencies() {
    std::map<int64_t, Interval> of_run;
    std::map<int64_t, int> first, last;
    for (const auto& [key, span] : nodes_) {
      if (key.first < first_) continue;
      const auto [at, is_new] = of_run.try_emplace(key.first, span);
      if (is_new || span.begin < at->second.begin) at->second.begin = span.begin, first[key.first] = key.second;
      if (is_new || span.end > at->second.end) at->second.end = span.end, last[key.first] = key.second;
    }
    std::vector<double> starts, completions;
    for (const Span& span : profile_.spans) {
      const auto run = of_run.find(span.run);
      if (span.executable != graph_.executable || run == of_run.end() || !IsTimed(span)) continue;
      if (span.kind == SpanKind::kSubmit && !made_.graph.nodes[static_cast<size_t>(first[span.run])].on_host) {
        starts.push_back(std::max(0.0, run->second.begin - span.end_us));
      }
      if (span.kind == SpanKind::kRun && !made_.graph.nodes[static_cast<size_t>(last[span.run])].on_host) {
        completions.push_back(std::max(0.0, span.end_us - run->second.end));
      }
    }
    made_.options.start_us = MeanMicros(starts);
    made_.options.completion_us = completions.empty() ? ShortestReport() : MeanMicros(completions);
  }

  double ShortestReport() const {
    double shortest = -1;
    for (const auto& [key, span] : nodes_) {
      const SimNode& node = made_.graph.nodes[static_cast<size_t>(key.second)];
      if (!node.on_host) continue;
      double reported = -1;
      for (const int32_t p : node.after) {
        const auto before = nodes_.find({key.first, p});
        const bool on_host =
            p < 0 || p >= static_cast<int32_t>(graph_.nodes.size()) || graph_.nodes[static_cast<size_t>(p)].device < 0;
        if (!on_host && before != nodes_.end()) reported = std::max(reported, before->second.end);
      }
      if (reported < 0 || reported > span.begin) continue;
      if (shortest < 0 || span.begin - reported < shortest) shortest = span.begin - reported;
    }
    return std::max(0.0, shortest);
  }

  void AddMemory() {
    int device = -1;
    for (const Profile::Node& node : graph_.nodes) device = std::max(device, node.device);
    if (device >= 0) made_.graph.memory.push_back({device, graph_.slot_device_bytes, {}});
    made_.graph.memory.push_back({-1, graph_.slot_pinned_bytes, {}});
  }

  const Profile& profile_;
  const Profile::Graph& graph_;
  const Machine* machine_;
  SimulatedGraph made_;
  absl::Status status_;
  int64_t first_ = 0;  // run that counts
  std::map<int64_t, const Profile::Graph*> graphs_;  // by their executables
  std::map<SimEngine, std::vector<Interval>> on_device_;  // of all graphs
  std::map<RunNode, Interval> nodes_;  // from here on of this graph; those of all runs, runs and launches of later ones
  std::vector<double> begins_, ends_;  // of all runs
  std::vector<Interval> runs_;
  std::vector<const Span*> launches_;
  std::map<int, std::vector<const Span*>> waits_;  // for each slot, in the order of their ends
  std::set<std::string_view> workers_;  // their tracks
};

}  // namespace

bool WaitsForStates(const Profile& profile, int64_t executable) {
  return std::any_of(profile.spans.begin(), profile.spans.end(), [executable](const Span& span) {
    return span.kind == SpanKind::kWait && span.device >= 0 && span.executable == executable;
  });
}

double LatencyMicros(const graph::SimResult& result) {
  double sum = 0;
  for (size_t r = 0; r < result.ended_us.size(); ++r) sum += result.ended_us[r] - result.launched_us[r];
  return result.ended_us.empty() ? 0 : sum / static_cast<double>(result.ended_us.size());
}

absl::StatusOr<SimulatedGraph> SimulatedGraphOf(const Profile& profile, size_t graph, const Machine* machine) {
  return GraphMeasurer(profile, graph, machine).Read();
}

}  // namespace penstock::analysis
