// Tune with real jobs on host devices. How well it searches is in find_settings_test.cc.
#include "penstock/tune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "penstock/graph.h"
#include "tests/support/environment.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::tune_test {
namespace {

using ::testing::HasSubstr;

struct Touch {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, float* x) const { x[i] = 1; }
};

absl::StatusOr<Executable> CompileTouch(Runtime& runtime) {
  Graph graph("touch");
  auto x = graph.Buffer<float>("x", 8);
  graph.ParallelFor("touch", 8, Touch{}, Write(x));
  return runtime.Compile(graph);
}

TuneOptions OptionsFor(std::vector<std::string> only, double seconds) {
  return {.budget = std::chrono::duration<double>(seconds), .runtime = {.devices = "host"}, .only = std::move(only)};
}

class TuneTest : public testing::Test {
 protected:
  const ModeScope mode_{""};  // the modes of the test count
};

// The job says what it costs: less, the more slots there are.
TEST_F(TuneTest, FindsTheSettingsWithWhichAJobCostsLeast) {
  int calls = 0;
  const absl::StatusOr<TuneResult> tuned = Tune(
      [&](Runtime& runtime) -> absl::StatusOr<double> {
        ++calls;
        const absl::StatusOr<Executable> exec = CompileTouch(runtime);
        if (!exec.ok()) return exec.status();
        return 100.0 / exec->slots();
      },
      OptionsFor({"slots"}, 1000));
  ASSERT_OK(tuned.status());
  EXPECT_EQ(tuned->settings.Text(), "penstock settings 1\ngraph \"touch\".slots = 16\nend\n");
  EXPECT_DOUBLE_EQ(tuned->before, 50);
  EXPECT_DOUBLE_EQ(tuned->after, 100.0 / 16);
  EXPECT_EQ(tuned->rounds, calls);
  ASSERT_FALSE(tuned->tried.empty());
  for (const TuneResult::Trial& trial : tuned->tried) EXPECT_EQ(trial.key, "graph \"touch\".slots");
}

TEST_F(TuneTest, MeasuresTheRunsOfAJobThatSaysNothing) {
  const absl::StatusOr<TuneResult> tuned = Tune(
      [&](Runtime& runtime) -> absl::StatusOr<double> {
        absl::StatusOr<Executable> exec = CompileTouch(runtime);
        if (!exec.ok()) return exec.status();
        for (int r = 0; r < 8; ++r) {
          if (const absl::Status launched = exec->Launch().status(); !launched.ok()) return launched;
        }
        return 0;
      },
      OptionsFor({"mode"}, 0.05));
  ASSERT_OK(tuned.status());
  EXPECT_GT(tuned->before, 0);
}

TEST_F(TuneTest, SaysWhyThereIsNothingToTune) {
  const auto job = [](Runtime& runtime) -> absl::StatusOr<double> { return CompileTouch(runtime).ok() ? 1 : 0; };
  EXPECT_THAT(Text(Tune(job, OptionsFor({"colour"}, 1)).status()),
              HasSubstr("names no choice that the job leaves open"));
  EXPECT_THAT(Text(Tune(nullptr).status()), HasSubstr("the job is null"));
  EXPECT_THAT(Text(Tune(job, OptionsFor({}, 0)).status()), HasSubstr("budget is not positive"));
  EXPECT_THAT(Text(Tune([](Runtime&) { return 0.0; }, OptionsFor({}, 1)).status()), HasSubstr("has run nothing"));
  EXPECT_EQ(Tune([](Runtime&) -> absl::StatusOr<double> { throw std::runtime_error("no"); }, OptionsFor({}, 1))
                .status()
                .code(),
            absl::StatusCode::kInternal);
  const EnvironmentScope variable("PENSTOCK_SETTINGS", "some.settings");
  EXPECT_EQ(Tune(job, OptionsFor({}, 1)).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock::tune_test
