// Events of the scheduler: what completes them, what waits for them, and when they happened.
#include <gmock/gmock.h>

#include <vector>

#include "tests/driver/host/scheduler_fixture.h"

namespace penstock::driver::host::scheduler_event_test {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

using SchedulerEventTest = SchedulerTest;

TEST_F(SchedulerEventTest, AWaitHoldsAStreamUntilTheEvent) {
  Latch& held = NewLatch();
  const Stream first = NewStream();
  const Event event = NewEvent();
  Hold(first, held);
  int value = 0;  // unguarded: the event is what makes it safe
  Submit(first, [&value] { value = 1; });
  Record(event, first);
  std::vector<Stream> waiters;
  std::vector<int> seen(5, -1);
  for (size_t i = 0; i < seen.size(); ++i) {
    waiters.push_back(NewStream());
    Wait(waiters[i], event);
    Submit(waiters[i], [&seen, &value, i] { seen[i] = value; });
  }
  EXPECT_THAT(seen, testing::Each(-1));
  held.Open();
  for (const Stream stream : waiters) ASSERT_TRUE(Finish(stream));
  EXPECT_THAT(seen, testing::Each(1));
}

TEST_F(SchedulerEventTest, ARecordAfterAWaitIsHeldToo) {
  Latch& held = NewLatch();
  const Stream a = NewStream(), b = NewStream(), c = NewStream();
  const Event ab = NewEvent(), bc = NewEvent();
  Hold(a, held);
  Record(ab, a);
  Wait(b, ab);
  Record(bc, b);
  Wait(c, bc);
  bool passed = false;
  Submit(c, [&passed] { passed = true; });
  EXPECT_FALSE(IsComplete(bc));
  held.Open();
  ASSERT_TRUE(Finish(c));
  EXPECT_TRUE(passed);
}

TEST_F(SchedulerEventTest, AnEventIsRecordedOnItsOwnDeviceOnly) {
  Make(2, 1);
  EXPECT_EQ(scheduler_->Record(NewEvent(0), NewStream(1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SchedulerEventTest, ElapsedIsTheTimeBetweenTheRecords) {
  const Stream stream = NewStream();
  const Event begin = NewEvent(), end = NewEvent();
  const auto before = std::chrono::steady_clock::now();
  Record(begin, stream);
  std::chrono::steady_clock::time_point inner_begin, inner_end;
  Submit(stream, [&] {
    inner_begin = std::chrono::steady_clock::now();
    while ((inner_end = std::chrono::steady_clock::now()) - inner_begin < std::chrono::milliseconds(1)) {
    }
  });
  Record(end, stream);
  ASSERT_TRUE(Finish(end));
  const auto after = std::chrono::steady_clock::now();
  const double measured = scheduler_->Elapsed(begin, end).value();
  EXPECT_GE(measured, Microseconds(inner_end - inner_begin).count());
  EXPECT_LE(measured, Microseconds(after - before).count());
  EXPECT_EQ(scheduler_->Elapsed(end, begin).value(), -measured);
}

TEST_F(SchedulerEventTest, ElapsedRefusesEventsWithoutTime) {
  Latch& held = NewLatch();
  const Stream stream = NewStream();
  const Event timed = NewEvent(), pending = NewEvent(), never = NewEvent();
  const Event untimed = *scheduler_->CreateEvent(0, false);
  Record(timed, stream);
  Record(untimed, stream);
  Hold(stream, held);
  Record(pending, stream);
  EXPECT_EQ(scheduler_->Elapsed(timed, untimed).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->Elapsed(never, timed).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->Elapsed(timed, pending).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SchedulerEventTest, TheBellRingsForEventsAndNothingElse) {
  const uint64_t before = event_count_.ticket();
  const Stream a = NewStream(), b = NewStream();
  const Event event = NewEvent();
  for (int i = 0; i < 10; ++i) Submit(a, [] {});
  Record(event, a);
  Wait(b, event);
  Submit(b, [] {});
  Drain();
  EXPECT_EQ(event_count_.ticket(), before + 1);
}

}  // namespace
}  // namespace penstock::driver::host::scheduler_event_test
