// Which thread is to launch, by the times of launches alone.
#include "src/runtime/pipeline/shared_launching.h"

#include <gtest/gtest.h>

namespace penstock::runtime::shared_launching_test {
namespace {

constexpr int64_t kUs = 1000;

TEST(SharedLaunching, CallsAQueueSlowByTheMeanOfItsLaunches) {
  SharedLaunching policy(2);
  policy.NoteLaunch(0, 5 * kUs);
  EXPECT_FALSE(policy.IsSlow(0));
  policy.NoteLaunch(0, 80 * kUs);  // one alone may have other reasons: the mean is 14 us
  EXPECT_FALSE(policy.IsSlow(0));
  policy.NoteLaunch(0, 80 * kUs);  // 22 us
  EXPECT_TRUE(policy.IsSlow(0));
  EXPECT_TRUE(policy.AnySlow());
  policy.NoteLaunch(0, 2 * kUs);  // a short one counts for half
  EXPECT_FALSE(policy.IsSlow(0));
  EXPECT_FALSE(policy.AnySlow());
}

TEST(SharedLaunching, TakesAQueueThatHasLaunchedNothingForSlowWhereAnotherIs) {
  SharedLaunching policy(2);
  EXPECT_FALSE(policy.IsSlow(1));
  policy.NoteLaunch(0, 50 * kUs);
  EXPECT_TRUE(policy.IsSlow(1));
  policy.NoteLaunch(1, 3 * kUs);
  EXPECT_FALSE(policy.IsSlow(1));
}

TEST(SharedLaunching, ExpectsALaunchUnderWayToGoOnForAsLongAsUsual) {
  SharedLaunching policy(1);
  EXPECT_EQ(policy.UntilLaunched(0, 500 * kUs), 0) << "none is under way";
  policy.NoteLaunch(0, 40 * kUs);
  policy.BeginLaunch(0, 1000 * kUs);
  EXPECT_EQ(policy.UntilLaunched(0, 1010 * kUs), 40 * kUs);
  EXPECT_EQ(policy.UntilLaunched(0, 1100 * kUs), 100 * kUs) << "it hangs, and will go on for as long again";
  policy.CancelLaunch(0);
  EXPECT_EQ(policy.UntilLaunched(0, 1100 * kUs), 0);
}

TEST(SharedLaunching, HasWhatWasLeftForTooLongBegunByAnybody) {
  SharedLaunching policy(3);
  policy.Leave(1, 7000 * kUs);
  EXPECT_FALSE(policy.AnyLeft()) << "it is not enabled";
  EXPECT_EQ(policy.FirstDue(), INT64_MAX);
  policy.Enable();
  EXPECT_TRUE(policy.AnyLeft());
  policy.Leave(2, 6950 * kUs);
  EXPECT_EQ(policy.FirstDue(), 7150 * kUs);
  EXPECT_FALSE(policy.IsDue(2, 7149 * kUs));
  EXPECT_TRUE(policy.IsDue(2, 7150 * kUs));
  EXPECT_FALSE(policy.IsDue(1, 7150 * kUs));
  EXPECT_FALSE(policy.IsDue(0, 9999 * kUs)) << "nothing is left there";
  policy.Leave(2, 0);
  policy.Leave(1, 0);
  EXPECT_FALSE(policy.AnyLeft());
}

TEST(SharedLaunching, LooksAgainAfterASixteenthOfALaunchWithinBounds) {
  SharedLaunching policy(1);
  EXPECT_EQ(policy.NextLook(0, 0), 10 * kUs);
  policy.NoteLaunch(0, 800 * kUs);
  EXPECT_EQ(policy.NextLook(0, 3 * kUs), 53 * kUs);
  policy.NoteLaunch(0, 100'000 * kUs);
  EXPECT_EQ(policy.NextLook(0, 0), 100 * kUs);
}

}  // namespace
}  // namespace penstock::runtime::shared_launching_test
