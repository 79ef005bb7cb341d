// Time that counts, and time that stood still.
#include "src/base/counted_time.h"

#include <gtest/gtest.h>

namespace penstock::base::counted_time_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(CountedTime, OfAGapOfMoreThanASecondNothingCounts) {
  CountedTime::TimePoint now{};
  CountedTime time(now);
  EXPECT_EQ(time.Look(now += milliseconds(500)), milliseconds(500));
  EXPECT_EQ(time.Look(now += seconds(12)), seconds(0));
  EXPECT_EQ(time.Look(now += seconds(1)), seconds(1));
  EXPECT_EQ(time.Look(now), seconds(0));
}

}  // namespace
}  // namespace penstock::base::counted_time_test
