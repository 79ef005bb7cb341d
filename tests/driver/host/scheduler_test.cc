// The order in which the scheduler runs tasks, by rendezvous: tasks stay on latches while the test looks. Events have a
// file of their own.
#include "src/driver/host/scheduler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "tests/driver/host/scheduler_fixture.h"

namespace penstock::driver::host::scheduler_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- streams and engines ---

TEST_F(SchedulerTest, AStreamRunsInOrderOfSubmissionOnAllEngines) {
  const Stream stream = NewStream();
  std::vector<int> seen;  // unguarded: the order of the stream is what makes it safe
  for (int i = 0; i < 300; ++i) Submit(stream, [&seen, i] { seen.push_back(i); }, {.engine = EngineKind(i % 3)});
  ASSERT_TRUE(Finish(stream));
  ASSERT_EQ(seen.size(), 300u);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(SchedulerTest, TheSubmittingThreadNeverRunsATask) {
  const Stream stream = NewStream();
  std::thread::id ran;
  Submit(stream, [&ran] { ran = std::this_thread::get_id(); });
  ASSERT_TRUE(Finish(stream));
  EXPECT_NE(ran, std::thread::id());
  EXPECT_NE(ran, std::this_thread::get_id());
}

TEST_F(SchedulerTest, ChunksRunAtTheSameTimeOnSeveralThreads) {
  const Stream stream = NewStream();
  for (int round = 0; round < 50; ++round) {  // threads must also come when they were asleep
    Latch& meeting = NewLatch();
    SubmitStatus(stream,
                 [&meeting](int) {
                   meeting.Arrive();
                   return absl::OkStatus();
                 },
                 {.chunks = 4});
    ASSERT_TRUE(meeting.AwaitArrived(4));
    meeting.Open();
    ASSERT_TRUE(Finish(stream));
  }
}

TEST_F(SchedulerTest, EachChunkRunsOnceAndTheNextTaskWaitsForAll) {
  const Stream stream = NewStream();
  for (const int chunks : {1, 2, 3, 4, 5, 16, 97}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
    bool whole = false;
    SubmitStatus(stream,
                 [&runs](int chunk) {
                   ++runs[static_cast<size_t>(chunk)];
                   return absl::OkStatus();
                 },
                 {.chunks = chunks});
    Submit(stream, [&] { whole = std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }); });
    ASSERT_TRUE(Finish(stream));
    EXPECT_TRUE(whole) << chunks;
  }
}

TEST_F(SchedulerTest, ATaskEndsOnlyWithItsLastChunk) {
  Latch& held = NewLatch();
  const Stream stream = NewStream();
  std::atomic<bool> after{false};
  SubmitStatus(stream,
               [&held](int chunk) {
                 if (chunk == 0) held.Arrive();
                 return absl::OkStatus();
               },
               {.chunks = 8});
  Submit(stream, [&after] { after = true; });
  ASSERT_TRUE(held.AwaitArrived());
  const Stream other = NewStream();
  SubmitStatus(other, [](int) { return absl::OkStatus(); }, {.chunks = 8});
  ASSERT_TRUE(Finish(other));  // the other threads have gone through the first task's chunks before
  EXPECT_FALSE(after);
  held.Open();
  ASSERT_TRUE(Finish(stream));
  EXPECT_TRUE(after);
}

TEST_F(SchedulerTest, AnEngineOfOneDirectionDoesOneCopyAtATime) {
  for (const EngineKind engine : {EngineKind::kUpload, EngineKind::kDownload}) {
    Crowd crowd;
    std::vector<Stream> streams;
    for (int i = 0; i < 8; ++i) streams.push_back(NewStream());
    for (int i = 0; i < 400; ++i) {
      Submit(streams[static_cast<size_t>(i % 8)],
             [&crowd] {
               crowd.Enter();
               std::this_thread::yield();
               crowd.Leave();
             },
             {.engine = engine});
    }
    for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
    EXPECT_EQ(crowd.most(), 1);
  }
}

TEST_F(SchedulerTest, DevicesHaveEnginesOfTheirOwn) {
  Make(2, 1);
  Latch& first = NewLatch();
  Hold(NewStream(0), first);
  const Stream other = NewStream(1);
  bool ran = false;
  Submit(other, [&ran] { ran = true; });
  ASSERT_TRUE(Finish(other, 1));
  EXPECT_TRUE(ran);
  EXPECT_EQ(scheduler_->DeviceOf(other).value(), 1);
}

// Enough threads are woken, whether a submitter or the end of a task made the work ready, and whatever ran before.
TEST_F(SchedulerTest, AllEnginesWorkAtOnceAfterAnyTasks) {
  constexpr EngineKind kEngines[] = {EngineKind::kUpload,  EngineKind::kDownload, EngineKind::kCompute,
                                     EngineKind::kCompute, EngineKind::kCompute,  EngineKind::kCompute};
  std::mt19937 rng(20261128);
  std::vector<Stream> streams, others;
  for (int i = 0; i < 8; ++i) streams.push_back(NewStream());
  for (int i = 0; i < 8; ++i) others.push_back(NewStream());
  for (int round = 0; round < 200; ++round) {
    for (auto n = rng() % 20; n > 0; --n) Submit(others[rng() % 8], [] {}, {.engine = EngineKind(rng() % 3)});
    Latch& begin = NewLatch();
    const Event event = NewEvent();
    if (round % 2 == 0) Hold(streams[7], begin);
    Record(event, streams[7]);
    Latch& meeting = NewLatch();
    for (size_t i = 0; i < std::size(kEngines); ++i) {
      Wait(streams[i], event);
      Submit(streams[i], [&meeting] { meeting.Arrive(); }, {.engine = kEngines[i]});
    }
    begin.Open();
    ASSERT_TRUE(meeting.AwaitArrived(static_cast<int>(std::size(kEngines)))) << "round " << round;
    meeting.Open();
    scheduler_->DestroyEvent(event);
  }
}

TEST_F(SchedulerTest, ReadyWorkOfHigherPriorityRunsFirst) {
  Make(1, 1);
  Latch& gate = NewLatch();
  const Stream blocker = NewStream();
  Hold(blocker, gate);
  std::vector<int> order;  // one compute thread
  std::vector<Stream> streams;
  for (const int priority : {1, 0, -1, 0}) streams.push_back(NewStream(0, priority));
  for (int i = 0; i < 4; ++i) Submit(streams[static_cast<size_t>(i)], [&order, i] { order.push_back(i); });
  gate.Open();
  for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
  EXPECT_THAT(order, ElementsAre(2, 1, 3, 0));
}

TEST_F(SchedulerTest, TasksMayCallTheScheduler) {
  const Stream stream = NewStream(), other = NewStream();
  const Event event = NewEvent();
  absl::Status seen = absl::UnknownError("did not run");
  Submit(stream, [&] { seen = scheduler_->Record(event, other); });
  ASSERT_TRUE(Finish(stream));
  EXPECT_TRUE(seen.ok()) << seen;
  EXPECT_TRUE(Finish(event));
}

TEST_F(SchedulerTest, DestructionRunsWhatIsQueuedOnAllEngines) {
  Latch& held = NewLatch();
  std::atomic<int> ran{0};
  const Stream a = NewStream(), b = NewStream();
  Hold(a, held);
  for (int i = 0; i < 150; ++i) Submit(a, [&ran] { ++ran; }, {.engine = EngineKind(i % 3)});
  const Event event = NewEvent();
  Record(event, a);
  Wait(b, event);
  for (int i = 0; i < 150; ++i) Submit(b, [&ran] { ++ran; }, {.engine = EngineKind(i % 3)});
  Drain();
  EXPECT_EQ(ran, 300);
}

TEST_F(SchedulerTest, AFullStreamHoldsItsSubmitterBack) {
  constexpr int kTasks = 20000;
  Latch& held = NewLatch();
  const Stream stream = NewStream();
  std::atomic<int> submitted{0}, ran{0}, furthest{0};
  Hold(stream, held);
  std::thread submitter([&] {
    for (int i = 0; i < kTasks; ++i) {
      Submit(stream, [&] {
        const int ahead = submitted - ran;
        if (ahead > furthest) furthest = ahead;
        ++ran;
      });
      ++submitted;
    }
  });
  while (submitted < static_cast<int>(kMostQueued) - 1) std::this_thread::yield();
  held.Open();
  submitter.join();
  ASSERT_TRUE(Finish(stream));
  EXPECT_EQ(ran, kTasks);
  EXPECT_LE(furthest, static_cast<int>(kMostQueued) + 1);
}

// --- gates ---

TEST_F(SchedulerTest, AGateLetsItsLimitInAndHoldsNoThread) {
  Make(1, 3);
  TrySemaphore gate(2);
  Latch& inside = NewLatch();
  Crowd crowd;
  std::vector<Stream> streams;
  for (int i = 0; i < 5; ++i) {
    streams.push_back(NewStream());
    Submit(streams.back(),
           [&] {
             crowd.Enter();
             inside.Arrive();
             crowd.Leave();
           },
           {.gate = &gate});
  }
  ASSERT_TRUE(inside.AwaitArrived(2));
  const Stream free = NewStream();
  Submit(free, [] {});
  ASSERT_TRUE(Finish(free)) << "those before the gate must keep no thread";
  EXPECT_EQ(inside.arrived(), 2);
  inside.Open();
  for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
  EXPECT_EQ(inside.arrived(), 5);
  EXPECT_EQ(crowd.most(), 2);
}

TEST_F(SchedulerTest, AGateHoldsOverDevices) {
  Make(2, 2);
  TrySemaphore gate(1);
  Latch& inside = NewLatch();
  const Stream a = NewStream(0), b = NewStream(1), free = NewStream(1);
  Hold(a, inside, {.gate = &gate});
  std::atomic<bool> second{false};
  Submit(b, [&second] { second = true; }, {.gate = &gate});
  Submit(free, [] {});
  ASSERT_TRUE(Finish(free, 1));
  EXPECT_FALSE(second);
  inside.Open();
  ASSERT_TRUE(Finish(b, 1)) << "the other device's thread must be woken";
  EXPECT_TRUE(second);
}

TEST_F(SchedulerTest, ATaskThatFailedLeavesItsGate) {
  TrySemaphore gate(1);
  const Stream stream = NewStream();
  RunFault fault;
  SubmitStatus(stream, [](int) -> absl::Status { throw std::runtime_error("boom"); }, {.gate = &gate, .fault = &fault});
  bool ran = false;
  Submit(stream, [&ran] { ran = true; }, {.gate = &gate});
  ASSERT_TRUE(Finish(stream));
  EXPECT_TRUE(ran);
}

// --- faults ---

TEST_F(SchedulerTest, AFailureIsReportedWithItsNode) {
  RunFault fault;
  const Stream stream = NewStream();
  SubmitStatus(stream, [](int) { return absl::DataLossError("gone"); }, {.fault = &fault});
  ASSERT_TRUE(Finish(stream));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 7);
  EXPECT_EQ(fault.status(), absl::DataLossError("gone"));
}

TEST_F(SchedulerTest, ExceptionsBecomeInternal) {
  const Stream stream = NewStream();
  RunFault known, unknown;
  SubmitStatus(stream, [](int) -> absl::Status { throw std::runtime_error("boom"); }, {.fault = &known});
  SubmitStatus(stream, [](int) -> absl::Status { throw 42; }, {.fault = &unknown});
  SubmitStatus(stream, [](int) -> absl::Status { throw std::runtime_error("nobody asks"); });
  ASSERT_TRUE(Finish(stream));
  EXPECT_EQ(known.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(base::Str(known.status().message()), HasSubstr("boom"));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInternal);
}

TEST_F(SchedulerTest, WorkOfAFailedRunIsSkippedAndItsEventsComplete) {
  RunFault fault, other_fault;
  const Stream stream = NewStream(), other = NewStream();
  const Event event = NewEvent();
  int ran = 0, others = 0;
  SubmitStatus(stream, [](int) { return absl::AbortedError("first"); }, {.fault = &fault});
  Submit(stream, [&ran] { ++ran; }, {.engine = EngineKind::kUpload, .fault = &fault});
  SubmitStatus(stream,
               [&ran](int) {
                 ++ran;
                 return absl::AbortedError("second");
               },
               {.chunks = 4, .fault = &fault});
  Record(event, stream);
  Wait(other, event);
  Submit(other, [&ran] { ++ran; }, {.fault = &fault});
  Submit(other, [&others] { ++others; }, {.fault = &other_fault});
  Submit(other, [&others] { ++others; });
  ASSERT_TRUE(Finish(other));
  EXPECT_TRUE(IsComplete(event));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(others, 2);
  EXPECT_EQ(fault.status(), absl::AbortedError("first"));
}

TEST_F(SchedulerTest, WorkOfARunThatFailedElsewhereDoesNotWaitForItsGate) {
  Make(2, 2);
  TrySemaphore gate(1);
  RunFault fault;
  Latch &inside = NewLatch(), &failing = NewLatch();
  const Stream a = NewStream(1), b = NewStream(1), free = NewStream(1), c = NewStream(0);
  Hold(a, inside, {.gate = &gate});
  SubmitStatus(c,
               [&failing](int) {
                 failing.Arrive();
                 return absl::AbortedError("first");
               },
               {.fault = &fault});
  ASSERT_TRUE(failing.AwaitArrived());
  bool ran = false;
  Submit(b, [&ran] { ran = true; }, {.gate = &gate, .fault = &fault});
  Submit(free, [] {});
  ASSERT_TRUE(Finish(free, 1));  // a thread has looked at b and passed it over
  failing.Open();
  EXPECT_TRUE(Finish(b, 1)) << "while another run is inside the gate";
  EXPECT_FALSE(ran);
  Drain();  // before the gate goes
}

// --- handles ---

TEST_F(SchedulerTest, HandlesThatAreNotAliveAreRefused) {
  const Stream stream = NewStream(), dead_stream = NewStream();
  const Event event = NewEvent(), dead_event = NewEvent();
  scheduler_->DestroyStream(dead_stream);
  scheduler_->DestroyEvent(dead_event);
  NewStream();  // takes the place
  NewEvent();
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(scheduler_->Record(event, dead_stream).code(), kRefused);
  EXPECT_EQ(scheduler_->Record(dead_event, stream).code(), kRefused);
  EXPECT_EQ(scheduler_->Wait(dead_stream, event).code(), kRefused);
  EXPECT_EQ(scheduler_->Wait(stream, dead_event).code(), kRefused);
  EXPECT_EQ(scheduler_->Query(dead_event).status().code(), kRefused);
  EXPECT_EQ(scheduler_->Elapsed(event, dead_event).status().code(), kRefused);
  EXPECT_EQ(scheduler_->DeviceOf(dead_stream).status().code(), kRefused);
  EXPECT_EQ(scheduler_->Query({}).status().code(), kRefused);
  auto task = std::make_unique<FunctionTask>([](int) { return absl::OkStatus(); }, 1, OpTag{}, nullptr);
  EXPECT_EQ(scheduler_->Submit(dead_stream, EngineKind::kCompute, std::move(task)).code(), kRefused);
  scheduler_->DestroyStream(dead_stream);
  scheduler_->DestroyEvent(dead_event);
}

// --- many at once ---

TEST_F(SchedulerTest, StreamsFedFromSeveralThreadsKeepTheirOrder) {
  constexpr int kFeeders = 4, kTasks = 500;
  std::vector<std::vector<int>> seen(kFeeders);
  std::vector<Stream> streams;
  std::vector<Event> events;
  for (int i = 0; i < kFeeders; ++i) {
    streams.push_back(NewStream());
    events.push_back(NewEvent());
  }
  std::vector<std::thread> submission_threads;
  for (size_t f = 0; f < kFeeders; ++f) {
    submission_threads.emplace_back([&, f] {
      for (int i = 0; i < kTasks; ++i) {
        Submit(streams[f], [&list = seen[f], i] { list.push_back(i); }, {.engine = EngineKind(i % 3)});
        Record(events[f], streams[f]);
        Wait(streams[f], events[(f + 1) % kFeeders]);  // the neighbour's latest: never a cycle
      }
    });
  }
  for (std::thread& submitter : submission_threads) submitter.join();
  for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
  for (const auto& list : seen) {
    ASSERT_EQ(list.size(), static_cast<size_t>(kTasks));
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
  }
}

}  // namespace
}  // namespace penstock::driver::host::scheduler_test
