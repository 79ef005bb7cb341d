// Profile::ChromeJson of runs on host devices: the format holds, every span is there, and the arrows are those that the
// plan and the spans allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "tests/observe/chrome_checker.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::profile_chrome_runs_test {
namespace {

using nlohmann::json;
using testing::IsEmpty;

constexpr int64_t kWords = 100;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};
struct IsBelowFive {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> x) const { return x[0] < 5; }
};

struct Words {
  std::vector<int32_t> x;
};

bool IsCopyToDevice(const Profile::Node& node) {
  return node.kind == "upload" || node.kind == "device copy" || node.kind == "peer copy";
}

// The copies to devices that a node of the same run follows, and does not end before.
size_t CopiesWithReaders(const Profile& profile) {
  size_t count = 0;
  for (const Profile::Graph& graph : profile.graphs) {
    std::vector<Span> spans;
    for (const Span& span : profile.spans) {
      if (span.executable != graph.executable || span.node < 0) continue;
      const bool by_device = graph.nodes[static_cast<size_t>(span.node)].kind == "conditional";
      if (!by_device || span.name.find(" iteration ") == std::string::npos) spans.push_back(span);
    }
    for (const Span& copy : spans) {
      if (!IsCopyToDevice(graph.nodes[static_cast<size_t>(copy.node)])) continue;
      const Span* first = nullptr;
      for (const Span& other : spans) {
        const std::vector<int>& after = graph.nodes[static_cast<size_t>(other.node)].after;
        if (other.run != copy.run || std::count(after.begin(), after.end(), copy.node) == 0) continue;
        if (first == nullptr || other.begin_us < first->begin_us) first = &other;
      }
      if (first != nullptr && first->end_us > copy.begin_us + 0.001) ++count;
    }
  }
  return count;
}

class ChromeProfileRuns : public testing::Test {
 protected:
  static Runtime RuntimeOf(const std::string& devices) {
    return *Runtime::Create({.devices = devices, .workers = 2, .host_device_threads = 1, .profile_spans = 10'000});
  }

  // Checks the runtime's profile, and returns how many events there are of each phase, and arrows of each name.
  static std::map<std::string, size_t> Check(const Runtime& runtime) {
    const Profile profile = runtime.Profile();
    const std::string text = profile.ChromeJson();
    EXPECT_THAT(chrome_checker::MistakesIn(text), IsEmpty());
    const json trace = json::parse(text);
    std::map<std::string, size_t> counts;
    std::multimap<std::string, double> lengths;
    for (const json& event : trace["traceEvents"]) {
      ++counts[event["ph"]];
      if (event["ph"] == "s") ++counts[event["name"]];
      if (event["ph"] == "X") lengths.emplace(event["name"], event["dur"]);
    }
    for (const Span& span : profile.spans) {
      const auto [begin, end] = lengths.equal_range(span.name);
      const auto same = [&](const auto& of) { return std::abs(of.second - (span.end_us - span.begin_us)) < 0.0015; };
      EXPECT_TRUE(std::any_of(begin, end, same)) << span.name;
    }
    EXPECT_EQ(counts["X"], profile.spans.size());
    EXPECT_EQ(counts["data"], CopiesWithReaders(profile));
    size_t launches = 0;
    for (const Span& span : profile.spans) launches += span.kind == SpanKind::kSubmit ? 1 : 0;
    EXPECT_LE(counts["launch"], launches);
    EXPECT_GT(counts["launch"], 0u);
    EXPECT_GT(counts["C"], 0u);
    return counts;
  }

  const ModeScope mode_{""};
  std::vector<int32_t> memory_ = std::vector<int32_t>(kWords, 1);
};

TEST_F(ChromeProfileRuns, OfCopiesAndHostNodesKeepTheFormat) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    Runtime runtime = RuntimeOf("host");
    Graph graph("nodes");
    const auto x = graph.InOut<int32_t>("x", kWords);
    const auto y = graph.Buffer<int32_t>("y", kWords);
    graph.ParallelFor("first", kWords, AddOne{}, ReadWrite(x));
    graph.Copy("copy", Read(x), Write(y));
    graph.ParallelFor("second", kWords, AddOne{}, ReadWrite(y));
    graph.Host("look", [](std::span<const int32_t>) {}, Read(y));
    Executable exec = *runtime.Compile(graph, {.slots = 2, .mode = mode});
    for (int r = 0; r < 3; ++r) ASSERT_OK(exec.Launch(exec.bindings().Set(x, memory_))->Wait());
    EXPECT_GT(Check(runtime)["data"], 0u);
  }
}

TEST_F(ChromeProfileRuns, OfLoopsKeepTheFormat) {
  for (const Lowering constructs : {Lowering::kHost, Lowering::kDevice}) {
    Runtime runtime = RuntimeOf("host");
    Graph graph("loop");
    const auto x = graph.InOut<int32_t>("x", kWords);
    graph.While("grow", When(IsBelowFive{}, Read(x)), {.max = 100},
                [&](Graph& in) { in.ParallelFor("in the body", kWords, AddOne{}, ReadWrite(x)); });
    Executable exec = *runtime.Compile(graph, {.slots = 1, .constructs = constructs});
    ASSERT_OK(exec.Launch(exec.bindings().Set(x, memory_))->Wait());
    EXPECT_EQ(memory_[0], 5);
    Check(runtime);
    std::fill(memory_.begin(), memory_.end(), 1);
  }
}

TEST_F(ChromeProfileRuns, OnTwoDevicesKeepTheFormat) {
  Runtime runtime = RuntimeOf("host:2");
  Graph graph("two");
  const auto x = graph.InOut<int32_t>("x", kWords);
  graph.ParallelFor("here", kWords, AddOne{}, ReadWrite(x)).On(0);
  graph.ParallelFor("there", kWords, AddOne{}, ReadWrite(x)).On(1);
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  for (int r = 0; r < 2; ++r) ASSERT_OK(exec.Launch(exec.bindings().Set(x, memory_))->Wait());
  EXPECT_EQ(memory_[0], 5);
  EXPECT_GT(Check(runtime)["data"], 0u);
}

TEST_F(ChromeProfileRuns, OfAPipelineKeepTheFormat) {
  Runtime runtime = RuntimeOf("host");
  Graph graph("stage");
  const auto x = graph.InOut<int32_t>("x", kWords);
  graph.ParallelFor("add", kWords, AddOne{}, ReadWrite(x));
  Executable exec = *runtime.Compile(graph, {.slots = 3});
  Stages<Words> stages;
  stages.Host("make", [](Words& item) { item.x.assign(kWords, 1); });
  stages.Run("add", exec, [&](Item<Words>& item) { item.Set(x, item->x); });
  auto pipe = *Pipeline<Words>::Create(std::move(stages), {.window = 4});
  int made = 0, right = 0;
  const auto source = [&]() { return made++ < 20 ? std::optional<Words>(Words{}) : std::nullopt; };
  ASSERT_OK(pipe.Run(source, [&](Item<Words>& item) { right += item->x[0] == 2 ? 1 : 0; }));
  EXPECT_EQ(right, 20);
  EXPECT_GT(Check(runtime)["data"], 0u);
}

}  // namespace
}  // namespace penstock::profile_chrome_runs_test
