// The variables of the environment as Create and Compile take them: on, off, numbers, or refused by name.
#include "src/runtime/core/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/base/limits.h"
#include "tests/support/environment.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"

namespace penstock::environment_test {
namespace {

using runtime::DefaultSubmissionThreads;
using runtime::ParseBytes;
using runtime::SubmissionThreadsOf;
using ::testing::AllOf;
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

TEST(ParseBytes, TakesNumbersWithAndWithoutASuffix) {
  for (const auto& [text, bytes] :
       {std::pair("0", int64_t{0}), std::pair("1", int64_t{1}), std::pair("3K", int64_t{3072}),
        std::pair("256M", int64_t{268435456}), std::pair("2G", int64_t{2147483648}),
        std::pair("8589934591G", INT64_MAX - 1073741823), std::pair("9223372036854775807", INT64_MAX)}) {
    const absl::StatusOr<int64_t> read = ParseBytes(text);
    ASSERT_OK(read.status()) << text;
    EXPECT_EQ(*read, bytes) << text;
  }
}

TEST(ParseBytes, RefusesAllElseAndSaysWhatToWrite) {
  for (const char* const text : {"", "M", "-1", "+1", " 1", "1 ", "1.5G", "1k", "1MB", "1KK", "0x10", "half",
                                 "9223372036854775808", "8589934592G", "99999999999999999999"}) {
    const absl::Status refused = ParseBytes(text).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Text(refused),
                AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr("such as 268435456, 256M or 2G")));
  }
}

class PinnedBytes : public testing::Test {
 protected:
  void TearDown() override { unsetenv("PENSTOCK_PINNED_BYTES"); }
  static absl::StatusOr<Runtime> Make(int64_t bytes) {
    return Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1, .pinned_bytes = bytes});
  }
};

TEST_F(PinnedBytes, AreHalfOfThisComputersMemoryByDefault) {
  struct sysinfo computer{};
  ASSERT_EQ(sysinfo(&computer), 0);
  if (base::MemoryOfProcess().of_cgroup) GTEST_SKIP() << "a cgroup leaves less";
  const int64_t half = static_cast<int64_t>(computer.totalram) * computer.mem_unit / 2;
  EXPECT_EQ(Make(0)->pinned_memory().budget, half);
  setenv("PENSTOCK_PINNED_BYTES", "0", 1);
  EXPECT_EQ(Make(1 << 20)->pinned_memory().budget, half);
}

TEST_F(PinnedBytes, TheEnvironmentWinsOverTheOption) {
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 3 << 20);
  setenv("PENSTOCK_PINNED_BYTES", "5M", 1);
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 5 << 20);
  setenv("PENSTOCK_PINNED_BYTES", "", 1);
  EXPECT_EQ(Make(3 << 20)->pinned_memory().budget, 3 << 20);
}

TEST_F(PinnedBytes, MalformedOnesAreRefusedAtCreate) {
  EXPECT_EQ(Make(-1).status().code(), absl::StatusCode::kInvalidArgument);
  setenv("PENSTOCK_PINNED_BYTES", "lots", 1);
  const absl::Status refused = Make(0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("PENSTOCK_PINNED_BYTES: 'lots' is no number of bytes"));
}

TEST(SubmissionThreadCount, OfDevicesLeavesCoresToOthers) {
  EXPECT_EQ(DefaultSubmissionThreads(2, 1), 0);
  EXPECT_EQ(DefaultSubmissionThreads(4, 1), 0);
  EXPECT_EQ(DefaultSubmissionThreads(6, 1), 2);
  EXPECT_EQ(DefaultSubmissionThreads(16, 1), 8);
  EXPECT_EQ(DefaultSubmissionThreads(16, 4), 3);
  EXPECT_EQ(DefaultSubmissionThreads(16, 0), 0);
}

TEST(SubmissionThreadCount, IsThatOfTheVariableWhereThereIsOne) {
  EXPECT_EQ(*SubmissionThreadsOf(3), 3);
  EXPECT_EQ(*SubmissionThreadsOf(-1), -1);
  for (const auto& [text, count] : {std::pair("0", 0), std::pair("5", 5), std::pair("-1", -1)}) {
    const EnvironmentScope scope("PENSTOCK_SUBMISSION_THREADS", text);
    EXPECT_EQ(*SubmissionThreadsOf(3), count) << text;
  }
  for (const char* const text : {"-2", "x", "1x", "99999999999"}) {
    const EnvironmentScope scope("PENSTOCK_SUBMISSION_THREADS", text);
    EXPECT_EQ(SubmissionThreadsOf(3).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace penstock::environment_test
