// The simulator on random graphs: against the naive simulation, and what must hold of any result.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/simulate/simulate.h"
#include "tests/graph/simulate/naive_simulation.h"

namespace penstock::graph::random_simulate_test {
namespace {

constexpr int kGraphs = 400;

struct Case {
  SimGraph graph;
  SimOptions options;
};

class CaseMaker {
 public:
  explicit CaseMaker(uint32_t seed) : random_(seed) {}

  Case Make() {
    Case made;
    made.graph.devices.resize(static_cast<size_t>(Between(1, 2)));
    for (SimDevice& device : made.graph.devices) {
      device.kernels = Between(1, 3);
      device.upload_slowdown = Between(1, 2);
      device.download_slowdown = Between(1, 2);
    }
    const int nodes = Between(1, 12);
    for (int n = 0; n < nodes; ++n) made.graph.nodes.push_back(Node(made.graph, n));
    if (Between(0, 3) == 0) AddState(made.graph);
    AddMemory(made.graph);
    made.options = Options();
    return made;
  }

 private:
  int Between(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
  }

  SimNode Node(const SimGraph& graph, int n) {
    SimNode node;
    const auto devices = static_cast<int>(graph.devices.size());
    node.device = Between(0, devices - 1);
    node.lane = Between(-1, 3) * devices + node.device;
    if (node.lane < 0) node.lane = -1;
    node.us = 8 * Between(1, 6);
    switch (Between(0, 9)) {
      case 0: node.resource = SimResource::kNothing; break;
      case 1:
      case 2: node.resource = SimResource::kUpload; break;
      case 3:
      case 4: node.resource = SimResource::kDownload; break;
      case 5: node.resource = SimResource::kWorker; break;
      case 6:
        node.resource = devices > 1 ? SimResource::kPeer : SimResource::kKernel;
        if (devices > 1) node.from = 1 - node.device;
        break;
      default: break;
    }
    if (node.resource == SimResource::kWorker || (node.resource == SimResource::kNothing && Between(0, 1) == 0)) {
      node.on_host = true;
      node.device = node.lane = -1;
      if (node.resource == SimResource::kNothing) node.us = 0;
    }
    for (int p = 0; p < n; ++p) {
      if (Between(0, 3) == 0) node.after.push_back(p);
    }
    return node;
  }

  void AddState(SimGraph& graph) {
    std::vector<int32_t> touches;
    for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n) {
      if (!graph.nodes[static_cast<size_t>(n)].on_host && Between(0, 2) == 0) touches.push_back(n);
    }
    graph.states.push_back(touches);
  }

  void AddMemory(SimGraph& graph) {
    for (int i = Between(0, 3); i > 0; --i) {
      SimMemory& memory = graph.memory.emplace_back(SimMemory{.device = Between(-1, 0), .bytes = Between(0, 100)});
      for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n) {
        if (Between(0, 2) == 0) memory.users.push_back(n);
      }
    }
  }

  SimOptions Options() {
    SimOptions options;
    options.runs = Between(1, 7);
    options.slots = Between(1, 4);
    options.as_graphs = Between(0, 1) == 1;
    options.workers = Between(1, 2);
    options.threads = Between(1, 2);
    options.in_flight = Between(0, 3);
    options.between_us = Between(0, 1) * Between(0, 40);
    options.period_us = Between(0, 2) == 0 ? Between(1, 60) : 0;
    options.launch_us = Between(1, 6);
    options.node_us = Between(1, 4);
    options.graph_us = Between(1, 5);
    options.stream_latency_us = Between(0, 2);
    options.graph_latency_us = Between(0, 2);
    options.start_us = Between(0, 3);
    options.crossing_us = Between(0, 5);
    options.completion_us = Between(0, 5);
    options.crossing_submit_us = Between(0, 3);
    return options;
  }

  std::mt19937 random_;
};

std::vector<std::vector<double>> Times(const SimResult& result, const Case& made, double SimSpan::* time) {
  std::vector<std::vector<double>> times(static_cast<size_t>(made.options.runs));
  for (std::vector<double>& run : times) run.resize(made.graph.nodes.size(), -1);
  for (const SimSpan& span : result.spans) {
    if (span.node >= 0) times[static_cast<size_t>(span.run)][static_cast<size_t>(span.node)] = span.*time;
  }
  return times;
}

TEST(RandomSimulation, AgreesWithTheNaiveSimulation) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const Case made = CaseMaker(seed).Make();
    const auto result = Simulate(made.graph, made.options);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    const NaiveResult naive = SimulateNaively(made.graph, made.options);
    ASSERT_EQ(result->launched_us, naive.launched_us) << "seed " << seed;
    ASSERT_EQ(Times(*result, made, &SimSpan::begin_us), naive.begin_us) << "seed " << seed;
    ASSERT_EQ(Times(*result, made, &SimSpan::end_us), naive.end_us) << "seed " << seed;
    ASSERT_EQ(result->ended_us, naive.ended_us) << "seed " << seed;
  }
}

// The most spans of one resource at a time; work of no length does not count.
int MostAtOnce(std::vector<std::pair<double, int>> changes) {
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [us, change] : changes) most = std::max(most, now += change);
  return most;
}

TEST(RandomSimulation, NoResourceHasMoreWorkThanPlaces) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const Case made = CaseMaker(seed).Make();
    const auto result = Simulate(made.graph, made.options);
    ASSERT_TRUE(result.ok());
    using Key = std::tuple<SimResource, int32_t, int32_t, int32_t>;
    std::map<Key, std::vector<std::pair<double, int>>> of_place;
    std::map<int32_t, std::vector<std::pair<double, int>>> of_slot;
    for (const SimSpan& span : result->spans) {
      if (span.resource == SimResource::kNothing || span.begin_us == span.end_us) continue;
      auto& changes = of_place[{span.resource, span.device, span.from, span.place}];
      changes.insert(changes.end(), {{span.begin_us, 1}, {span.end_us, -1}});
    }
    for (const auto& [key, changes] : of_place) ASSERT_EQ(MostAtOnce(changes), 1) << "seed " << seed;
    for (const SimUse& use : result->uses) {
      ASSERT_LE(use.busy_us, result->makespan_us * use.places) << "seed " << seed;
      for (const auto& [key, changes] : of_place) {
        if (std::get<0>(key) != use.resource || std::get<1>(key) != use.device) continue;
        if (std::get<2>(key) == use.from) {
          ASSERT_LT(std::get<3>(key), use.places) << "seed " << seed;
        }
      }
    }
    std::vector<std::pair<double, int>> runs;
    for (size_t r = 0; r < result->ended_us.size(); ++r) {
      runs.insert(runs.end(), {{result->launched_us[r], 1}, {result->ended_us[r], -1}});
    }
    ASSERT_LE(MostAtOnce(runs), made.options.slots) << "seed " << seed;
  }
}

TEST(RandomSimulation, SpansBeginAfterWhatTheyWaitedForAndThePathIsNoLongerThanAllRuns) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const Case made = CaseMaker(seed).Make();
    const auto result = Simulate(made.graph, made.options);
    ASSERT_TRUE(result.ok());
    const auto end = Times(*result, made, &SimSpan::end_us);
    for (const SimSpan& span : result->spans) {
      ASSERT_LE(span.ready_us, span.begin_us) << "seed " << seed;
      ASSERT_EQ(span.wait == SimWait::kNothing, span.waited_for < 0) << "seed " << seed;
      if (span.wait == SimWait::kResource) {
        ASSERT_EQ(result->spans[static_cast<size_t>(span.waited_for)].end_us, span.begin_us) << "seed " << seed;
      }
      if (span.node < 0) continue;
      for (const int32_t p : made.graph.nodes[static_cast<size_t>(span.node)].after) {
        ASSERT_LE(end[static_cast<size_t>(span.run)][static_cast<size_t>(p)], span.begin_us) << "seed " << seed;
      }
    }
    double path_us = 0, last_us = 0;
    for (const int32_t s : result->critical_path) {
      const SimSpan& span = result->spans[static_cast<size_t>(s)];
      // A node may begin while its segment is still being submitted.
      path_us += span.end_us - std::max(span.begin_us, std::min(last_us, span.end_us));
      last_us = std::max(last_us, span.end_us);
    }
    ASSERT_LE(path_us, result->makespan_us) << "seed " << seed;
    ASSERT_EQ(result->spans[static_cast<size_t>(result->critical_path.front())].waited_for, -1) << "seed " << seed;
  }
}

TEST(RandomSimulation, MemoryPeaksAreThoseOfTheSpans) {
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const Case made = CaseMaker(seed).Make();
    const auto result = Simulate(made.graph, made.options);
    ASSERT_TRUE(result.ok());
    const auto begin = Times(*result, made, &SimSpan::begin_us), end = Times(*result, made, &SimSpan::end_us);
    std::map<int32_t, int64_t> most;
    std::vector<double> moments;
    for (const SimSpan& span : result->spans) moments.push_back(span.begin_us);
    for (const double t : moments) {
      std::map<int32_t, int64_t> held;
      for (const SimMemory& memory : made.graph.memory) {
        for (size_t r = 0; r < begin.size(); ++r) {
          double from = memory.users.empty() ? result->launched_us[r] : 1e300, to = 0;
          if (memory.users.empty()) to = result->ended_us[r];
          for (const int32_t n : memory.users) {
            from = std::min(from, begin[r][static_cast<size_t>(n)]);
            to = std::max(to, end[r][static_cast<size_t>(n)]);
          }
          held[memory.device] += from <= t && t < to ? memory.bytes : 0;
        }
      }
      for (const auto& [device, bytes] : held) most[device] = std::max(most[device], bytes);
    }
    for (const SimPeak& peak : result->peaks) ASSERT_EQ(peak.bytes, most[peak.device]) << "seed " << seed;
    ASSERT_EQ(result->peaks.size(), most.size()) << "seed " << seed;
  }
}

TEST(RandomSimulation, IsTheSameEachTime) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const Case made = CaseMaker(seed).Make();
    const auto one = Simulate(made.graph, made.options), two = Simulate(made.graph, made.options);
    ASSERT_TRUE(one.ok() && two.ok());
    ASSERT_EQ(one->spans.size(), two->spans.size());
    for (size_t s = 0; s < one->spans.size(); ++s) {
      const auto key = [](const SimSpan& x) { return std::tuple(x.node, x.run, x.begin_us, x.end_us, x.waited_for); };
      ASSERT_EQ(key(one->spans[s]), key(two->spans[s])) << "seed " << seed;
    }
    ASSERT_EQ(one->critical_path, two->critical_path);
  }
}

}  // namespace
}  // namespace penstock::graph::random_simulate_test
