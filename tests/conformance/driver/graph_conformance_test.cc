// Graphs: what nodes do, what they may be given instead, and what is refused, against plain loops on host memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "src/driver/copy_box.h"
#include "tests/conformance/driver/box_oracle.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::graph_conformance_test {
namespace {

constexpr int64_t kCount = 1000;
constexpr size_t kBytes = kCount * 4;

void FillWithNumbers(int32_t* data, int32_t first) {
  for (int32_t i = 0; i < kCount; ++i) data[i] = first + i * 7;
}

TEST_P(DriverConformance, AGraphOfEveryKindOfNodeDoesItsWorkAtEachLaunch) {
  int32_t *const from = Pinned<int32_t>(kCount), *const to = Pinned<int32_t>(2 * kCount);
  int32_t *const a = Device<int32_t>(kCount), *const b = Device<int32_t>(2 * kCount);
  CopyPiece* const table = Pinned<CopyPiece>(2);
  table[0] = {.dst = to, .src = b, .width = kBytes};
  table[1] = {.dst = to + kCount, .src = b + kCount, .width = kBytes};
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = a, .src = from, .width = kBytes};
  const Step3 args(a, kCount, 5);
  const KernelOp step = OpOf(probes().step, args, kCount);
  const CopyOp inside{.kind = CopyKind::kDeviceToDevice, .dst = b, .src = a, .width = kBytes};
  const FillOp fill{.dst = b + kCount, .pattern{std::byte{1}, std::byte{2}}, .pattern_size = 4, .count = kCount};
  const BatchOp down{
      .kind = CopyKind::kDeviceToHost, .pieces = table, .count = 2, .size = {.bytes = 2 * kBytes, .largest = kBytes}};
  const Graph graph = NewGraph();
  ASSERT_EQ(driver_->AddNode(graph, {}, &up, {}).value_or(-1), 0);
  ASSERT_EQ(driver_->AddNode(graph, After{0}, &step, {}).value_or(-1), 1);
  ASSERT_EQ(driver_->AddNode(graph, After{1}, &inside, {}).value_or(-1), 2);
  ASSERT_EQ(driver_->AddNode(graph, {}, &fill, {}).value_or(-1), 3);
  ASSERT_EQ(driver_->AddNode(graph, After{2, 3}, &down, {}).value_or(-1), 4);
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->Upload(exec, stream_));
  for (const int32_t first : {0, 1000, -77}) {
    FillWithNumbers(from, first);
    std::memset(to, 0x5a, 2 * kBytes);
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    for (int32_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(to[i], StepOf(first + i * 7, 5)) << i;
      ASSERT_EQ(to[kCount + i], 0x0201) << i;
    }
  }
}

TEST_P(DriverConformance, AGraphOfNothingMayBeLaunched) {
  const GraphExec exec = NewExec(NewGraph());
  ASSERT_OK(driver_->Upload(exec, stream_));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, UploadingAGraphDoesNoneOfItsWork) {
  int32_t* const data = Device<int32_t>(kCount);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = kBytes}));
  const Step3 args(data, kCount, 9);
  const KernelOp step = OpOf(probes().step, args, kCount);
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &step, {}).status());
  ASSERT_OK(driver_->Upload(NewExec(graph), stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(data, kBytes), Bytes(kBytes, std::byte{0}));
}

TEST_P(DriverConformance, AnExecIsTheGraphAsItWasWhenInstantiated) {
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  const Step3 first(data, 1, 1), second(data, 1, 100);
  const KernelOp one = OpOf(probes().step, first), another = OpOf(probes().step, second);
  const auto graph = driver_->CreateGraph(0);
  ASSERT_OK(graph.status());
  ASSERT_OK(driver_->AddNode(*graph, {}, &one, {}).status());
  const GraphExec before = NewExec(*graph);
  ASSERT_OK(driver_->AddNode(*graph, After{0}, &another, {}).status());
  const GraphExec after = NewExec(*graph);
  driver_->DestroyGraph(*graph);
  ASSERT_OK(driver_->LaunchGraph(before, stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, 1);
  ASSERT_OK(driver_->LaunchGraph(after, stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(1, 1), 100));
}

// Of one box, as an only node.
bool IsBatchesOnly(const Shape& s) {
  const CopyOp least = Collapse(s.Between(CopyKind::kDeviceToDevice, nullptr, nullptr));
  const auto whole = [](size_t slice, size_t pitch) { return pitch != 0 && slice % pitch == 0; };
  return least.depth > 1 && !(whole(least.dst_slice, least.dst_pitch) && whole(least.src_slice, least.src_pitch));
}

TEST_P(DriverConformance, NodesCopyBoxesOfEveryKindExactly) {
  constexpr size_t kBlock = 1 << 18;
  std::byte *const source = PinnedNoise(kBlock, 21), *const before = PinnedNoise(kBlock, 22);
  std::byte *const host = Pinned<std::byte>(kBlock), *const device = Device<std::byte>(kBlock);
  std::byte* const device_source = Device<std::byte>(kBlock);
  ASSERT_OK(Upload(stream_, device_source, source, kBlock));
  const Bytes from(source, source + kBlock);
  std::mt19937 random(20261122);
  int boxes = 0;
  while (boxes < 60) {
    const Shape shape = RandomShape(random, 60000);
    if (shape.dst_span() == 0 || IsBatchesOnly(shape)) continue;
    const auto kind = static_cast<CopyKind>(boxes++ % 3);
    const bool down = kind == CopyKind::kDeviceToHost;
    const CopyOp op =
        shape.Between(kind, down ? host : device, kind == CopyKind::kHostToDevice ? source : device_source);
    const CopyOp prepare{.kind = CopyKind::kHostToDevice, .dst = device, .src = before, .width = kBlock};
    const CopyOp fetch{.kind = CopyKind::kDeviceToHost, .dst = host, .src = device, .width = kBlock};
    std::memcpy(host, before, kBlock);
    const Graph graph = NewGraph();
    if (down) {
      ASSERT_OK(driver_->AddNode(graph, {}, &op, {}).status());
    } else {
      ASSERT_OK(driver_->AddNode(graph, {}, &prepare, {}).status());
      ASSERT_OK(driver_->AddNode(graph, After{0}, &op, {}).status());
      ASSERT_OK(driver_->AddNode(graph, After{1}, &fetch, {}).status());
    }
    ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + kBlock);
    CopyBox(shape, expected, 0, from, 0);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), host)) << shape << ", kind " << static_cast<int>(kind);
  }
}

TEST_P(DriverConformance, NodesFillBoxesOfEveryKindExactly) {
  constexpr size_t kBlock = 1 << 16;
  std::byte *const before = PinnedNoise(kBlock, 31), *const host = Pinned<std::byte>(kBlock);
  std::byte* const device = Device<std::byte>(kBlock);
  std::mt19937 random(20261123);
  for (int i = 0; i < 40; ++i) {
    FillOp fill{.dst = device, .pattern_size = 1u + static_cast<uint32_t>(i) % 16, .count = 1 + random() % 40};
    for (std::byte& b : fill.pattern) b = static_cast<std::byte>(i % 3 == 0 ? 7 : random());
    fill.height = 1 + random() % 6;
    fill.depth = 1 + random() % 4;
    fill.pitch = fill.count * fill.pattern_size + random() % 9;
    fill.slice = fill.pitch * fill.height + random() % 9;
    const CopyOp prepare{.kind = CopyKind::kHostToDevice, .dst = device, .src = before, .width = kBlock};
    const CopyOp fetch{.kind = CopyKind::kDeviceToHost, .dst = host, .src = device, .width = kBlock};
    const Graph graph = NewGraph();
    ASSERT_OK(driver_->AddNode(graph, {}, &prepare, {}).status());
    ASSERT_OK(driver_->AddNode(graph, After{0}, &fill, {}).status());
    ASSERT_OK(driver_->AddNode(graph, After{1}, &fetch, {}).status());
    ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(before, before + kBlock);
    FillBox(fill, expected, 0);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), host)) << i;
  }
}

// --- other parameters ---

TEST_P(DriverConformance, WhatIsSetCountsForLaterLaunchesOnly) {
  constexpr int kRows = 3;  // nobody knows what the others were for: each row is another launch's
  int32_t *const from = Pinned<int32_t>(2 * kCount), *const data = Device<int32_t>(kCount);
  int32_t* const to = Pinned<int32_t>(kRows * kCount);
  for (int32_t i = 0; i < 2 * kCount; ++i) from[i] = i * 3 - 1000;
  CopyOp up{.kind = CopyKind::kHostToDevice, .dst = data, .src = from, .width = kBytes};
  CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = to, .src = data, .width = kBytes};
  const Graph graph = NewGraph();
  GraphExec exec;
  {
    const Step3 args(data, kCount, 1);
    const KernelOp step = OpOf(probes().step, args, kCount);
    ASSERT_OK(driver_->AddNode(graph, {}, &up, {}).status());
    ASSERT_OK(driver_->AddNode(graph, After{0}, &step, {}).status());
    ASSERT_OK(driver_->AddNode(graph, After{1}, &down, {}).status());
    exec = NewExec(graph);
  }
  KernelLatch& latch = NewLatch();
  ASSERT_TRUE(Hold(stream_, latch));
  for (int32_t launch = 0; launch < kRows; ++launch) {
    Step3 args(data, launch == 2 ? kCount / 2 : kCount, 10 * launch + 1);
    const KernelOp step = OpOf(probes().step, args, launch == 2 ? kCount / 2 : kCount);
    up.src = from + (launch == 1 ? kCount : 0);
    down.dst = to + launch * kCount;
    down.width = launch == 1 ? kBytes / 2 : kBytes;
    ASSERT_OK(driver_->SetNode(exec, 0, &up));
    ASSERT_OK(driver_->SetNode(exec, 1, &step));
    ASSERT_OK(driver_->SetNode(exec, 2, &down));
    args.Scribble();
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  }
  std::memset(to, 0, kRows * kBytes);  // the launches are held
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  for (int32_t i = 0; i < kCount; ++i) {
    const bool low = i < kCount / 2;
    EXPECT_EQ(to[i], StepOf(from[i], 1)) << i;
    EXPECT_EQ(to[kCount + i], low ? StepOf(from[kCount + i], 11) : 0) << i;
    EXPECT_EQ(to[2 * kCount + i], low ? StepOf(from[i], 21) : from[i]) << i;
  }
}

TEST_P(DriverConformance, FillsMayBeGivenAnyOtherBoxAndPattern) {
  std::byte *const device = Device<std::byte>(4096), *const host = Pinned<std::byte>(4096);
  const FillOp line{.dst = device, .pattern_size = 1, .count = 100};
  const FillOp box{.dst = device + 1,
                   .pattern{std::byte{5}, std::byte{6}, std::byte{7}},
                   .pattern_size = 3,
                   .count = 5,
                   .height = 4,
                   .depth = 3,
                   .pitch = 20,
                   .slice = 101};
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &line, {}).status());
  const GraphExec exec = NewExec(graph);
  for (const FillOp& fill : {box, line, box}) {
    ASSERT_OK(driver_->Fill(stream_, {.dst = device, .pattern{std::byte{9}}, .count = 4096}));
    ASSERT_OK(driver_->SetNode(exec, 0, &fill));
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_OK(Download(stream_, host, device, 4096));
    ASSERT_TRUE(Finish(stream_));
    Bytes expected(4096, std::byte{9});
    FillBox(fill, expected, static_cast<size_t>(static_cast<std::byte*>(fill.dst) - device));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), host));
  }
}

TEST_P(DriverConformance, ABatchsTableIsReadWhenTheGraphRunsAndItsCountMayChange) {
  constexpr int kPieces = 40;
  int32_t *const from = Pinned<int32_t>(kPieces), *const data = Device<int32_t>(kPieces);
  CopyPiece* const table = Pinned<CopyPiece>(kPieces);
  for (int i = 0; i < kPieces; ++i) from[i] = i + 1;
  const auto batch_of = [&](size_t count) {
    return BatchOp{.kind = CopyKind::kHostToDevice, .pieces = table, .count = count, .size = {count * 4, 4}};
  };
  BatchOp batch = batch_of(kPieces);
  const Graph graph = NewGraph();  // before the table is written
  std::memset(static_cast<void*>(table), 0, kPieces * sizeof(CopyPiece));
  ASSERT_OK(driver_->AddNode(graph, {}, &batch, {}).status());
  const GraphExec exec = NewExec(graph);
  for (const int turn : {0, 7, 13}) {
    const int count = turn == 13 ? kPieces / 2 : kPieces;
    for (int i = 0; i < kPieces; ++i) table[i] = {.dst = data + i, .src = from + (i + turn) % kPieces, .width = 4};
    batch = batch_of(static_cast<size_t>(count));
    if (turn == 13) {
      ASSERT_OK(driver_->SetNode(exec, 0, &batch));
    }
    ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = kPieces * 4}));
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    const Bytes bytes = BytesOf(data, kPieces * 4);
    for (int i = 0; i < kPieces; ++i) {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * 4, 4);
      EXPECT_EQ(value, i < count ? (i + turn) % kPieces + 1 : 0) << turn << ", " << i;
    }
  }
}

TEST_P(DriverConformance, ANodeThatIsSwitchedOffDoesNothingUntilItIsSwitchedOn) {
  int32_t *const from = Pinned<int32_t>(2), *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  from[0] = 4;
  from[1] = 9;
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = data, .src = from, .width = 4};
  const FillOp fill{.dst = data, .count = 4};
  const Step3 args(data, 1, 2);
  const KernelOp step = OpOf(probes().step, args);
  const CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = out, .src = data, .width = 4};
  const Graph graph = NewGraph();
  const NodeOp ops[] = {&up, &fill, &step, &down};
  for (int32_t n = 0; n < 4; ++n) {
    ASSERT_EQ(driver_->AddNode(graph, n == 0 ? After{} : After{n - 1}, ops[n], {}).value_or(-1), n);
  }
  const GraphExec exec = NewExec(graph);
  const auto run = [&](std::array<bool, 4> enabled) -> int32_t {
    for (int32_t n = 0; n < 4; ++n) EXPECT_OK(driver_->EnableNode(exec, n, enabled[static_cast<size_t>(n)]));
    EXPECT_OK(driver_->LaunchGraph(exec, stream_));
    EXPECT_TRUE(Finish(stream_));
    return *out;
  };
  EXPECT_EQ(run({true, true, true, true}), 2);
  EXPECT_EQ(run({true, false, true, true}), 14);
  EXPECT_EQ(run({false, false, true, true}), 44) << "what the launch before has left";
  EXPECT_EQ(run({true, false, false, true}), 4);
  EXPECT_EQ(run({true, true, true, false}), 4) << "what the launch before has brought";
  EXPECT_EQ(run({true, true, true, true}), 2);

  // What is set while it is off leaves it off, and counts when it is on again.
  const CopyOp other_up{.kind = CopyKind::kHostToDevice, .dst = data, .src = from + 1, .width = 4};
  const FillOp other_fill{.dst = data, .pattern{std::byte{3}}, .count = 4};
  const Step3 others(data, 1, 50);
  const KernelOp other_step = OpOf(probes().step, others);
  const NodeOp other_ops[] = {&other_up, &other_fill, &other_step};
  EXPECT_EQ(run({false, false, false, true}), 2);
  for (int32_t n = 0; n < 3; ++n) {
    ASSERT_OK(driver_->SetNode(exec, n, other_ops[n]));
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(*out, 2) << n << " is off";
  }
  EXPECT_EQ(run({true, false, false, true}), 9);
  EXPECT_EQ(run({true, false, true, true}), 77);
  EXPECT_EQ(run({true, true, false, true}), 0x03030303);
}

TEST_P(DriverConformance, AGraphOfAThousandNodesRunsInOrderOfItsEdges) {
  constexpr int32_t kNodes = 1000;
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  const Graph graph = NewGraph();
  int32_t expected = 0;
  for (int32_t k = 0; k < kNodes; ++k) {
    const Step3 args(data, 1, k);
    const KernelOp step = OpOf(probes().step, args);
    ASSERT_EQ(driver_->AddNode(graph, k == 0 ? After{} : After{k - 1}, &step, {.priority = k % 5 - 2}).value_or(-1), k);
    expected = StepOf(expected, k);
  }
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, expected);
}

// --- refusals ---

TEST_P(DriverConformance, WhatNoNodeCanDoIsRefusedAndTheGraphGoesOn) {
  ExpectViolations();  // numbers of nodes that are not there
  std::byte *const device = Device<std::byte>(4096), *const pinned = Pinned<std::byte>(4096);
  CopyPiece* const table = Pinned<CopyPiece>(1);
  const CopyOp good{.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned, .width = 64};
  const CopyOp no_bytes{.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned, .width = 0};
  const BatchOp peers{.kind = CopyKind::kPeer, .pieces = table, .count = 1, .size = {8, 8}};
  const CopyOp crossed{.kind = CopyKind::kHostToDevice,
                       .dst = device,
                       .src = pinned,
                       .width = 8,
                       .height = 2,
                       .dst_pitch = 7,
                       .src_pitch = 8};
  const CopyOp askew{.kind = CopyKind::kHostToDevice,
                     .dst = device,
                     .src = pinned,
                     .width = 20,
                     .height = 5,
                     .depth = 4,
                     .dst_pitch = 32,
                     .src_pitch = 24,
                     .dst_slice = 32 * 6 + 1,
                     .src_slice = 24 * 5};
  const FillOp no_fill{.dst = device, .count = 0};
  const FillOp no_pattern{.dst = device, .pattern_size = 17, .count = 1};
  const BatchOp no_batch{.kind = CopyKind::kHostToDevice, .pieces = table, .count = 0};
  const BatchOp no_size{.kind = CopyKind::kHostToDevice, .pieces = table, .count = 1};
  const BatchOp no_table{.kind = CopyKind::kHostToDevice, .pieces = nullptr, .count = 1, .size = {4, 4}};
  const Step3 args(reinterpret_cast<int32_t*>(device), 1, 1);
  KernelOp no_blocks = OpOf(probes().step, args);
  no_blocks.grid[1] = 0;
  KernelOp no_rows = OpOf(probes().step, args);
  no_rows.rows = 0;
  const Graph graph = NewGraph();
  const NodeOp wrong[] = {&no_bytes, &peers,   &crossed,  &askew,     &no_fill, &no_pattern,
                          &no_batch, &no_size, &no_table, &no_blocks, &no_rows};
  for (size_t i = 0; i < std::size(wrong); ++i) {
    EXPECT_EQ(driver_->AddNode(graph, {}, wrong[i], {}).status().code(), absl::StatusCode::kInvalidArgument) << i;
  }
  for (const int32_t n : {0, -1, 5}) {
    EXPECT_FALSE(driver_->AddNode(graph, After{n}, &good, {}).ok()) << n;
  }
  EXPECT_EQ(driver_->AddNode(graph, {}, &good, {}).value_or(-1), 0) << "what is refused is no node";
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  EXPECT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 64), Bytes(pinned, pinned + 64));
}

TEST_P(DriverConformance, WhatANodeCannotBeGivenIsRefusedAndTheExecGoesOn) {
  ExpectViolations();  // numbers of nodes that are not there
  std::byte *const device = Device<std::byte>(4096), *const pinned = PinnedNoise(4096, 41);
  std::byte* const host = Pinned<std::byte>(4096);
  const Bytes source(pinned, pinned + 4096);
  const CopyOp line{.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned, .width = 64};
  const CopyOp plane{.kind = CopyKind::kHostToDevice,
                     .dst = device + 1024,
                     .src = pinned + 1024,
                     .width = 8,
                     .height = 4,
                     .dst_pitch = 16,
                     .src_pitch = 8};
  CopyOp moved = plane;
  moved.dst = device + 2048;
  const CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = pinned, .src = device, .width = 64};
  const CopyOp no_bytes{.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned};
  const FillOp fill{.dst = device, .count = 64};
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &line, {}).status());
  ASSERT_OK(driver_->AddNode(graph, {}, &plane, {}).status());
  const GraphExec exec = NewExec(graph);
  Bytes expected(4096, std::byte{9});
  std::copy_n(source.begin(), 64, expected.begin());
  for (int row = 0; row < 4; ++row) {
    std::copy_n(source.begin() + 1024 + row * 8, 8, expected.begin() + 1024 + row * 16);
  }
  const auto expect_as_it_was = [&] {
    EXPECT_OK(driver_->Fill(stream_, {.dst = device, .pattern{std::byte{9}}, .count = 4096}));
    EXPECT_OK(driver_->LaunchGraph(exec, stream_));
    EXPECT_OK(Download(stream_, host, device, 4096));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), host)) << "what was refused is done";
    EXPECT_TRUE(std::equal(source.begin(), source.end(), pinned)) << "what was refused is done";
  };
  const std::pair<int32_t, NodeOp> wrong[] = {
      {0, &fill},  {0, &down}, {0, &plane}, {0, &no_bytes}, {1, &plane},
      {1, &moved}, {1, &line}, {2, &line},  {-1, &line}};  // a plane is refused even as it is
  for (size_t i = 0; i < std::size(wrong); ++i) {
    SCOPED_TRACE(i);
    const absl::StatusCode code = driver_->SetNode(exec, wrong[i].first, wrong[i].second).code();
    EXPECT_TRUE(code == absl::StatusCode::kInvalidArgument || (GetParam().checked && code != absl::StatusCode::kOk));
    expect_as_it_was();
  }
  EXPECT_FALSE(driver_->EnableNode(exec, 2, false).ok());
  expect_as_it_was();
}

}  // namespace
}  // namespace penstock::driver::conformance::graph_conformance_test
