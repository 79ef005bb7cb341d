// The variables of the environment as Create and Compile take them: on, off, or refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/support/environment.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"

namespace penstock::environment_test {
namespace {

using ::testing::HasSubstr;

struct Inc {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int* x) const { x[i] += 1; }
};

absl::StatusOr<Runtime> Create() { return Runtime::Create({.workers = 1, .host_device_threads = 1}); }

absl::StatusOr<Executable> Compile(Runtime& runtime) {
  Graph g("g");
  auto x = g.InOut<int>("x", 4);
  g.ParallelFor("inc", 4, Inc{}, ReadWrite(x));
  return runtime.Compile(g);
}

class EnvironmentOfARuntime : public testing::Test {
 protected:
  const EnvironmentScope devices_{"PENSTOCK_DEVICES", "host"};
};

TEST_F(EnvironmentOfARuntime, TakesWordsForFlags) {
  const EnvironmentScope sync("PENSTOCK_SYNC", "true"), fallbacks("PENSTOCK_CHECK_AGAINST_HOST", "on"),
      checked("PENSTOCK_CHECKED", "Yes");
  const ModeScope mode("auto");
  Runtime runtime = *Create();
  const absl::StatusOr<Executable> exec = Compile(runtime);
  ASSERT_OK(exec.status());
  EXPECT_THAT(exec->submission_report().Text(), HasSubstr("PENSTOCK_SYNC"));
  EXPECT_THAT(exec->PlanText(), HasSubstr("check "));
}

TEST_F(EnvironmentOfARuntime, TakesTheirOppositesForOff) {
  const EnvironmentScope sync("PENSTOCK_SYNC", "off"), fallbacks("PENSTOCK_CHECK_AGAINST_HOST", "FALSE");
  Runtime runtime = *Create();
  const absl::StatusOr<Executable> exec = Compile(runtime);
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->submission_report().Text().find("PENSTOCK_SYNC"), std::string::npos);
  EXPECT_EQ(exec->PlanText().find("check "), std::string::npos);
}

TEST_F(EnvironmentOfARuntime, IsRefusedAtCreateByName) {
  for (const char* const name : {"PENSTOCK_SYNC", "PENSTOCK_CHECKED", "PENSTOCK_CHECK_AGAINST_HOST", "PENSTOCK_DEVICES",
                                 "PENSTOCK_SUBMISSION_THREADS", "PENSTOCK_POLLING_CORES", "PENSTOCK_PINNED_BYTES"}) {
    for (const char* const value : {"maybe", "1x", "99999999999999999999"}) {
      const EnvironmentScope wrong(name, value);
      const absl::Status refused = Create().status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name << "=" << value;
      EXPECT_THAT(Text(refused), HasSubstr(name));
    }
  }
}

TEST_F(EnvironmentOfARuntime, IsRefusedAtCompileByName) {
  Runtime runtime = *Create();
  for (const char* const name : {"PENSTOCK_CHECK_AGAINST_HOST", "PENSTOCK_MODE"}) {
    const EnvironmentScope wrong(name, "maybe");
    const absl::Status refused = Compile(runtime).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(Text(refused), HasSubstr("graph 'g'"));
    EXPECT_THAT(Text(refused), HasSubstr(name));
  }
}

}  // namespace
}  // namespace penstock::environment_test
