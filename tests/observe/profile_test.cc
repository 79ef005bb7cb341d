// Profile: what is recorded of executables, runs and waits, and the JSON that it is written as.
#include "penstock/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "src/observe/profile_recorder.h"
#include "tests/support/asleep.h"
#include "tests/support/environment.h"
#include "tests/support/held_graph.h"
#include "tests/support/latch.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::profile_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};

constexpr int64_t kWords = 100;

class Profiles : public testing::Test {
 protected:
  // On a host device, with so many spans.
  static Runtime RuntimeOf(int64_t spans) {
    return *Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1, .profile_spans = spans});
  }
  void Declare(Graph& graph) {
    x_ = graph.InOut<int32_t>("x", kWords);
    line_ = __LINE__ + 1;
    graph.ParallelFor("first", kWords, AddOne{}, ReadWrite(x_)).Flops(2.5e9);
    graph.ParallelFor("second", kWords / 2, AddOne{}, ReadWrite(x_, Slice({0}, {kWords / 2})));
    graph.Host("look", [](std::span<const int32_t>) {}, Read(x_));
  }
  absl::Status RunOnce(Executable& exec) { return exec.Launch(exec.bindings().Set(x_, memory_))->Wait(); }
  static std::vector<Span> SpansOf(const Profile& profile, SpanKind kind) {
    std::vector<Span> spans;
    for (const Span& span : profile.spans) {
      if (span.kind == kind) spans.push_back(span);
    }
    return spans;
  }

  const ModeScope mode_{""};
  BufferHandle<int32_t> x_;
  int line_ = 0;
  std::vector<int32_t> memory_ = std::vector<int32_t>(kWords, 1);
};

TEST_F(Profiles, HaveThePlanOfEachExecutable) {
  Runtime runtime = RuntimeOf(1000);
  const int line = __LINE__ + 1;
  Graph graph("profiled");
  Declare(graph);
  Executable exec = *runtime.Compile(graph, {.slots = 3, .mode = Mode::kStream});
  ASSERT_OK(RunOnce(exec));
  const Profile profile = runtime.Profile();
  ASSERT_EQ(profile.devices.size(), 1u);
  EXPECT_EQ(profile.devices[0].name, "host:0");
  ASSERT_EQ(profile.graphs.size(), 1u);
  const Profile::Graph& of = profile.graphs[0];
  EXPECT_EQ(of.name, "profiled");
  EXPECT_EQ(of.where, "profile_test.cc:" + std::to_string(line));
  EXPECT_EQ(of.slots, 3);
  EXPECT_EQ(of.launches, 1);
  EXPECT_EQ(of.report.mode, Mode::kStream);
  EXPECT_GE(of.slot_device_bytes, kWords * 4);
  std::map<std::string, Profile::Node> nodes;
  std::map<std::string, std::set<std::string>> after;
  for (const Profile::Node& node : of.nodes) {
    nodes[node.name] = node;
    for (const int before : node.after) after[node.name].insert(of.nodes[static_cast<size_t>(before)].name);
  }
  EXPECT_EQ(nodes["first"].kind, "parallel for");
  EXPECT_EQ(nodes["first"].where, "profile_test.cc:" + std::to_string(line_));
  EXPECT_EQ(nodes["first"].read_bytes, kWords * 4);
  EXPECT_EQ(nodes["first"].written_bytes, kWords * 4);
  EXPECT_EQ(nodes["first"].flops, 2.5e9);
  EXPECT_EQ(nodes["second"].flops, 0);
  EXPECT_EQ(nodes["upload x"].flops, 0);
  EXPECT_EQ(nodes["second"].written_bytes, kWords * 4 / 2);
  EXPECT_EQ(nodes["second"].device, 0);
  EXPECT_EQ(of.lanes[static_cast<size_t>(nodes["second"].lane)].kind, "compute");
  EXPECT_EQ(nodes["look"].device, -1);
  EXPECT_EQ(nodes["look"].lane, -1);
  EXPECT_EQ(nodes["look"].written_bytes, 0);
  ASSERT_EQ(nodes.count("upload x"), 1u);
  EXPECT_EQ(nodes["upload x"].where, "");
  EXPECT_EQ(nodes["upload x"].written_bytes, kWords * 4);
  EXPECT_THAT(after["first"], ElementsAre("upload x"));
  EXPECT_THAT(after["second"], ElementsAre("first"));
}

// Each run, launch and node has its span, which says whose it is.
TEST_F(Profiles, HaveASpanOfEachRunLaunchAndNode) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    constexpr int64_t kRuns = 3;
    Runtime runtime = RuntimeOf(1000);
    Graph graph("profiled");
    Declare(graph);
    Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = mode});
    for (int64_t r = 0; r < kRuns; ++r) ASSERT_OK(RunOnce(exec));
    const Profile profile = runtime.Profile();
    EXPECT_EQ(profile.lost_spans, 0);
    std::map<int64_t, Span> runs;
    for (const Span& span : SpansOf(profile, SpanKind::kRun)) runs[span.run] = span;
    EXPECT_EQ(runs.size(), size_t{kRuns});
    const std::vector<Span> launches = SpansOf(profile, SpanKind::kSubmit);
    EXPECT_EQ(launches.size(), size_t{kRuns});
    for (const Span& launch : launches) EXPECT_EQ(launch.begin_us, runs[launch.run].begin_us);
    std::map<int64_t, std::set<std::string>> ran;
    for (const Span& span : profile.spans) {
      ASSERT_EQ(span.executable, profile.graphs[0].executable);
      EXPECT_EQ(span.slot, 0);
      if (span.node < 0) continue;
      EXPECT_EQ(span.name, profile.graphs[0].nodes[static_cast<size_t>(span.node)].name);
      ran[span.run].insert(span.name);
      EXPECT_LE(span.begin_us, span.end_us);
      if (span.device >= 0) continue;  // the clocks of devices differ by the time of a poll
      EXPECT_LE(span.end_us, runs[span.run].end_us) << span.name;
    }
    EXPECT_EQ(ran.size(), size_t{kRuns});
    for (const auto& [run, names] : ran) {
      EXPECT_THAT(names, testing::IsSupersetOf({"first", "second", "look"})) << run;
    }
    EXPECT_THAT(SpansOf(profile, SpanKind::kWait), IsEmpty());
  }
}

TEST_F(Profiles, HaveAWaitOfALaunchThatFindsNoSlot) {
  HeldGraph held;
  Runtime runtime = RuntimeOf(1000);
  Executable exec = *runtime.Compile(held.graph, {.slots = 1, .mode = Mode::kStream});
  std::vector<int32_t> words(4);
  const Bindings io = exec.bindings().Set(held.x, words);
  auto first = exec.Launch(io);
  ASSERT_OK(first.status());
  ASSERT_TRUE(held.latch.AwaitArrived());
  std::atomic<pid_t> thread = 0;
  std::thread second([&] {
    thread = gettid();
    EXPECT_OK(exec.Launch(io)->Wait());
  });
  while (thread == 0) std::this_thread::yield();
  EXPECT_TRUE(test_support::FallsAsleep(thread));
  held.latch.Open();
  second.join();
  ASSERT_OK(first->Wait());
  const Profile profile = runtime.Profile();
  const std::vector<Span> waits = SpansOf(profile, SpanKind::kWait), runs = SpansOf(profile, SpanKind::kRun);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(waits[0].executable, profile.graphs[0].executable);
  EXPECT_LE(waits[0].end_us, std::max(runs[0].begin_us, runs[1].begin_us));
}

// Adds one to the State, once it may.
struct AddWhenOpen {
  driver::Latch* latch;
  void operator()(int64_t, View<int32_t> sum) const {
    latch->Arrive();
    ++sum[0];
  }
};

// The second run's device waits until the first has added; then the State is the second's.
TEST_F(Profiles, HaveAWaitForAStateThatAnotherRunUses) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    Runtime runtime =
        *Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 2, .profile_spans = 1000});
    const State<int32_t> sum = *runtime.MakeState<int32_t>("sum", 1);
    driver::Latch latch;
    Graph graph("counts");
    graph.ParallelFor("add", 1, AddWhenOpen{&latch}, ReadWrite(graph.Use(sum)));
    Executable exec = *runtime.Compile(graph, {.slots = 2, .mode = mode});
    auto first = *exec.Launch(exec.bindings());
    ASSERT_TRUE(latch.AwaitArrived());
    auto second = *exec.Launch(exec.bindings());
    EXPECT_TRUE(test_support::LibraryFallsAsleep());
    latch.Open();
    ASSERT_OK(first.Wait());
    ASSERT_OK(second.Wait());
    const Profile profile = runtime.Profile();
    const std::vector<Span> waits = SpansOf(profile, SpanKind::kWait);
    std::map<int64_t, Span> adds;
    for (const Span& span : SpansOf(profile, SpanKind::kKernel)) adds[span.run] = span;
    ASSERT_EQ(adds.size(), 2u);
    ASSERT_EQ(waits.size(), 1u) << testing::PrintToString(mode);
    EXPECT_EQ(waits[0].name, "wait for state sum");
    EXPECT_EQ(waits[0].run, 1);
    EXPECT_EQ(waits[0].device, 0);
    if (mode == Mode::kGraph) continue;  // the times of its nodes are by another clock, off by the time of a poll
    EXPECT_LT(waits[0].begin_us, adds[0].end_us);
    EXPECT_GE(waits[0].end_us, adds[0].end_us);
    EXPECT_LE(waits[0].end_us, adds[1].begin_us);
  }
}

// Of a pipeline that is there, and of the same when it has gone.
TEST_F(Profiles, HaveThePipelinesAndASpanOfEachCallOfAHostStage) {
  Runtime runtime = RuntimeOf(1000);
  Graph graph("work");
  Declare(graph);
  Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kStream});
  Profile profile;
  {
    Stages<int> stages;
    stages.Host("decode", [](int& item) { return item == 3 ? absl::DataLossError("three") : absl::OkStatus(); },
                {.workers = 2});
    stages.Run("work", exec, [&](Item<int>& item) { item.Set(x_, memory_); });
    Pipeline<int> pipeline = *Pipeline<int>::Create(std::move(stages), {.window = 4});
    for (int i = 0; i < 4; ++i) ASSERT_OK(pipeline.Push(int{i}, {}, {.id = static_cast<uint64_t>(i)}));
    for (int i = 0; i < 3; ++i) EXPECT_OK(pipeline.Pop().status());
    profile = runtime.Profile();
    ASSERT_EQ(profile.pipelines.size(), 1u);
    EXPECT_EQ(profile.pipelines[0].stats.inside, 1);
    EXPECT_EQ(profile.pipelines[0].end_us, profile.length_us);
    EXPECT_EQ(pipeline.Pop().status().code(), absl::StatusCode::kDataLoss);
  }
  const double last = profile.length_us;
  profile = runtime.Profile();
  ASSERT_EQ(profile.pipelines.size(), 1u);
  const Profile::Pipeline& of = profile.pipelines[0];
  EXPECT_GT(of.begin_us, 0);
  EXPECT_GT(of.end_us, last);
  EXPECT_LE(of.end_us, profile.length_us);
  EXPECT_EQ(of.stats.accepted, 4);
  EXPECT_EQ(of.stats.failed, 1);
  ASSERT_EQ(of.stats.stages.size(), 2u);
  EXPECT_EQ(of.stats.stages[0].name, "decode");
  EXPECT_EQ(of.stats.stages[0].capacity, 2);
  std::set<int64_t> items;
  for (const Span& span : SpansOf(profile, SpanKind::kHost)) {
    if (span.name != "decode") continue;
    EXPECT_THAT(span.track, testing::AnyOf("stage decode thread 0", "stage decode thread 1"));
    EXPECT_EQ(span.executable, -1);
    EXPECT_LE(of.begin_us, span.begin_us);
    EXPECT_LE(span.begin_us, span.end_us);
    EXPECT_LE(span.end_us, of.end_us);
    items.insert(span.run);
  }
  EXPECT_THAT(items, ElementsAre(0, 1, 2, 3));
}

TEST_F(Profiles, RecordOnlyWhatIsAskedFor) {
  Runtime runtime = RuntimeOf(0);
  Graph graph("asked"), other("not asked");
  Declare(graph);
  Executable exec = *runtime.Compile(graph, {.slots = 1, .profile = true});
  ASSERT_OK(RunOnce(exec));
  Declare(other);
  Executable unrecorded = *runtime.Compile(other, {.slots = 1});
  ASSERT_OK(RunOnce(unrecorded));
  const Profile profile = runtime.Profile();
  ASSERT_EQ(profile.graphs.size(), 1u);
  EXPECT_EQ(profile.graphs[0].name, "asked");
  EXPECT_EQ(SpansOf(profile, SpanKind::kRun).size(), 1u);
}

// What of an executable is known when it goes stays known, and so do its spans, by the runtime's clock, also if its own
// trace goes.
TEST_F(Profiles, KeepExecutablesThatHaveGone) {
  auto own = Trace::Create();  // its clock began before the runtime's
  Runtime runtime = RuntimeOf(1000);
  {
    Graph graph("gone");
    Declare(graph);
    Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kStream, .trace = own});
    for (int r = 0; r < 2; ++r) ASSERT_OK(RunOnce(exec));
  }
  const double first_us = own->spans()[0].begin_us;
  const size_t spans = own->spans().size();
  EXPECT_EQ(runtime.Profile().spans.size(), spans);
  own.reset();
  const Profile profile = runtime.Profile();
  ASSERT_EQ(profile.graphs.size(), 1u);
  EXPECT_EQ(profile.graphs[0].launches, 2);
  EXPECT_EQ(profile.spans.size(), spans);
  const std::vector<Span> runs = SpansOf(profile, SpanKind::kRun);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_GE(runs[0].begin_us, 0);
  EXPECT_LT(runs[0].begin_us, first_us);
  EXPECT_LE(runs[1].end_us, profile.length_us);
}

// What the profile itself cost is in it, where that is noticeable.
TEST_F(Profiles, RecordWhatRecordingTook) {
  Runtime runtime = RuntimeOf(100'000);
  Graph graph("long");
  x_ = graph.InOut<int32_t>("x", kWords);
  for (int n = 0; n < 1000; ++n) graph.ParallelFor(Name("step", n), kWords, AddOne{}, ReadWrite(x_));
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  ASSERT_OK(RunOnce(exec));
  const Profile profile = runtime.Profile();
  const auto is_recording = [](const Span& span) { return span.name == "record a run of long"; };
  ASSERT_EQ(std::ranges::count_if(profile.spans, is_recording), 1);
  const Span& recording = *std::ranges::find_if(profile.spans, is_recording);
  const std::vector<Span> runs = SpansOf(profile, SpanKind::kRun);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_LE(runs[0].end_us, recording.end_us);
  EXPECT_GE(runs[0].end_us, recording.begin_us);
  EXPECT_EQ(recording.node, -1);
}

struct Fixed final : observe::ProfiledGraph {
  void UpdateProfile(Profile::Graph& graph) const override { graph.launches = 7; }
};

// Graphs that exist are kept, whatever their number of nodes.
TEST_F(Profiles, LetGoOfTheOldestGraphsBeyondANumberOfNodes) {
  observe::ProfileRecorder recorder(10);
  recorder.Start(10, "");
  const Fixed source;
  for (int64_t e = 0; e < 4; ++e) {
    Profile::Graph graph;
    graph.executable = e;
    graph.nodes.resize(4);
    recorder.Add(std::move(graph), source, recorder.trace());
  }
  EXPECT_EQ(recorder.Take({}).graphs.size(), 4u);
  for (const int64_t e : {1, 3, 2}) recorder.End(e);
  const Profile profile = recorder.Take({});
  EXPECT_EQ(profile.lost_graphs, 2);
  std::vector<int64_t> left;
  for (const Profile::Graph& graph : profile.graphs) left.push_back(graph.executable);
  EXPECT_THAT(left, ElementsAre(0, 2));
  for (const Profile::Graph& graph : profile.graphs) EXPECT_EQ(graph.launches, 7);
}

TEST_F(Profiles, AreJsonWhateverTheNames) {
  const std::string hostile = "</script>\"\\\n\x01\xff";
  Profile profile;
  profile.length_us = std::numeric_limits<double>::infinity();
  profile.devices.push_back({.name = hostile, .description = "d", .is_cuda = true, .memory_bytes = INT64_MAX});
  Profile::Graph graph;
  graph.name = hostile;
  graph.executable = 5;
  graph.lanes.push_back({0, "upload"});
  graph.nodes.push_back({.name = hostile, .kind = "fill", .where = "a.cc:1", .after = {0, 3}, .read_bytes = 12});
  graph.report.notes = {hostile};
  graph.report.loops = {{.name = hostile, .iterations = 3, .iteration_us = 1.5}};
  profile.graphs.push_back(graph);
  profile.spans.push_back({.name = hostile,
                           .track = "t",
                           .kind = SpanKind::kWait,
                           .begin_us = 1.25,
                           .end_us = std::numeric_limits<double>::quiet_NaN(),
                           .run = 4,
                           .executable = 5,
                           .node = 6,
                           .slot = 7});
  profile.spans.push_back({.name = "other", .track = "t", .kind = SpanKind::kRun});
  profile.pipelines.push_back({.begin_us = 1,
                               .end_us = 2.5,
                               .stats = {.stages = {{.name = hostile, .capacity = 3, .done = 4, .busy = 0.25}},
                                         .engines = {},
                                         .threads = {{hostile, 0.5}},
                                         .delivered = 6,
                                         .bottleneck = -1}});
  const json read = json::parse(profile.Json());
  const std::string escaped = "</script>\"\\\n\x01\xEF\xBF\xBD";
  EXPECT_EQ(read["format"], "penstock profile");
  EXPECT_EQ(read["version"], 1);
  EXPECT_EQ(read["length_us"], 0);
  EXPECT_EQ(read["devices"][0]["name"], escaped);
  EXPECT_EQ(read["devices"][0]["memory_bytes"], INT64_MAX);
  EXPECT_EQ(read["graphs"][0]["name"], escaped);
  EXPECT_EQ(read["graphs"][0]["nodes"][0]["name"], escaped);
  EXPECT_EQ(read["graphs"][0]["nodes"][0]["after"], json::array({0, 3}));
  EXPECT_EQ(read["graphs"][0]["nodes"][0]["read_bytes"], 12);
  EXPECT_EQ(read["graphs"][0]["lanes"][0]["kind"], "upload");
  EXPECT_EQ(read["graphs"][0]["report"]["notes"][0], escaped);
  EXPECT_EQ(read["graphs"][0]["report"]["loops"][0]["iteration_us"], 1.5);
  const json& pipeline = read["pipelines"][0];
  EXPECT_EQ(pipeline["end_us"], 2.5);
  EXPECT_EQ(pipeline["stages"][0]["name"], escaped);
  EXPECT_EQ(pipeline["stages"][0]["capacity"], 3);
  EXPECT_EQ(pipeline["stages"][0]["done"], 4);
  EXPECT_EQ(pipeline["stages"][0]["busy"], 0.25);
  EXPECT_EQ(pipeline["threads"][0]["name"], escaped);
  EXPECT_EQ(pipeline["threads"][0]["busy"], 0.5);
  EXPECT_EQ(pipeline["delivered"], 6);
  EXPECT_EQ(pipeline["bottleneck"], -1);
  ASSERT_EQ(read["spans"].size(), 2u);
  std::map<std::string, json> span;
  for (size_t c = 0; c < read["columns"].size(); ++c) span[read["columns"][c]] = read["spans"][0][c];
  EXPECT_EQ(read["texts"][span["name"].get<size_t>()], escaped);
  EXPECT_EQ(read["texts"][span["track"].get<size_t>()], "t");
  EXPECT_EQ(span["kind"], "wait");
  EXPECT_EQ(span["begin_us"], 1.25);
  EXPECT_EQ(span["end_us"], 0);
  EXPECT_EQ(span["executable"], 5);
  EXPECT_EQ(span["run"], 4);
  EXPECT_EQ(span["node"], 6);
  EXPECT_EQ(span["slot"], 7);
  EXPECT_EQ(span["device"], -1);
  EXPECT_EQ(read["texts"].size(), 3u);
}

json ReadFile(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// Each runtime of the process writes a file of its own when it ends.
TEST_F(Profiles, AreWrittenWhereTheEnvironmentSays) {
  static int repeats = 0;  // the process counts the profiles of a path
  const std::string path =
      testing::TempDir() + "profile_test." + std::to_string(getpid()) + "." + std::to_string(++repeats);
  const EnvironmentScope profile("PENSTOCK_PROFILE", path);
  for (const std::string& written : {path, path + ".2"}) {
    std::filesystem::remove(written);
    {
      Runtime runtime = RuntimeOf(0);
      Graph graph("written");
      Declare(graph);
      Executable exec = *runtime.Compile(graph, {.slots = 1});
      ASSERT_OK(RunOnce(exec));
      EXPECT_FALSE(std::filesystem::exists(written));
    }
    const json read = ReadFile(written);
    EXPECT_EQ(read["graphs"][0]["name"], "written");
    EXPECT_EQ(read["graphs"][0]["launches"], 1);
    EXPECT_FALSE(read["spans"].empty());
    std::filesystem::remove(written);
  }
}

// So that programs started by one script do not write one file.
TEST_F(Profiles, MayHaveTheNumberOfTheirProcessInTheirPath) {
  const std::string folder = testing::TempDir() + "profile_test." + std::to_string(getpid()) + ".p";
  std::filesystem::create_directory(folder);
  const EnvironmentScope profile("PENSTOCK_PROFILE", folder + "/100%%p.%p");
  {
    Runtime runtime = RuntimeOf(0);
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/100%p." + std::to_string(getpid())));
  std::filesystem::remove_all(folder);
}

// Before anything is recorded that would be lost.
TEST_F(Profiles, ThatCouldNotBeWrittenAreRefused) {
  for (const char* variable : {"PENSTOCK_PROFILE", "PENSTOCK_MEASURE"}) {
    for (const std::string& path :
         {testing::TempDir() + "no such folder/app", std::string("app.%q"), std::string("%")}) {
      const EnvironmentScope scope(variable, path);
      const std::string refused(Runtime::Create({.devices = "host"}).status().message());
      EXPECT_THAT(refused, AllOf(HasSubstr(variable), HasSubstr(path)));
    }
  }
}

TEST_F(Profiles, ThatCannotBeWrittenInTheEndAreLogged) {
  const std::string folder = testing::TempDir() + "no such folder " + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const EnvironmentScope profile("PENSTOCK_PROFILE", folder + "/app.profile");
  std::string logged;
  {
    Runtime runtime =
        *Runtime::Create({.devices = "host", .log = [&](LogLevel, std::string_view text) { logged += text; }});
    std::filesystem::remove(folder);
  }
  EXPECT_THAT(logged, HasSubstr("PENSTOCK_PROFILE: profile"));
  EXPECT_THAT(logged, HasSubstr(folder + "/app.profile"));
}

TEST_F(Profiles, SayWhatTheProgramLeftOpen) {
  Runtime runtime = RuntimeOf(0);
  Graph open("open"), stated("stated");
  Declare(open);
  Executable first = *runtime.Compile(open, {.slots = 2, .profile = true});
  Declare(stated);
  Executable second = *runtime.Compile(stated, {.mode = Mode::kStream, .profile = true});
  const Profile profile = runtime.Profile();
  ASSERT_TRUE(profile.open.has_value());
  EXPECT_THAT(*profile.open, testing::Contains("graph \"open\".mode"));
  EXPECT_THAT(*profile.open, testing::Contains("graph \"stated\".slots"));
  EXPECT_THAT(*profile.open, testing::Not(testing::Contains("graph \"open\".slots")));
  EXPECT_EQ(nlohmann::json::parse(profile.Json()).at("open"), *profile.open);
}

TEST_F(Profiles, OfANegativeNumberOfSpansAreRefused) {
  const absl::Status refused = Runtime::Create({.devices = "host", .profile_spans = -1}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("profile_spans = -1"));
}

// A trial would compare runs whose nodes are timed; so the mode that should be faster is kept.
TEST_F(Profiles, DecideTheModeWithoutATrial) {
  Runtime runtime = RuntimeOf(1000);
  Graph graph("chain");
  x_ = graph.InOut<int32_t>("x", kWords);
  for (int n = 0; n < 200; ++n) graph.ParallelFor(Name("node", n), kWords, AddOne{}, ReadWrite(x_));
  Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kAuto});
  ASSERT_OK(RunOnce(exec));
  const SubmissionReport report = exec.submission_report();
  EXPECT_EQ(report.mode, Mode::kGraph);
  EXPECT_EQ(report.graph_launches, 1);
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("no mode is tried")));
  EXPECT_THAT(memory_, testing::Each(201));
}

// Streams should be faster for one node, and are then all that there is.
TEST_F(Profiles, HaveSpansOfRunsOnStreamsUnderAuto) {
  Runtime runtime = RuntimeOf(1000);
  Graph graph("fill");
  const auto x = graph.Output<int32_t>("x", kWords, kDevice);
  graph.Fill("fill", x, 7);
  Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = Mode::kAuto});
  const DeviceBuffer<int32_t> memory = *runtime.MakeDeviceBuffer<int32_t>(kWords);
  ASSERT_OK(exec.Launch(exec.bindings().Set(x, memory))->Wait());
  EXPECT_EQ(exec.submission_report().mode, Mode::kStream);
  const Profile profile = runtime.Profile();
  const std::vector<Span> kernels = SpansOf(profile, SpanKind::kKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "fill");
}

struct IsBelowFive {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> x) const { return x[0] < 5; }
};

// The bodies of loops that the host drives have plans and spans of their own.
TEST_F(Profiles, HaveTheBodiesOfLoopsThatTheHostDrives) {
  Runtime runtime = RuntimeOf(1000);
  Graph graph("loop");
  x_ = graph.InOut<int32_t>("x", kWords);
  graph.While("grow", When(IsBelowFive{}, Read(x_)), {.max = 100},
              [&](Graph& in) { in.ParallelFor("in the body", kWords, AddOne{}, ReadWrite(x_)); });
  Executable exec = *runtime.Compile(graph, {.slots = 1, .constructs = Lowering::kHost});
  ASSERT_OK(RunOnce(exec));
  EXPECT_EQ(memory_[0], 5);
  const Profile profile = runtime.Profile();
  std::map<int64_t, const Profile::Graph*> graphs;
  for (const Profile::Graph& of : profile.graphs) graphs[of.executable] = &of;
  EXPECT_EQ(profile.graphs[0].name, "loop");
  int bodies = 0;
  for (const Span& span : profile.spans) {
    if (span.name != "grow/in the body") continue;
    ++bodies;
    ASSERT_EQ(graphs.count(span.executable), 1u);
    EXPECT_EQ(graphs[span.executable]->nodes[static_cast<size_t>(span.node)].name, span.name);
  }
  EXPECT_EQ(bodies, 4);
}

TEST_F(Profiles, HaveTheStepsOfAGraphCache) {
  Runtime runtime = RuntimeOf(1000);
  GraphCache cache(runtime);
  for (int r = 0; r < 2; ++r) {
    auto run = cache.Launch([&](Graph& graph, Bindings& io) {
      const auto x = graph.InOut<int32_t>("x", kWords);
      graph.ParallelFor("step", kWords, AddOne{}, ReadWrite(x));
      io.Set(x, memory_);
    });
    ASSERT_OK(run->Wait());
  }
  const Profile profile = runtime.Profile();
  ASSERT_EQ(profile.graphs.size(), 1u);
  EXPECT_EQ(profile.graphs[0].launches, 2);
  EXPECT_EQ(SpansOf(profile, SpanKind::kRun).size(), 2u);
}

// A Copy of a part moves the part, whichever of the buffers is larger.
TEST_F(Profiles, HaveTheBytesThatCopiesMove) {
  Runtime runtime = RuntimeOf(1000);
  Graph graph("copies");
  const auto in = graph.Input<int32_t>("in", kWords, kDevice), out = graph.InOut<int32_t>("out", kWords, kDevice);
  const auto small = graph.Buffer<int32_t>("small", 10);
  graph.Copy("out of", Read(in, Slice({5}, {10})), Write(small));
  graph.ParallelFor("add", 10, AddOne{}, ReadWrite(small));
  graph.Copy("into", Read(small), Write(out, Slice({20}, {10})));
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  std::map<std::string, int64_t> bytes;
  const Profile profile = runtime.Profile();
  for (const Profile::Node& node : profile.graphs[0].nodes) bytes[node.name] = node.written_bytes;
  EXPECT_EQ(bytes["out of"], 40);
  EXPECT_EQ(bytes["into"], 40);
}

}  // namespace
}  // namespace penstock::profile_test
