// Metrics: what they count, compared with what the test has done, and their text, read by a parser of the test's own.
#include "penstock/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/observe/run_counts.h"
#include "src/observe/shown_name.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::metrics_test {
namespace {

using testing::IsEmpty;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};

struct IsBelowFive {
  PENSTOCK_HOST_DEVICE bool operator()(const int32_t* x) const { return *x < 5; }
};

// A graph of one host node, which does what the test says.
struct Steps {
  explicit Steps(const std::string& name) : graph(name), x(graph.InOut<int32_t>("x", 4)) {
    graph.Host("step", [this](std::span<int32_t>) { return result; }, ReadWrite(x));
  }
  absl::Status RunOnce(Executable& exec) { return exec.Launch(exec.bindings().Set(x, words))->Wait(); }

  Graph graph;
  BufferHandle<int32_t> x;
  absl::Status result;
  std::vector<int32_t> words = std::vector<int32_t>(4);
};

// Whether it holds before long.
template <class F>
bool Comes(F holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

Metrics::Graph Of(const Metrics& metrics, const std::string& name) {
  for (const Metrics::Graph& graph : metrics.graphs) {
    if (graph.name == name) return graph;
  }
  ADD_FAILURE() << "no graph is called " << name;
  return {};
}

TEST(Metrics, CountRunsByTheirEnds) {
  Runtime runtime = HostRuntime();
  Steps steps("steps"), never("never launched");
  Executable exec = *runtime.Compile(steps.graph, {.slots = 3});
  const Executable unused = *runtime.Compile(never.graph, {.slots = 1});
  for (int run = 0; run < 5; ++run) ASSERT_OK(steps.RunOnce(exec));
  steps.result = absl::InternalError("on purpose");
  for (int run = 0; run < 2; ++run) EXPECT_FALSE(steps.RunOnce(exec).ok());
  const Metrics metrics = runtime.Metrics();
  const Metrics::Graph graph = Of(metrics, "steps");
  EXPECT_EQ(graph.launches, 7);
  EXPECT_EQ(graph.succeeded, 5);
  EXPECT_EQ(graph.failed, 2);
  EXPECT_EQ(graph.cancelled, 0);
  EXPECT_EQ(graph.in_flight, 0);
  EXPECT_EQ(graph.executables, 1);
  EXPECT_EQ(graph.slot_waits, 0);
  EXPECT_EQ(Of(metrics, "never launched").launches, 0);
  EXPECT_EQ(metrics.AllGraphs().launches, 7);
  EXPECT_EQ(metrics.AllGraphs().executables, 2);
  EXPECT_FALSE(metrics.lost);
}

TEST(Metrics, ARunIsInFlightUntilItHasDrained) {
  HeldGraph held;
  Runtime runtime = HostRuntime();
  Executable exec = *runtime.Compile(held.graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  auto run = exec.Launch(exec.bindings().Set(held.x, words));
  ASSERT_TRUE(held.latch.AwaitArrived());
  const Metrics::Graph during = Of(runtime.Metrics(), "held");
  EXPECT_EQ(during.launches, 1);
  EXPECT_EQ(during.in_flight, 1);
  EXPECT_EQ(during.abandoned, 0);
  run->Cancel();
  EXPECT_EQ(Of(runtime.Metrics(), "held").cancelled, 0);  // its host node is still inside
  held.latch.Open();
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled);
  const Metrics::Graph after = Of(runtime.Metrics(), "held");
  EXPECT_EQ(after.cancelled, 1);
  EXPECT_EQ(after.in_flight, 0);
}

TEST(Metrics, ARunThatPassesItsDeadlineIsAbandonedAndHasFailed) {
  HeldGraph held;
  Runtime runtime = HostRuntime();
  Executable exec = *runtime.Compile(held.graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  auto run = exec.Launch(exec.bindings().Set(held.x, words), std::chrono::milliseconds(20));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  const Metrics::Graph during = Of(runtime.Metrics(), "held");
  EXPECT_EQ(during.failed, 1);
  EXPECT_EQ(during.in_flight, 1);
  EXPECT_EQ(during.abandoned, 1);
  held.latch.Open();
  EXPECT_TRUE(Comes([&] { return Of(runtime.Metrics(), "held").in_flight == 0; }));
  const Metrics::Graph after = Of(runtime.Metrics(), "held");
  EXPECT_EQ(after.failed, 1);
  EXPECT_EQ(after.abandoned, 0);
}

TEST(Metrics, CountWaitsForSlots) {
  HeldGraph held;
  Runtime runtime = HostRuntime();
  Executable exec = *runtime.Compile(held.graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  const Bindings io = exec.bindings().Set(held.x, words);
  auto first = exec.Launch(io);
  ASSERT_TRUE(held.latch.AwaitArrived());
  EXPECT_FALSE(exec.TryLaunch(io).ok());  // does not wait
  std::thread second([&] { EXPECT_OK(exec.Launch(io)->Wait()); });
  EXPECT_TRUE(Comes([&] { return Of(runtime.Metrics(), "held").waiting == 1; }));
  EXPECT_EQ(Of(runtime.Metrics(), "held").slot_waits, 1);
  EXPECT_EQ(Of(runtime.Metrics(), "held").slot_wait_seconds, 0);
  held.latch.Open();
  second.join();
  ASSERT_OK(first->Wait());
  const Metrics::Graph after = Of(runtime.Metrics(), "held");
  EXPECT_EQ(after.waiting, 0);
  EXPECT_EQ(after.slot_waits, 1);
  EXPECT_GT(after.slot_wait_seconds, 0);
}

// Reads while another thread compiles, runs and drops.
TEST(Metrics, CountsNeverFallWhateverExecutablesAreDropped) {
  Runtime runtime = HostRuntime();
  Steps steps("dropped");
  Metrics last;
  std::atomic<bool> done{false};
  std::thread drops([&] {
    for (int n = 0; n < 20; ++n) {
      Executable exec = *runtime.Compile(steps.graph, {.slots = 1});
      EXPECT_OK(steps.RunOnce(exec));
    }
    done = true;
  });
  while (!done) {
    Metrics now = runtime.Metrics();
    const Metrics::Graph before = last.AllGraphs(), graph = now.AllGraphs();
    EXPECT_GE(graph.launches, before.launches);
    EXPECT_GE(graph.succeeded, before.succeeded);
    EXPECT_GE(graph.compiled, before.compiled);
    EXPECT_GE(now.graph_instantiations, last.graph_instantiations);
    EXPECT_GE(graph.in_flight, 0);
    EXPECT_LE(graph.succeeded, graph.launches);
    std::map<std::string, double> cpu;
    for (const Metrics::Threads& kind : last.threads) cpu[kind.name] = kind.cpu_seconds;
    for (const Metrics::Threads& kind : now.threads) EXPECT_GE(kind.cpu_seconds, cpu[kind.name]) << kind.name;
    last = std::move(now);
  }
  drops.join();
  const Metrics::Graph graph = Of(runtime.Metrics(), "dropped");
  EXPECT_EQ(graph.launches, 20);
  EXPECT_EQ(graph.compiled, 20);
  // A thread of the runtime may be the last owner.
  EXPECT_TRUE(Comes([&] { return Of(runtime.Metrics(), "dropped").executables == 0; }));
}

// The host drives it, since its body has a host node that may fail.
TEST(Metrics, RunsOfAConstructsPartsAreNoneOfTheirOwn) {
  Runtime runtime = HostRuntime();
  Graph graph("around");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 1);
  graph.While("to five", When(IsBelowFive{}, Read(x)), {.max = 10},
              [&](Graph& body) { body.Host("inside", [](std::span<int32_t> v) { ++v[0]; }, ReadWrite(x)); });
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  std::vector<int32_t> words(1);
  ASSERT_OK(exec.Launch(exec.bindings().Set(x, words))->Wait());
  ASSERT_EQ(words[0], 5);
  const Metrics metrics = runtime.Metrics();
  ASSERT_EQ(metrics.graphs.size(), 1u);
  EXPECT_EQ(metrics.graphs[0].launches, 1);
  EXPECT_EQ(metrics.graphs[0].executables, 1);
}

TEST(Metrics, CountGraphsAndHostcalls) {
  const ModeScope mode("");
  Runtime runtime = HostRuntime();
  Graph graph("calls");
  const BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
  graph.ParallelFor("one", 4, AddOne{}, ReadWrite(x));
  graph.Host("asked", [](std::span<int32_t>) {}, ReadWrite(x)).Infallible();
  graph.ParallelFor("two", 4, AddOne{}, ReadWrite(x));
  Executable exec = *runtime.Compile(graph, {.slots = 2, .mode = Mode::kGraph});
  std::vector<int32_t> words(4);
  for (int run = 0; run < 3; ++run) ASSERT_OK(exec.Launch(exec.bindings().Set(x, words))->Wait());
  const Metrics metrics = runtime.Metrics();
  EXPECT_EQ(metrics.hostcalls, 3);
  EXPECT_EQ(metrics.graph_instantiations, exec.submission_report().graphs);
  EXPECT_GE(metrics.graph_instantiations, 2);  // one for each slot
}

TEST(Metrics, KnowTheMemoryOfDevicesAndWhatIsStaged) {
  constexpr int64_t kWords = int64_t{1} << 18;  // a megabyte
  Runtime runtime = *Runtime::Create(
      {.devices = "host:2", .workers = 2, .host_device_threads = 1, .host_device_memory = int64_t{1} << 26});
  const int64_t before = runtime.Metrics().devices.at(1).used_bytes;
  {
    const auto memory = *runtime.MakeDeviceBuffer<int32_t>(kWords, 1);
    const Metrics metrics = runtime.Metrics();
    ASSERT_EQ(metrics.devices.size(), 2u);
    EXPECT_EQ(metrics.devices[1].name, "host:1");
    EXPECT_EQ(metrics.devices[1].memory_bytes, int64_t{1} << 26);
    EXPECT_EQ(metrics.devices[1].used_bytes, before + kWords * 4);
    EXPECT_EQ(metrics.devices[0].used_bytes, 0);
  }
  EXPECT_EQ(runtime.Metrics().devices.at(1).used_bytes, before);
  Graph graph("staged");
  const auto x = graph.Input<int32_t>("x", kWords);
  const auto y = graph.Output<int32_t>("y", kWords / 2);
  graph.ParallelFor(
      "half", kWords / 2, [](int64_t i, View<const int32_t> from, View<int32_t> to) { to[i] = from[i]; }, Read(x),
      Write(y));
  {
    Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kStream});
    std::vector<int32_t> from(kWords), to(kWords / 2);
    for (int run = 0; run < 2; ++run) ASSERT_OK(exec.Launch(exec.bindings().Set(x, from).Set(y, to))->Wait());
  }
  const Metrics metrics = runtime.Metrics();
  EXPECT_EQ(metrics.staged_upload_bytes, 2 * kWords * 4);
  EXPECT_EQ(metrics.staged_download_bytes, 2 * kWords * 2);
  EXPECT_EQ(metrics.pinned.reserved, runtime.pinned_memory().reserved);
  EXPECT_GT(metrics.pinned.budget, 0);
  ASSERT_OK(runtime.Shutdown());
  EXPECT_EQ(runtime.Metrics().staged_upload_bytes, 2 * kWords * 4);
}

Metrics::Threads ThreadsOf(const Runtime& runtime, const std::string& name) {
  for (const Metrics::Threads& kind : runtime.Metrics().threads) {
    if (kind.name == name) return kind;
  }
  return {};
}

// Other tests of the process may have left some behind.
TEST(Metrics, ThreadsOfAKindCountTogether) {
  Runtime other = HostRuntime(/*workers=*/1);
  // A thread enters itself when it begins, as this one has when it has called the host node.
  Steps steps("begins");
  Executable exec = *other.Compile(steps.graph, {.slots = 1});
  ASSERT_OK(steps.RunOnce(exec));
  const int64_t before = ThreadsOf(other, "ps-worker").count;
  Runtime runtime = HostRuntime(/*workers=*/3);
  ASSERT_TRUE(Comes([&] { return ThreadsOf(runtime, "ps-worker").count >= before + 3; }));
  std::set<std::string> names;
  for (const Metrics::Threads& kind : runtime.Metrics().threads) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " is there twice";
  }
  EXPECT_TRUE(names.contains("ps-0-run"));
  const double used = ThreadsOf(runtime, "ps-worker").cpu_seconds;
  ASSERT_OK(runtime.Shutdown());
  EXPECT_EQ(ThreadsOf(runtime, "ps-worker").count, before);
  EXPECT_GE(ThreadsOf(runtime, "ps-worker").cpu_seconds, used);
}

TEST(Metrics, OfAMovedRuntimeAreEmpty) {
  Runtime runtime = HostRuntime();
  const Runtime other = std::move(runtime);
  EXPECT_THAT(runtime.Metrics().devices, IsEmpty());  // NOLINT: on purpose
}

TEST(GraphCounts, LaterNamesThanAThousandCountTogether) {
  observe::GraphCounts counts;
  for (size_t n = 0; n < observe::GraphCounts::kMostNames + 10; ++n) counts.Of("graph " + std::to_string(n)).Began();
  const std::vector<Metrics::Graph> graphs = counts.Read();
  ASSERT_EQ(graphs.size(), observe::GraphCounts::kMostNames + 1);
  EXPECT_EQ(graphs[0].name, "");
  EXPECT_EQ(graphs[0].launches, 10);
  EXPECT_EQ(counts.Of("graph 0").Read().launches, 1);  // those that are known stay known
}

TEST(ShownName, HasNoControlCharactersAndIsUtf8) {
  EXPECT_EQ(observe::ShownName("für x"), "für x");
  EXPECT_EQ(observe::ShownName("a\x01\x7F"
                               "b\r\nc"),
            "a\uFFFD\uFFFD"
            "b\uFFFD\uFFFD"
            "c");
  EXPECT_EQ(observe::ShownName("\xC2\x85|\xC2\xA0"), "\uFFFD|\xC2\xA0");  // NEXT LINE; a space that does not break
  EXPECT_EQ(observe::ShownName("\xFF\xC3"), "\uFFFD\uFFFD");
  EXPECT_EQ(observe::ShownName(std::string_view("a\0b", 3)),
            "a\uFFFD"
            "b");
}

// --- the text ---

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> help, type;  // by family
  std::vector<Sample> samples;
  std::vector<std::string> mistakes;
};

bool IsName(std::string_view name, std::string_view also) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!letter && also.find(c) == std::string_view::npos) return false;
  }
  return true;
}

// name{label="value",...} number, as Prometheus' own documentation has it.
std::optional<Sample> ParseSample(std::string_view line) {
  Sample sample;
  const size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos) return std::nullopt;
  sample.name = line.substr(0, end);
  if (!IsName(sample.name, ":")) return std::nullopt;
  line.remove_prefix(end);
  if (line[0] == '{') {
    line.remove_prefix(1);
    while (!line.empty() && line[0] != '}') {
      const size_t equals = line.find("=\"");
      if (equals == std::string_view::npos || !IsName(line.substr(0, equals), "")) return std::nullopt;
      const std::string label(line.substr(0, equals));
      line.remove_prefix(equals + 2);
      std::string value;
      for (; !line.empty() && line[0] != '"'; line.remove_prefix(1)) {
        if (line[0] != '\\') {
          value += line[0];
          continue;
        }
        line.remove_prefix(1);
        if (line.empty()) return std::nullopt;
        if (line[0] == 'n') value += '\n';
        else if (line[0] == '\\' || line[0] == '"') value += line[0];
        else return std::nullopt;
      }
      if (line.empty()) return std::nullopt;
      line.remove_prefix(1);
      if (!sample.labels.emplace(label, value).second) return std::nullopt;
      if (!line.empty() && line[0] == ',') line.remove_prefix(1);
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
  }
  if (line.size() < 2 || line[0] != ' ') return std::nullopt;
  const std::string number(line.substr(1));
  char* rest = nullptr;
  sample.value = std::strtod(number.c_str(), &rest);
  return *rest == '\0' ? std::optional(sample) : std::nullopt;
}

Exposition Parse(const std::string& text) {
  Exposition out;
  std::set<std::string> over;  // families whose samples have ended
  std::string family;
  if (text.empty() || text.back() != '\n') out.mistakes.emplace_back("the last line does not end");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string hash, what, name, rest;
    if (line.starts_with('#')) {
      in >> hash >> what >> name;
      std::getline(in >> std::ws, rest);
      if (what == "HELP") {
        over.insert(family);
        family = name;
        if (over.contains(name)) out.mistakes.push_back("twice: " + name);
      }
      if (family != name || !IsName(name, ":")) out.mistakes.push_back(line);
      if (!(what == "HELP" ? out.help : out.type).emplace(name, rest).second) out.mistakes.push_back("twice: " + line);
      continue;
    }
    const std::optional<Sample> sample = ParseSample(line);
    if (!sample || sample->name != family) out.mistakes.push_back(line);
    if (sample) out.samples.push_back(*sample);
  }
  return out;
}

double ValueOf(const Exposition& exposition, const std::string& name,
               const std::map<std::string, std::string>& labels = {}) {
  for (const Sample& sample : exposition.samples) {
    if (sample.name == name && sample.labels == labels) return sample.value;
  }
  ADD_FAILURE() << "no sample of " << name;
  return -1;
}

TEST(MetricsText, IsWhatPrometheusReads) {
  Runtime runtime = HostRuntime();
  Steps steps("steps");
  Executable exec = *runtime.Compile(steps.graph, {.slots = 1});
  for (int run = 0; run < 2; ++run) ASSERT_OK(steps.RunOnce(exec));
  const Metrics metrics = runtime.Metrics();
  const Exposition text = Parse(metrics.Prometheus());
  EXPECT_THAT(text.mistakes, IsEmpty());
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  std::set<std::string> families;
  for (const Sample& sample : text.samples) {
    EXPECT_TRUE(seen.emplace(sample.name, sample.labels).second) << sample.name << " is there twice";
    EXPECT_TRUE(sample.name.starts_with("penstock_")) << sample.name;
    families.insert(sample.name);
  }
  EXPECT_EQ(families.size(), text.type.size());
  for (const std::string& family : families) {
    ASSERT_TRUE(text.type.contains(family) && text.help.contains(family)) << family;
    EXPECT_THAT(text.help.at(family), testing::EndsWith(".")) << family;
    EXPECT_EQ(text.type.at(family), family.ends_with("_total") ? "counter" : "gauge") << family;
  }
  EXPECT_EQ(ValueOf(text, "penstock_launches_total", {{"graph", "steps"}}), 2);
  EXPECT_EQ(ValueOf(text, "penstock_runs_total", {{"graph", "steps"}, {"result", "ok"}}), 2);
  EXPECT_EQ(ValueOf(text, "penstock_runs_total", {{"graph", "steps"}, {"result", "failed"}}), 0);
  EXPECT_EQ(ValueOf(text, "penstock_executables", {{"graph", "steps"}}), 1);
  EXPECT_EQ(ValueOf(text, "penstock_device_memory_bytes", {{"device", "host:0"}}),
            static_cast<double>(metrics.devices[0].memory_bytes));
  EXPECT_EQ(ValueOf(text, "penstock_pinned_budget_bytes"), static_cast<double>(metrics.pinned.budget));
  EXPECT_GE(ValueOf(text, "penstock_thread_cpu_seconds_total", {{"thread", "ps-worker"}}), 0);
  EXPECT_EQ(ValueOf(text, "penstock_device_lost"), 0);
}

TEST(MetricsText, HasEachNumberOfTheStruct) {
  Metrics metrics;
  metrics.graphs = {{.name = "g",
                     .executables = 1,
                     .compiled = 2,
                     .launches = 3,
                     .succeeded = 4,
                     .failed = 5,
                     .cancelled = 6,
                     .in_flight = 7,
                     .abandoned = 8,
                     .waiting = 9,
                     .slot_waits = 10,
                     .slot_wait_seconds = 0.125}};
  metrics.devices = {{"cuda:0", 11, 12}};
  metrics.threads = {{"ps-worker", 13, 1.5e-7}};
  metrics.pinned = {.in_use = 14, .peak = 15, .reserved = 16, .budget = 17, .slabs = 18, .waits = 19};
  metrics.staged_upload_bytes = 20;
  metrics.staged_download_bytes = 21;
  metrics.hostcalls = 22;
  metrics.graph_instantiations = 23;
  metrics.captures = 24;
  metrics.lost_spans = 25;
  metrics.lost = true;
  const Exposition text = Parse(metrics.Prometheus());
  EXPECT_THAT(text.mistakes, IsEmpty());
  std::multiset<double> values;
  for (const Sample& sample : text.samples) values.insert(sample.value);
  std::multiset<double> expected{0.125, 1.5e-7, 1};
  for (int n = 1; n <= 25; ++n) expected.insert(n);
  EXPECT_EQ(values, expected);
}

TEST(MetricsText, EscapesHostileNames) {
  const std::vector<std::string> names = {
      "quote\" back\\slash", "line\nend", "} 1\n# TYPE x gauge\nx 1", "<b>", "ä", ""};
  Metrics metrics;
  for (const std::string& name : names) metrics.graphs.push_back({.name = name, .launches = 1});
  const Exposition text = Parse(metrics.Prometheus());
  EXPECT_THAT(text.mistakes, IsEmpty());
  std::multiset<std::string> shown;
  for (const Sample& sample : text.samples) {
    if (sample.name == "penstock_launches_total") shown.insert(sample.labels.at("graph"));
  }
  EXPECT_EQ(shown, std::multiset<std::string>(names.begin(), names.end()));
}

// What names have in common once they can be shown is counted together, since no two samples may have the same labels.
TEST(MetricsText, NamesThatLookTheSameAreOneSample) {
  Runtime runtime = HostRuntime();
  Steps one("a\x01"), other("a\x02");
  Executable first = *runtime.Compile(one.graph, {.slots = 1}), second = *runtime.Compile(other.graph, {.slots = 1});
  ASSERT_OK(one.RunOnce(first));
  ASSERT_OK(other.RunOnce(second));
  const Exposition text = Parse(runtime.Metrics().Prometheus());
  EXPECT_THAT(text.mistakes, IsEmpty());
  EXPECT_EQ(ValueOf(text, "penstock_launches_total", {{"graph", "a\uFFFD"}}), 2);
}

}  // namespace
}  // namespace penstock::metrics_test
