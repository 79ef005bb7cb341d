// The pace of runs, and what is refused for it, by a clock that the tests move.
#include "src/runtime/executable/run_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "src/runtime/executable/late_launch.h"

namespace penstock::runtime::run_pace_test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using Time = RunPace::Time;

constexpr double kMs = 1e6;
const Time kStart = Time() + std::chrono::hours(1);
Time At(int ms) { return kStart + milliseconds(ms); }

// Runs that take `ms`, one after the other with pauses, from `from` on. Returns when the last has ended.
int AddRuns(RunPace& pace, int from, int runs, int ms) {
  for (int r = 0; r < runs; ++r, from += ms + 1000) pace.End(At(from), At(from + ms), false);
  return from - 1000;
}

TEST(RunPace, IsUnknownUntilEnoughRunsHaveEnded) {
  RunPace pace;
  const int end = AddRuns(pace, 0, static_cast<int>(RunPace::kColdRuns), 10);
  EXPECT_EQ(pace.mean_ns(), 0);
  AddRuns(pace, end, 1, 10);
  EXPECT_DOUBLE_EQ(pace.mean_ns(), 10 * kMs);
}

TEST(RunPace, TheFirstRunDoesNotCount) {
  RunPace pace;
  pace.End(At(0), At(100'000), false);
  AddRuns(pace, 100'000, static_cast<int>(RunPace::kColdRuns), 10);
  EXPECT_DOUBLE_EQ(pace.mean_ns(), 10 * kMs);
}

// Four slots: each run takes 40 ms, and one ends every 10 ms.
TEST(RunPace, OfRunsThatOverlapIsTheTimeFromEndToEnd) {
  RunPace pace;
  for (int r = 0; r < 200; ++r) pace.End(At(10 * r), At(10 * r + 40), false);
  EXPECT_NEAR(pace.mean_ns(), 10 * kMs, 0.01 * kMs);
}

TEST(RunPace, RecentRunsWeighMost) {
  RunPace pace;
  const int end = AddRuns(pace, 0, 50, 10);
  AddRuns(pace, end, 50, 30);
  EXPECT_NEAR(pace.mean_ns(), 30 * kMs, 0.1 * kMs);
}

TEST(RunPace, AFailedRunCountsOnlyIfItTookLonger) {
  RunPace pace;
  const int end = AddRuns(pace, 0, 50, 10);
  pace.End(At(end + 1000), At(end + 1001), true);
  EXPECT_DOUBLE_EQ(pace.mean_ns(), 10 * kMs);
  pace.End(At(end + 2000), At(end + 2090), true);
  EXPECT_DOUBLE_EQ(pace.mean_ns(), 20 * kMs);
}

absl::Status Refused(const RunsInFront& front, int left_ms) {
  return RefuseIfLate("graph 'g'", front, Deadline(At(left_ms)), At(0));
}

TEST(LateLaunch, IsRefusedIfWhatIsInFrontTakesUntilTheDeadline) {
  const RunsInFront front{.runs = 3, .mean_ns = 10 * kMs};
  EXPECT_TRUE(Refused(front, 31).ok());
  EXPECT_EQ(Refused(front, 30).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Refused(front, 20).message(),
            "graph 'g': refused, since it would end after its deadline: 3 runs are in front of it, each of which adds "
            "10 ms by the mean of recent ones, 30 ms in all, and 20 ms are left; nothing was started; launch less "
            "often, give it a later deadline, or compile without CompileOptions::refuse_late");
  EXPECT_THAT(std::string(Refused({.runs = 1, .mean_ns = kMs}, -5).message()),
              AllOf(HasSubstr("1 run is in front"), HasSubstr("the deadline has passed")));
}

TEST(LateLaunch, IsNotRefusedWithoutAMeanRunsInFrontOrADeadline) {
  EXPECT_TRUE(Refused({.runs = 1000, .mean_ns = 0}, 1).ok());
  EXPECT_TRUE(Refused({.runs = 0, .mean_ns = 1e15}, -1).ok());
  EXPECT_TRUE(RefuseIfLate("graph 'g'", {.runs = 1000, .mean_ns = 1e15}, Deadline(), At(0)).ok());
  EXPECT_FALSE(RefuseIfLate("graph 'g'", {.runs = 1, .mean_ns = 1}, Deadline(Time::min()), At(0)).ok());
}

}  // namespace
}  // namespace penstock::runtime::run_pace_test
