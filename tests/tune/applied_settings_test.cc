// What settings do to a runtime, executables and pipelines, and what a program that states its choices keeps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "src/runtime/core/internals.h"
#include "src/runtime/core/runtime_core.h"
#include "src/tune/applied_settings.h"
#include "src/tune/measurement_text.h"
#include "tests/support/environment.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::applied_settings_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, float* x) const { x[i] += 1; }
};

constexpr int64_t kSize = int64_t{1} << 17;  // of memory that is not pinned: it is staged

// A chain of nodes, each of one element more than a warp, in graph `name`.
struct Declared {
  explicit Declared(const std::string& name) : graph(name), x(graph.InOut<float>("x", kSize)) {
    for (int n = 0; n < 3; ++n) graph.ParallelFor(Name("add", n), kSize, AddOne{}, ReadWrite(x));
  }
  Graph graph;
  BufferHandle<float> x;
};

Runtime RuntimeWith(const Settings& settings, RuntimeOptions options = {}) {
  options.devices = "host";
  options.settings = settings;
  absl::StatusOr<Runtime> runtime = Runtime::Create(options);
  EXPECT_OK(runtime.status());
  return *std::move(runtime);
}

Settings SettingsFrom(const std::string& lines) {
  const absl::StatusOr<Settings> settings = Settings::FromText("penstock settings 1\n" + lines + "end\n");
  EXPECT_OK(settings.status());
  return *settings;
}

int WorkersOf(const Runtime& runtime) { return detail::Internals<Runtime>::CoreOf(runtime)->workers().threads(); }
int StagingThreadsOf(const Runtime& runtime) {
  runtime::RuntimeCore& core = *detail::Internals<Runtime>::CoreOf(runtime);
  return (*core.staging().For(core.devices()[0]))->threads();
}

class AppliedSettings : public testing::Test {
 protected:
  const ModeScope mode_{""};  // those of the test count
};

TEST_F(AppliedSettings, SetTheSlotsOfGraphsByName) {
  Runtime runtime = RuntimeWith(SettingsFrom("graph \"a\".slots = 5\n"));
  EXPECT_EQ(runtime.Compile(Declared("a").graph)->slots(), 5);
  EXPECT_EQ(runtime.Compile(Declared("a").graph, {.slots = 3})->slots(), 3);
  EXPECT_NE(runtime.Compile(Declared("b").graph)->slots(), 5);
}

TEST_F(AppliedSettings, SetTheModeOfGraphsByName) {
  Runtime runtime = RuntimeWith(SettingsFrom("graph \"a\".mode = graph\ngraph \"b\".mode = stream\n"));
  EXPECT_EQ(runtime.Compile(Declared("a").graph)->submission_report().mode, Mode::kGraph);
  EXPECT_EQ(runtime.Compile(Declared("b").graph)->submission_report().mode, Mode::kStream);
  EXPECT_EQ(runtime.Compile(Declared("a").graph, {.mode = Mode::kStream})->submission_report().mode, Mode::kStream);
  const EnvironmentScope variable("PENSTOCK_MODE", "stream");
  EXPECT_EQ(runtime.Compile(Declared("a").graph)->submission_report().mode, Mode::kStream);
}

TEST_F(AppliedSettings, SetLanesAndRegionsOfGraphsByName) {
  Graph graph("wide");
  for (int n = 0; n < 4; ++n) {
    auto x = graph.Buffer<float>(Name("x", n), 8);
    graph.ParallelFor(Name("one", n), 8, [](int64_t, float* y) { *y = 0; }, Write(x));
    graph.ParallelFor(Name("two", n), 8, AddOne{}, ReadWrite(x));
  }
  Runtime runtime = RuntimeWith(
      SettingsFrom("graph \"wide\".max_lanes = 1\ngraph \"wide\".resident = on\ngraph \"wide\".mode = graph\n"));
  const absl::StatusOr<Executable> exec = runtime.Compile(graph);
  ASSERT_OK(exec.status());
  EXPECT_GT(exec->submission_report().regions, 0);
  EXPECT_THAT(exec->PlanText(), HasSubstr("lane 0"));
  EXPECT_THAT(exec->PlanText(), Not(HasSubstr("lane 1")));
}

TEST_F(AppliedSettings, ReachExecutablesOfACache) {
  Runtime runtime = RuntimeWith(SettingsFrom("graph \"step\".mode = graph\n"));
  GraphCache cache(runtime);
  std::vector<float> x(kSize);
  const absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& graph, Bindings& io) {
    auto handle = graph.InOut<float>("x", kSize);
    graph.ParallelFor("add", kSize, AddOne{}, ReadWrite(handle));
    io.Set(handle, x);
  });
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(cache.submission_report().mode, Mode::kGraph);
}

TEST_F(AppliedSettings, SetTheThreadsOfARuntime) {
  const Settings settings = SettingsFrom("runtime.workers = 5\nruntime.staging_threads = 3\n");
  {
    Runtime runtime = RuntimeWith(settings);
    EXPECT_EQ(WorkersOf(runtime), 5);
    EXPECT_EQ(StagingThreadsOf(runtime), 3);
  }
  Runtime runtime = RuntimeWith(settings, {.workers = 4, .staging = {.threads = 1}});
  EXPECT_EQ(WorkersOf(runtime), 4);
  EXPECT_EQ(StagingThreadsOf(runtime), 1);
}

// Workers of its stages, and the window.
std::pair<std::vector<int>, int> SizesOf(Runtime& runtime, int window) {
  Declared declared("middle");
  Stages<NoValue> stages;
  stages.Host("open", [](Item<NoValue>&) {}, {.workers = 0});
  stages.Run("middle", *runtime.Compile(declared.graph, {.slots = 2}));
  stages.Host("one", [](Item<NoValue>&) {});
  absl::StatusOr<Pipeline<NoValue>> pipeline = Pipeline<NoValue>::Create(std::move(stages), {.window = window});
  EXPECT_OK(pipeline.status());
  const PipelineStats stats = pipeline->stats();
  return {{stats.stages.front().capacity, stats.stages.back().capacity}, pipeline->window()};
}

TEST_F(AppliedSettings, SetThePlacesOfPipelines) {
  const std::string lines = "stage \"open\".workers = 3\nstage \"one\".workers = 7\npipeline \"middle\".window = 9\n";
  Runtime runtime = RuntimeWith(SettingsFrom(lines)), without = RuntimeWith({});
  EXPECT_EQ(SizesOf(runtime, 0), std::pair(std::vector<int>({3, 1}), 9));
  EXPECT_EQ(SizesOf(runtime, 4).second, 4);
  EXPECT_EQ(SizesOf(without, 0), std::pair(std::vector<int>({1, 1}), 8));
}

TEST_F(AppliedSettings, SetTheSlotsOfAPipelinesGraph) {
  Runtime runtime = RuntimeWith(SettingsFrom("graph \"a\".slots = 5\n"));
  const auto slots_of = [&](const std::string& name, PipelineOptions options) {
    absl::StatusOr<Pipeline<NoValue>> pipeline = Pipeline<NoValue>::Create(runtime, Declared(name).graph, options);
    EXPECT_OK(pipeline.status());
    return pipeline->executable(name)->slots();
  };
  EXPECT_EQ(slots_of("a", {}), 5);
  EXPECT_EQ(slots_of("a", {.slots_per_device = 2}), 2);
  EXPECT_EQ(slots_of("b", {}), 3);
}

TEST_F(AppliedSettings, AreListedWhereTheProgramLeftThemOpen) {
  Runtime runtime = RuntimeWith({}, {.workers = 2, .staging = {.chunk_bytes = 1 << 20}});
  ASSERT_OK(runtime.Compile(Declared("a \"b\"").graph, {.slots = 3, .resident = Resident::kAuto}).status());
  EXPECT_THAT(runtime.Measured().open,
              ElementsAre("graph \"a \\\"b\\\"\".max_lanes", "graph \"a \\\"b\\\"\".mode", "runtime.staging_threads"));
  ASSERT_OK(runtime.Compile(Declared("a \"b\"").graph).status());  // once is enough
  EXPECT_THAT(runtime.Measured().open, Contains("graph \"a \\\"b\\\"\".slots"));
  const EnvironmentScope variable("PENSTOCK_MODE", "stream");
  ASSERT_OK(runtime.Compile(Declared("c").graph).status());
  EXPECT_THAT(runtime.Measured().open, Not(Contains("graph \"c\".mode")));
}

// As those of a file are.
TEST_F(AppliedSettings, AreRefusedWithTheirLine) {
  Settings settings;
  settings.graphs["a"].slots = 0;
  const absl::Status refused = Runtime::Create({.devices = "host", .settings = settings}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("RuntimeOptions::settings: line 2: 'graph \"a\".slots': it is '0'"));
}

TEST_F(AppliedSettings, ListNoEndOfNames) {
  tune::AppliedSettings applied{Settings()};
  for (int i = 0; i < 10'010; ++i) applied.StageWorkers("stage " + std::to_string(i), 0);
  EXPECT_EQ(applied.open().size(), 10'000u);
}

class SettingsVariable : public AppliedSettings {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "applied_settings_test." + std::to_string(getpid());
  const std::string file_ = folder_ + "/app.settings";
  const EnvironmentScope variable_{"PENSTOCK_SETTINGS", file_};
};

TEST_F(SettingsVariable, GoesOverThoseOfTheProgram) {
  ASSERT_OK(SettingsFrom("graph \"a\".slots = 5\n").Write(file_));
  Runtime runtime = RuntimeWith(SettingsFrom("graph \"a\".slots = 4\ngraph \"b\".slots = 4\n"));
  EXPECT_EQ(runtime.Compile(Declared("a").graph)->slots(), 5);
  EXPECT_EQ(runtime.Compile(Declared("b").graph)->slots(), 4);
}

TEST_F(SettingsVariable, IsRefusedWithTheFilesLine) {
  std::ofstream(file_) << "penstock settings 1\nruntime.workers = many\nend\n";
  const absl::Status refused = Runtime::Create({.devices = "host"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("PENSTOCK_SETTINGS: settings file '" + file_ + "': line 2: "));
}

TEST_F(SettingsVariable, NamesInTheLogWhatTheProgramDoesNotHave) {
  ASSERT_OK(SettingsFrom("graph \"a\".slots = 5\ngraph \"typo\".slots = 5\n").Write(file_));
  std::string log;
  {
    Runtime runtime = RuntimeWith({}, {.log_level = LogLevel::kDebug, .log = [&](LogLevel, std::string_view text) {
                                         log += std::string(text) + "\n";
                                       }});
    ASSERT_OK(runtime.Compile(Declared("a").graph).status());
  }
  EXPECT_THAT(log, HasSubstr("settings: graph \"typo\" was set"));
  EXPECT_THAT(log, Not(HasSubstr("graph \"a\"")));
}

TEST_F(AppliedSettings, AreListedInAFileOfEachProcess) {
  const std::string folder = testing::TempDir() + "applied_settings_test.100%p." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::string pattern = folder + "/measured.%p";
  pattern.replace(folder.rfind("%p"), 2, "%%p");
  const EnvironmentScope variable("PENSTOCK_MEASURE", pattern);
  {
    Runtime runtime = RuntimeWith({});
  }
  {
    Runtime runtime = RuntimeWith({});
  }
  const std::string file = folder + "/measured." + std::to_string(getpid());
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(file + ".2"));
  std::filesystem::remove_all(folder);
}

// What a run costs is not measured here, only that all of them count, and that a file says so.
TEST_F(AppliedSettings, AreComparedByAMeasurement) {
  const std::string file = testing::TempDir() + "applied_settings_test.measurement." + std::to_string(getpid());
  Measurement measured;
  {
    const EnvironmentScope variable("PENSTOCK_MEASURE", file);
    Runtime runtime = RuntimeWith({});
    Declared declared("a");
    Executable exec = *runtime.Compile(declared.graph);
    std::vector<float> x(kSize);
    const Bindings io = exec.bindings().Set(declared.x, x);
    for (int r = 0; r < 9; ++r) ASSERT_OK(exec.Launch(io)->Wait());
    measured = runtime.Measured();
  }
  EXPECT_EQ(measured.runs, 9);
  EXPECT_GT(measured.run_us, 0);
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(file);
  const absl::StatusOr<Measurement> read = tune::MeasurementFrom(text);
  ASSERT_OK(read.status());
  EXPECT_EQ(read->runs, 9);
  EXPECT_EQ(read->run_us, measured.run_us);
  EXPECT_EQ(read->open, measured.open);
}

}  // namespace
}  // namespace penstock::applied_settings_test
