// Graphs of the host driver, where it differs from CUDA's: refusals, when tasks are made, which threads take them.
// What both have in common is in tests/conformance/driver/.
#include "src/driver/host/host_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/host/host_driver_fixture.h"

namespace penstock::driver::host::host_graph_test {
namespace {

using conformance::PackedArgs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostGraphTest : public HostDriverTest {
 protected:
  void SetUp() override {
    HostDriverTest::SetUp();
    graph_ = *driver_->CreateGraph(0);
  }
  void Remake(HostDriverOptions options) {
    Make(options);
    graph_ = *driver_->CreateGraph(0);
  }

  template <class Op>
  absl::StatusOr<int32_t> TryAdd(const Op& op, std::vector<int32_t> after = {}, int priority = 0) {
    return driver_->AddNode(graph_, after, &op, {.priority = priority});
  }
  template <class Op>
  int32_t Add(const Op& op, std::vector<int32_t> after = {}, int priority = 0) {
    return TryAdd(op, std::move(after), priority).value();
  }
  template <class Op>
  absl::Status Set(GraphExec exec, int32_t node, const Op& op) {
    return driver_->SetNode(exec, node, &op);
  }
  GraphExec Instantiate() { return *driver_->Instantiate(graph_); }
  void Launch(GraphExec exec) { ASSERT_EQ(driver_->LaunchGraph(exec, stream_), absl::OkStatus()); }
  void LaunchAndFinish(GraphExec exec) {
    Launch(exec);
    ASSERT_TRUE(Finish(stream_));
  }
  // Keeps a stream, and a compute thread, until the latch is opened.
  void Hold(Stream stream, Latch& latch) {
    ASSERT_TRUE(driver_->Launch(stream, CallOf(latch)).ok());
    ASSERT_TRUE(latch.AwaitArrived());
  }

  Graph graph_;
};

// --- handles ---

TEST_F(HostGraphTest, HandlesThatAreNotAliveAreRefused) {
  Twin fallback;
  const KernelOp op = CallOf(fallback);
  Add(op);
  const GraphExec exec = Instantiate();
  driver_->DestroyGraph(graph_);
  EXPECT_NE(*driver_->CreateGraph(0), graph_);
  const absl::Status gone = TryAdd(op).status();
  EXPECT_EQ(gone.code(), kRefused);
  EXPECT_THAT(Text(gone), HasSubstr("graph is not alive"));
  EXPECT_EQ(driver_->Instantiate(graph_).status().code(), kRefused);
  LaunchAndFinish(exec);
  EXPECT_EQ(fallback.calls, 1);

  driver_->DestroyExec(exec);
  graph_ = *driver_->CreateGraph(0);
  EXPECT_NE(Instantiate(), exec);
  for (const absl::Status& status : {driver_->LaunchGraph(exec, stream_), driver_->Upload(exec, stream_),
                                     Set(exec, 0, op), driver_->EnableNode(exec, 0, true)}) {
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), HasSubstr("instance of a graph is not alive"));
  }
}

TEST_F(HostGraphTest, AGraphAndItsStreamAreOfOneDevice) {
  for (const int device : {-1, 2}) EXPECT_EQ(driver_->CreateGraph(device).status().code(), kRefused);
  const GraphExec exec = Instantiate();
  const Stream other = *driver_->CreateStream(1, 0), gone = *driver_->CreateStream(0, 0);
  driver_->DestroyStream(gone);
  EXPECT_EQ(driver_->Upload(exec, stream_), absl::OkStatus());
  for (const Stream stream : {other, gone}) {
    EXPECT_EQ(driver_->Upload(exec, stream).code(), kRefused);
    EXPECT_EQ(driver_->LaunchGraph(exec, stream).code(), kRefused);
  }
  EXPECT_THAT(Text(driver_->LaunchGraph(exec, other)), AllOf(HasSubstr("device 0"), HasSubstr("device 1")));
}

TEST_F(HostGraphTest, ANodeThatIsNotThereIsRefused) {
  Twin fallback;
  const KernelOp op = CallOf(fallback);
  Add(op);
  const GraphExec exec = Instantiate();
  Add(op);  // of the graph, not of the exec
  for (const int32_t node : {-1, 1}) {
    EXPECT_EQ(Set(exec, node, op).code(), kRefused);
    EXPECT_THAT(Text(driver_->EnableNode(exec, node, false)), HasSubstr(absl::StrCat("no node ", node)));
  }
}

TEST_F(HostGraphTest, ACallOfTheHostStaysAsItIs) {
  Twin fallback;
  const HostCall call{[](void*) {}, nullptr};
  const int32_t node = driver_->AddHost(graph_, {}, call).value();
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Set(exec, node, CallOf(fallback)).code(), kRefused);
  EXPECT_THAT(Text(driver_->EnableNode(exec, node, false)), HasSubstr("calls the host"));
  LaunchAndFinish(exec);
}

// --- what is refused as a node ---

TEST_F(HostGraphTest, ANodeComesAfterEarlierNodesEachNamedOnce) {
  Twin fallback;
  const KernelOp op = CallOf(fallback);
  EXPECT_EQ(Add(op), 0);
  for (const std::vector<int32_t>& after : {std::vector<int32_t>{-1}, {1}, {0, 2}, {0, 0}}) {
    const absl::Status status = TryAdd(op, after).status();
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("node 1 of"), HasSubstr(absl::StrCat("node ", after.back()))));
  }
  EXPECT_EQ(Add(op, {0}), 1);
}

TEST_F(HostGraphTest, WhatAStreamRefusesAGraphDoes) {
  std::byte *const device = Device(100), *const other = Device(100, 1), *const pinned = Pinned(100);
  std::vector<std::byte> pageable(100);
  for (const CopyOp& op :
       {CopyOp{.dst = device, .src = pageable.data(), .width = 100}, CopyOp{.dst = other, .src = pinned, .width = 100},
        CopyOp{.dst = device, .src = pinned, .width = 101},
        CopyOp{.dst = device, .src = pinned, .width = 10, .height = 2, .dst_pitch = 9}}) {
    EXPECT_EQ(TryAdd(op).status(), driver_->Copy(stream_, op));
    EXPECT_EQ(TryAdd(op).status().code(), kRefused);
  }
  const FillOp fill{.dst = device, .count = 101};
  EXPECT_EQ(TryAdd(fill).status(), driver_->Fill(stream_, fill));
  EXPECT_EQ(TryAdd(fill).status().code(), kRefused);

  PackedArgs args;
  args.Add(pageable.data());
  KernelOp kernel = args.op();
  EXPECT_EQ(TryAdd(kernel).status(), driver_->Launch(stream_, kernel));
  EXPECT_EQ(TryAdd(kernel).status().code(), absl::StatusCode::kUnimplemented);
  kernel.call = &Arrive;
  EXPECT_EQ(TryAdd(kernel).status(), driver_->Launch(stream_, kernel));
  EXPECT_EQ(TryAdd(kernel).status().code(), kRefused);

  EXPECT_EQ(Add(FillOp{.dst = device, .count = 100}), 0) << "what was refused was added";
}

TEST_F(HostGraphTest, ABatchStaysOnOneDevice) {
  const BatchOp batch{.kind = CopyKind::kPeer, .pieces = Pinned<CopyPiece>(1), .count = 1, .size = {8, 8}};
  const absl::Status refused = TryAdd(batch).status();
  EXPECT_EQ(refused.code(), kRefused);
  EXPECT_THAT(Text(refused), HasSubstr("make each copy between devices a node"));
}

TEST_F(HostGraphTest, ANodeIsOnADeviceThatThereIs) {
  const FillOp fill{.dst = Device(16), .count = 16};
  const absl::Status refused = driver_->AddNode(graph_, {}, &fill, {.device = 2}).status();
  EXPECT_EQ(refused.code(), kRefused);
  EXPECT_THAT(Text(refused), HasSubstr("there is no device 2; this driver has 2"));
  EXPECT_EQ(driver_->AddNode(graph_, {}, &fill, {.device = 1}).status().code(), kRefused) << "memory of device 0";
}

TEST_F(HostGraphTest, OperationsOfNothingAreRefused) {
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  const auto rows = [](void* const*, int64_t, int64_t) {};
  Twin fallback;
  KernelOp no_blocks = CallOf(fallback);
  no_blocks.grid[1] = 0;
  for (const absl::Status& status :
       {TryAdd(CopyOp{.dst = device, .src = pinned}).status(),
        TryAdd(CopyOp{.dst = device, .src = pinned, .width = 1, .height = 0}).status(),
        TryAdd(FillOp{.dst = device}).status(), TryAdd(FillOp{.dst = device, .count = 1, .depth = 0}).status(),
        TryAdd(BatchOp{.pieces = Pinned<CopyPiece>(1)}).status(), TryAdd(KernelOp{.range = rows}).status(),
        TryAdd(no_blocks).status()}) {
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), HasSubstr("disable the node"));
  }
}

TEST_F(HostGraphTest, SlicesThatLieNoWholeRowsApartAreRefused) {
  std::byte *const device = Device(1000), *const pinned = Pinned(1000);
  CopyOp op{.dst = device,
            .src = pinned,
            .width = 8,
            .height = 2,
            .depth = 3,
            .dst_pitch = 10,
            .src_pitch = 8,
            .dst_slice = 30,
            .src_slice = 24};
  EXPECT_EQ(TryAdd(op).status(), absl::OkStatus());
  op.dst_slice = 31;
  EXPECT_THAT(Text(TryAdd(op).status()), AllOf(HasSubstr("31"), HasSubstr("batch")));
  op.dst_slice = 30;
  op.src_slice = 25;
  EXPECT_EQ(TryAdd(op).status().code(), kRefused);
  op.height = 1;  // a plane, whatever its pitches
  EXPECT_EQ(TryAdd(op).status(), absl::OkStatus());
}

// --- batches ---

TEST_F(HostGraphTest, ATableIsReadAtEachLaunch) {
  constexpr size_t kHuge = std::numeric_limits<size_t>::max();
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  std::memset(pinned, 7, 16);
  auto* const table = Pinned<CopyPiece>(1);
  *table = {.dst = pinned, .src = device, .width = kHuge, .height = 3};  // not written yet
  const BatchOp op{.pieces = table, .count = 1, .size = {.bytes = 8, .largest = 8}};
  Add(FillOf(device, 16, 0));
  Add(op, {0});
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Set(exec, 1, op), absl::OkStatus());
  for (const size_t at : {0, 8}) {
    *table = {.dst = device + at, .src = pinned, .width = 8};
    LaunchAndFinish(exec);
    std::vector<std::byte> expected(16, std::byte{0});
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(at), 8, std::byte{7});
    EXPECT_EQ(Download(device, 16), expected);
  }
}

TEST_F(HostGraphTest, ATableOutsidePinnedMemoryIsRefused) {
  const CopyPiece pageable{};
  auto* const table = Pinned<CopyPiece>(2);
  const BatchOp fits{.pieces = table, .count = 2, .size = {8, 8}};
  Add(fits);
  const GraphExec exec = Instantiate();
  for (const BatchOp& op :
       {BatchOp{.pieces = &pageable, .count = 1, .size = {8, 8}}, BatchOp{.pieces = table, .count = 3, .size = {8, 8}},
        BatchOp{.pieces = nullptr, .count = 1, .size = {8, 8}},
        BatchOp{.pieces = table, .count = (size_t{1} << 58) + 1, .size = {8, 8}}}) {  // 64 bytes, if it overflows
    EXPECT_EQ(TryAdd(op).status().code(), kRefused);
    EXPECT_THAT(Text(TryAdd(op).status()), HasSubstr("table"));
    EXPECT_EQ(Set(exec, 0, op).code(), kRefused);
  }
}

TEST_F(HostGraphTest, AnUnsoundPieceRefusesTheLaunchWhichThenHasDoneNothing) {
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  auto* const table = Pinned<CopyPiece>(2);
  Twin fallback;
  Add(CallOf(fallback));
  Add(BatchOp{.pieces = table, .count = 2, .size = {24, 16}});
  const GraphExec exec = Instantiate();
  table[0] = {.dst = device, .src = pinned, .width = 16};
  table[1] = {.dst = device + 1, .src = pinned, .width = 16};
  const absl::Status status = driver_->LaunchGraph(exec, stream_);
  EXPECT_EQ(status.code(), kRefused);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("node 1"), HasSubstr("piece 1")));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(fallback.calls, 0);
  table[1].dst = device;
  LaunchAndFinish(exec);
  EXPECT_EQ(fallback.calls, 1);
}

// A GPU reads the table when the batch's turn comes, so a table that changes before is a mistake there.
TEST_F(HostGraphTest, ATableThatChangesTooEarlyFailsTheRun) {
  auto* const table = Pinned<CopyPiece>(1);
  *table = {.dst = Device(16), .src = Pinned(16), .width = 16};
  Latch& held = NewLatch();
  RunFault fault;
  Add(BatchOp{.pieces = table, .count = 1, .size = {8, 8}, .tag = {&fault, 3}}, {Add(CallOf(held))});
  Launch(Instantiate());
  ASSERT_TRUE(held.AwaitArrived());
  table->width = 8;
  held.Open();
  ASSERT_TRUE(Finish(stream_));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 3);
  EXPECT_THAT(Text(fault.status()), HasSubstr("table"));
}

TEST_F(HostGraphTest, MemoryFreedSinceRefusesTheLaunch) {
  std::byte* const device = Device(16);
  Add(FillOf(Device(16), 16, 1));
  Add(FillOf(device, 16, 1));
  const GraphExec exec = Instantiate();
  driver_->FreeDevice(0, device);
  const absl::Status status = driver_->LaunchGraph(exec, stream_);
  EXPECT_EQ(status.code(), kRefused);
  EXPECT_THAT(Text(status), HasSubstr("node 1 of"));
  EXPECT_EQ(driver_->EnableNode(exec, 1, false), absl::OkStatus());
  LaunchAndFinish(exec);
}

// --- what is set ---

TEST_F(HostGraphTest, ANodeKeepsItsKindAndACopyItsDirection) {
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  Twin fallback;
  const CopyOp copy{.dst = device, .src = pinned, .width = 16};
  const FillOp fill = FillOf(device, 16, 3);
  const BatchOp batch{.pieces = Pinned<CopyPiece>(1), .count = 1, .size = {8, 8}};
  const KernelOp kernel = CallOf(fallback);
  const NodeOp ops[] = {&copy, &batch, &fill, &kernel};
  for (const NodeOp& op : ops) ASSERT_TRUE(driver_->AddNode(graph_, {}, op, {}).ok());
  const GraphExec exec = Instantiate();
  for (int32_t node = 0; node < 4; ++node) {
    for (size_t i = 0; i < 4; ++i) {
      const absl::Status status = driver_->SetNode(exec, node, ops[i]);
      EXPECT_EQ(status.ok(), static_cast<size_t>(node) == i) << node << ' ' << status;
      if (!status.ok()) {
        EXPECT_THAT(Text(status), HasSubstr("keeps its kind"));
      }
    }
  }
  CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = 16};
  EXPECT_EQ(Set(exec, 0, down).code(), kRefused);
  EXPECT_THAT(Text(Set(exec, 0, down)), HasSubstr("direction"));
}

TEST_F(HostGraphTest, ACopyTakesNewAddressesAsALineOnly) {
  std::byte *const device = Device(100), *const pinned = Pinned(100);
  const CopyOp line{.dst = device, .src = pinned, .width = 50};
  const CopyOp dense{.dst = device, .src = pinned, .width = 5, .height = 20, .dst_pitch = 5, .src_pitch = 5};
  const CopyOp plane{.dst = device, .src = pinned, .width = 4, .height = 20, .dst_pitch = 5, .src_pitch = 5};
  for (const CopyOp& op : {line, dense, plane}) Add(op);
  const GraphExec exec = Instantiate();
  EXPECT_EQ(Set(exec, 0, dense), absl::OkStatus());
  EXPECT_EQ(Set(exec, 1, line), absl::OkStatus());
  EXPECT_THAT(Text(Set(exec, 0, plane)), AllOf(HasSubstr("lines only"), HasSubstr("batch")));
  EXPECT_EQ(Set(exec, 2, line).code(), kRefused);
  EXPECT_EQ(Set(exec, 2, plane).code(), kRefused);
}

TEST_F(HostGraphTest, WhatIsSetLeavesEarlierLaunchesAlone) {
  std::byte* const device = Device(3);
  std::byte* const pinned = Pinned(3);
  Twin fallback;
  Add(FillOf(device, 1, 1));
  Add(CallOf(fallback), {0});
  const GraphExec exec = Instantiate();
  Latch& held = NewLatch();
  Hold(stream_, held);
  Launch(exec);  // none of it can begin
  for (int i = 1; i < 3; ++i) {
    ASSERT_EQ(Set(exec, 0, FillOf(device + i, 1, 1 + i)), absl::OkStatus());
    ASSERT_EQ(driver_->EnableNode(exec, 1, i == 2), absl::OkStatus());
    Launch(exec);
  }
  ASSERT_EQ(driver_->EnableNode(exec, 1, false), absl::OkStatus());
  driver_->DestroyExec(exec);
  std::memset(pinned, 9, 3);
  held.Open();
  EXPECT_THAT(Download(device, 3), ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}));
  EXPECT_EQ(fallback.calls, 2);
}

// --- who runs what, when ---

TEST_F(HostGraphTest, NodesThatNothingOrdersRunAtOnceOnAllEngines) {
  Latch &kernels = NewLatch(), &behind_copies = NewLatch();
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  Add(CallOf(kernels));
  Add(CallOf(kernels));
  const int32_t up = Add(CopyOp{.dst = device, .src = pinned, .width = 16});
  const int32_t down = Add(CopyOp{.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = 16}, {up});
  Add(CallOf(behind_copies), {down});
  Launch(Instantiate());
  EXPECT_TRUE(kernels.AwaitArrived(2));
  EXPECT_TRUE(behind_copies.AwaitArrived());
  const Event end = *driver_->CreateEvent(0, false);
  ASSERT_TRUE(driver_->Record(end, stream_).ok());
  behind_copies.Open();
  EXPECT_FALSE(driver_->Query(end).value()) << "two nodes are held";
  kernels.Open();
  EXPECT_TRUE(Finish(stream_));
}

TEST_F(HostGraphTest, OfKernelsThatCouldBeginTheLowestPriorityDoesThenTheFirst) {
  Remake({.threads_per_device = 1, .memory_bytes = 1 << 20});
  std::vector<int> seen;
  const int priorities[] = {2, 0, 1, 0, 1};
  std::vector<Runner> runners(std::size(priorities));
  for (int i = 0; i < 5; ++i) {
    runners[static_cast<size_t>(i)] = {&seen, i};
    Add(KernelOp{.call = &Runner::Call, .callable = &runners[static_cast<size_t>(i)]}, {}, priorities[i]);
  }
  const GraphExec exec = Instantiate();
  Latch& held = NewLatch();
  Hold(*driver_->CreateStream(0, 0), held);
  Launch(exec);
  held.Open();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_THAT(seen, ElementsAre(1, 3, 2, 4, 0));
}

TEST_F(HostGraphTest, AGraphOfManyNodesTakesLittleOfItsStreamsRoom) {
  constexpr int kNodes = 3 * static_cast<int>(kMostQueued), kLaunches = 300;
  Twin fallback;
  for (int i = 0; i < kNodes; ++i) Add(CallOf(fallback));
  const GraphExec wide = Instantiate();
  graph_ = *driver_->CreateGraph(0);
  Add(CallOf(fallback));
  const GraphExec small = Instantiate();
  Latch& held = NewLatch();
  Hold(stream_, held);
  Launch(wide);  // none of these waits for room
  for (int i = 0; i < kLaunches; ++i) Launch(small);
  held.Open();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(fallback.calls, kNodes + kLaunches);
}

TEST_F(HostGraphTest, AFullStreamTakesGraphsWhenItHasRoom) {
  Twin fallback;
  Add(CallOf(fallback));
  const GraphExec exec = Instantiate();
  constexpr int kLaunches = 2000;  // fill the stream
  Latch& held = NewLatch();
  Hold(stream_, held);
  std::atomic<int> launched{0};
  std::thread submitter([&] {
    for (; launched < kLaunches; ++launched) ASSERT_TRUE(driver_->LaunchGraph(exec, stream_).ok());
  });
  held.Open();
  submitter.join();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(fallback.calls, kLaunches);
}

TEST_F(HostGraphTest, DestroyingTheDriverRunsLaunchedGraphsToTheirEnd) {
  constexpr int kRounds = 200;
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  Latch& held = NewLatch();
  Twin fallback;
  int32_t last = Add(CallOf(held));
  for (int i = 0; i < kRounds; ++i) {  // from engine to engine
    last = Add(CopyOp{.dst = device, .src = pinned, .width = 16}, {last});
    last = Add(CopyOp{.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = 16}, {last});
    last = Add(CallOf(fallback), {last});
  }
  Launch(Instantiate());
  ASSERT_TRUE(held.AwaitArrived());
  std::thread opener([&held] { held.Open(); });
  driver_.reset();
  opener.join();
  EXPECT_EQ(fallback.calls, kRounds);
}

TEST_F(HostGraphTest, AfterAFailedNodeTheRunsOtherNodesAreSkippedAndTheRestGoesOn) {
  Twin failing, skipped, last;
  failing.result = absl::DataLossError("broken");
  RunFault fault;
  const int32_t first = Add(CallOf(failing, {&fault, 3}));
  const int32_t second = Add(CallOf(skipped, {&fault, 4}), {first});
  Add(CallOf(last), {second});
  LaunchAndFinish(Instantiate());
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 3);
  EXPECT_EQ(fault.status(), failing.result);
  EXPECT_EQ(skipped.calls, 0);
  EXPECT_EQ(last.calls, 1);
}

TEST_F(HostGraphTest, OnlyEventsRingTheBell) {
  Twin fallback;
  Add(CallOf(fallback), {Add(CallOf(fallback))});
  const uint64_t before = event_count_.ticket();
  Launch(Instantiate());
  driver_.reset();  // runs it to its end
  EXPECT_EQ(event_count_.ticket(), before);
}

// A node that looks whether those before it have run.
struct Checker {
  std::vector<const Checker*> before;
  std::atomic<bool> done{false};
  std::atomic<bool>* early = nullptr;
  static absl::Status Call(void* self, void* const* /*argv*/) {
    auto* const checker = static_cast<Checker*>(self);
    for (const Checker* other : checker->before) {
      if (!other->done) *checker->early = true;
    }
    checker->done = true;
    return absl::OkStatus();
  }
};

TEST_F(HostGraphTest, EdgesHoldInWhateverOrderWorkIsTakenUp) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Remake({.threads_per_device = 1 + static_cast<int>(seed % 4), .memory_bytes = 1 << 20, .order_seed = seed});
    std::mt19937 random(seed);
    std::atomic<bool> early{false};
    std::deque<Checker> checkers;
    for (int32_t i = 0; i < 40; ++i) {
      Checker& checker = checkers.emplace_back();
      checker.early = &early;
      std::vector<int32_t> after;
      for (int32_t j = 0; j < i; ++j) {
        if (random() % 8 != 0) continue;
        after.push_back(j);
        checker.before.push_back(&checkers[static_cast<size_t>(j)]);
      }
      Add(KernelOp{.call = &Checker::Call, .callable = &checker}, after, static_cast<int>(random() % 3));
    }
    const GraphExec exec = Instantiate();
    const auto off = static_cast<size_t>(random() % 40);
    ASSERT_TRUE(driver_->EnableNode(exec, static_cast<int32_t>(off), false).ok());
    for (Checker& checker : checkers) {  // who comes after it comes after those before it
      const std::vector<const Checker*>& before = checkers[off].before;
      if (std::erase(checker.before, &checkers[off]) == 0) continue;
      checker.before.insert(checker.before.end(), before.begin(), before.end());
    }
    LaunchAndFinish(exec);
    EXPECT_FALSE(early) << "seed " << seed;
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(checkers[i].done, i != off) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::driver::host::host_graph_test
