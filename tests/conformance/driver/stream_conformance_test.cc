// Streams, events and kernels: order, overlap and waits, by kernels that the test holds.
#include "tests/conformance/driver/driver_conformance.h"

#include <algorithm>
#include <cstring>

#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::stream_conformance_test {
namespace {

TEST_P(DriverConformance, UploadKernelAndDownloadRunInOrder) {
  for (const int64_t n : {1, 3, 256, 257, 4096, 100003, 1 << 20}) {
    const auto count = static_cast<size_t>(n);
    auto* const from = reinterpret_cast<int32_t*>(PinnedNoise(count * 4, 11));
    int32_t *const to = Pinned<int32_t>(count), *const data = Device<int32_t>(count);
    ASSERT_OK(Upload(stream_, data, from, count * 4));
    ASSERT_OK(Step(stream_, data, n, 5));
    ASSERT_OK(Step(stream_, data, n, -7));
    ASSERT_OK(Download(stream_, to, data, count * 4));
    ASSERT_TRUE(Finish(stream_));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(to[i], StepOf(StepOf(from[i], 5), -7)) << i << " of " << n;
  }
}

TEST_P(DriverConformance, ALongStreamRunsInOrderOfSubmission) {
  int32_t* const value = Device<int32_t>(1);
  int32_t* const out = Pinned<int32_t>(1);
  ASSERT_OK(driver_->Fill(stream_, {.dst = value, .count = 4}));
  int32_t expected = 0;
  for (int32_t k = 0; k < 400; ++k) {
    ASSERT_OK(Step(stream_, value, 1, k));
    expected = StepOf(expected, k);
  }
  ASSERT_OK(Download(stream_, out, value, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, expected);
}

TEST_P(DriverConformance, ArgumentsAreReadBeforeTheLaunchReturns) {
  KernelLatch& latch = NewLatch();
  int32_t* const data = Device<int32_t>(4);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 16}));
  ASSERT_TRUE(Hold(stream_, latch));
  PackedArgs args;
  args.Add(data).Add(int64_t{4}).Add(int32_t{9});
  ASSERT_OK(Launch(stream_, probes().step, args, 4));
  args.Scribble();
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  const std::vector<std::byte> bytes = BytesOf(data, 16);
  const int32_t expected[] = {9, 9, 9, 9};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, 16), 0);
}

TEST_P(DriverConformance, KernelsWorkOnPinnedMemory) {
  int32_t* const data = Pinned<int32_t>(100);
  std::fill(data, data + 100, 2);
  ASSERT_OK(Step(stream_, data, 100, 1));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_TRUE(std::all_of(data, data + 100, [](int32_t v) { return v == 7; }));
}

// --- overlap ---

TEST_P(DriverConformance, CopiesOfOtherStreamsEndBesideAHeldKernelAndWorkAfterItDoesNotStart) {
  constexpr size_t kBytes = 4 << 20;
  const std::byte *const next = PinnedNoise(kBytes, 1), *const last = PinnedNoise(kBytes, 2);
  std::byte *const coming = Device<std::byte>(kBytes), *const previous = Device<std::byte>(kBytes);
  std::byte *const to = Pinned<std::byte>(kBytes), *const late = Pinned<std::byte>(1);
  ASSERT_OK(Upload(stream_, previous, last, kBytes));
  ASSERT_TRUE(Finish(stream_));
  *late = std::byte{0};
  int32_t* const seen = Pinned<int32_t>(1);
  *seen = 0;
  const Stream up = NewStream(), down = NewStream();
  const Event behind = NewEvent();

  KernelLatch& latch = NewLatch();
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(Note(stream_, latch, seen));
  ASSERT_OK(driver_->Record(behind, stream_));
  ASSERT_OK(Upload(up, coming, next, kBytes));
  ASSERT_OK(Download(down, to, previous, kBytes));
  ASSERT_TRUE(Finish(up));
  ASSERT_TRUE(Finish(down));
  EXPECT_EQ(std::memcmp(to, last, kBytes), 0);
  EXPECT_FALSE(*driver_->Query(behind));
  Open(latch);
  ASSERT_TRUE(Finish(behind));
  EXPECT_EQ(*seen, kSawOpen);
  EXPECT_EQ(latch.timed_out, 0u);
  EXPECT_EQ(BytesOf(coming, kBytes), std::vector<std::byte>(next, next + kBytes));
}

TEST_P(DriverConformance, FillsAndKernelsOfOtherStreamsRunBesideAHeldKernel) {
  int32_t *const data = Device<int32_t>(10), *const seen = Pinned<int32_t>(1);
  const Stream other = NewStream();
  KernelLatch& latch = NewLatch();
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Fill(other, {.dst = data, .count = 40}));
  ASSERT_OK(Step(other, data, 10, 1));
  ASSERT_OK(Note(other, latch, seen));
  ASSERT_TRUE(Finish(other));
  EXPECT_EQ(*seen, kSawClosed);
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(latch.timed_out, 0u);
}

// --- events ---

TEST_P(DriverConformance, AnEventNeverRecordedIsCompleteAndHoldsNobody) {
  ExpectViolations();
  const Event event = NewEvent();
  EXPECT_TRUE(*driver_->Query(event));
  ASSERT_OK(driver_->Wait(stream_, event));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, AnEventIsIncompleteWhileWorkBeforeItIsHeld) {
  KernelLatch& latch = NewLatch();
  const Event event = NewEvent();
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  EXPECT_FALSE(*driver_->Query(event));
  Open(latch);
  EXPECT_TRUE(Finish(event));
  EXPECT_TRUE(*driver_->Query(event));
  EXPECT_EQ(latch.timed_out, 0u);
}

TEST_P(DriverConformance, AWaitHoldsAllThatFollowsInItsStream) {
  KernelLatch& latch = NewLatch();
  const Stream other = NewStream();
  const Event event = NewEvent(), after = NewEvent();
  int32_t* const seen = Pinned<int32_t>(1);
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  ASSERT_OK(driver_->Wait(other, event));
  ASSERT_OK(Note(other, latch, seen));
  ASSERT_OK(driver_->Record(after, other));
  EXPECT_FALSE(*driver_->Query(after));
  Open(latch);
  ASSERT_TRUE(Finish(after));
  EXPECT_EQ(*seen, kSawOpen);
}

TEST_P(DriverConformance, AWaitKeepsTheStateItTookWhenTheEventIsRecordedAgain) {
  KernelLatch& latch = NewLatch();
  const Stream quick = NewStream(), waiter = NewStream();
  const Event event = NewEvent(), after = NewEvent();
  int32_t* const seen = Pinned<int32_t>(1);
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  ASSERT_OK(driver_->Wait(waiter, event));
  ASSERT_OK(Note(waiter, latch, seen));
  ASSERT_OK(driver_->Record(after, waiter));
  ASSERT_OK(driver_->Record(event, quick));
  ASSERT_TRUE(Finish(event)) << "the second record has nothing before it";
  ASSERT_OK(Step(quick, Device<int32_t>(1), 1, 0));  // a kernel submitted later has run: the first had its chance
  ASSERT_TRUE(Finish(quick));
  EXPECT_FALSE(*driver_->Query(after)) << "the wait is for the first";
  Open(latch);
  ASSERT_TRUE(Finish(after));
  EXPECT_EQ(*seen, kSawOpen);
}

TEST_P(DriverConformance, ALaterRecordDoesNotHoldAnEarlierWait) {
  KernelLatch& latch = NewLatch();
  const Stream quick = NewStream(), waiter = NewStream();
  const Event event = NewEvent();
  ASSERT_OK(driver_->Record(event, quick));
  ASSERT_OK(driver_->Wait(waiter, event));
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  EXPECT_TRUE(Finish(waiter));
  EXPECT_FALSE(*driver_->Query(event));
  Open(latch);
  EXPECT_TRUE(Finish(event));
  EXPECT_EQ(latch.timed_out, 0u);
}

TEST_P(DriverConformance, TwoStreamsHandDataToAndFroByEvents) {
  constexpr int kRounds = 100;
  const Stream other = NewStream();
  const Event to = NewEvent(), fro = NewEvent();
  int32_t *const data = Device<int32_t>(1000), *const out = Pinned<int32_t>(1000);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4000}));
  int32_t expected = 0;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_OK(Step(stream_, data, 1000, round));
    ASSERT_OK(driver_->Record(to, stream_));
    ASSERT_OK(driver_->Wait(other, to));
    ASSERT_OK(Step(other, data, 1000, -3));
    ASSERT_OK(driver_->Record(fro, other));
    ASSERT_OK(driver_->Wait(stream_, fro));
    expected = StepOf(StepOf(expected, round), -3);
  }
  ASSERT_OK(Download(stream_, out, data, 4000));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_TRUE(std::all_of(out, out + 1000, [&](int32_t v) { return v == expected; }));
}

TEST_P(DriverConformance, AnEventOfOneDeviceHoldsAStreamOfAnother) {
  SKIP_UNLESS_TWO_DEVICES();
  KernelLatch& latch = NewLatch();
  const Stream other = NewStream(1);
  const Event event = NewEvent(0), after = NewEvent(1);
  int32_t* const seen = Pinned<int32_t>(2);
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  const int token = driver_->MakeCurrent(1);
  ASSERT_OK(driver_->Wait(other, event));
  ASSERT_OK(Note(other, latch, seen, 1));
  ASSERT_OK(driver_->Record(after, other));
  EXPECT_TRUE(LetOthersRun(NewStream(1), latch, seen + 1, 1));
  driver_->RestoreCurrent(token);
  EXPECT_FALSE(*driver_->Query(after));
  Open(latch);
  ASSERT_TRUE(Finish(after));
  EXPECT_EQ(*seen, kSawOpen);
}

TEST_P(DriverConformance, TimingEventsMeasureAndOthersRefuse) {
  ExpectViolations();
  std::byte* const memory = Device<std::byte>(1 << 20);
  const Event begin = NewEvent(0, true), end = NewEvent(0, true), untimed = NewEvent();
  ASSERT_OK(driver_->Record(begin, stream_));
  for (int i = 0; i < 16; ++i) ASSERT_OK(driver_->Fill(stream_, {.dst = memory, .count = 1 << 20}));
  ASSERT_OK(driver_->Record(end, stream_));
  ASSERT_OK(driver_->Record(untimed, stream_));
  ASSERT_TRUE(Finish(untimed));
  const auto elapsed = driver_->Elapsed(begin, end);
  ASSERT_OK(elapsed.status());
  EXPECT_GT(*elapsed, 0.0);
  EXPECT_FALSE(driver_->Elapsed(begin, untimed).ok());
}

TEST_P(DriverConformance, StreamsAndEventsMayGoWhileTheirWorkIsQueued) {
  ExpectViolations();
  KernelLatch& latch = NewLatch();
  int32_t* const seen = Pinned<int32_t>(2);
  const Stream going = *driver_->CreateStream(0, 0);
  const Event event = *driver_->CreateEvent(0, false);
  ASSERT_TRUE(Hold(going, latch));
  ASSERT_OK(driver_->Record(event, going));
  ASSERT_OK(driver_->Wait(stream_, event));
  ASSERT_OK(Note(stream_, latch, seen));
  driver_->DestroyEvent(event);
  driver_->DestroyStream(going);
  EXPECT_TRUE(LetOthersRun(NewStream(), latch, seen + 1));
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*seen, kSawOpen);
}

TEST_P(DriverConformance, TheBellRingsWhenAnEventCompletes) {
  if (!driver_->notifies_completion()) GTEST_SKIP() << "this driver's events are polled";
  KernelLatch& latch = NewLatch();
  const Event event = NewEvent();
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Record(event, stream_));
  const uint64_t before = event_count_.ticket();
  Open(latch);
  event_count_.Wait(before, std::chrono::steady_clock::now() + std::chrono::minutes(1));
  EXPECT_NE(event_count_.ticket(), before);
  EXPECT_TRUE(*driver_->Query(event));
}

TEST_P(DriverConformance, StreamsAndEventsAreMadeAndDestroyedManyTimes) {
  std::byte* const memory = Device<std::byte>(16);
  for (int i = 0; i < 500; ++i) {
    const auto stream = driver_->CreateStream(0, i % 3 - 1);
    const auto event = driver_->CreateEvent(0, i % 2 == 0);
    ASSERT_OK(stream.status());
    ASSERT_OK(event.status());
    ASSERT_OK(driver_->Fill(*stream, {.dst = memory, .count = 16}));
    ASSERT_OK(driver_->Record(*event, *stream));
    ASSERT_TRUE(Finish(*event));
    driver_->DestroyStream(*stream);
    driver_->DestroyEvent(*event);
  }
}

}  // namespace
}  // namespace penstock::driver::conformance::stream_conformance_test
