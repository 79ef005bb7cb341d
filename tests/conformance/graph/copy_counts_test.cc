// How many copies, bytes and allocations given graphs take, to the byte, and how often a launch asks what kind its
// memory is: counted at the driver interface, behind all of the library.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#include "tests/support/sanitized.h"

namespace penstock::conformance::copy_counts_test {
namespace {

using driver::checked::CallKind;
using driver::checked::Totals;

constexpr int64_t kN = 1000, kBytes = kN * 4;

struct AddOneAt {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> x) const { x(i.y, i.x) += 1; }
};
// Of rows of `columns`: the sum with the row below.
struct AddRowBelow {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t columns, const int32_t* x, int32_t* y) const {
    y[i] = x[i] + x[i + columns];
  }
};

class CopyCounts : public GraphConformance {
 protected:
  // What one run does, once the executable is there.
  template <class Bind>
  Totals OfOneRun(const Graph& graph, Bind bind) {
    Totals done;
    absl::StatusOr<Executable> exec = runtime_->Compile(graph);
    EXPECT_OK(exec.status());
    if (!exec.ok()) return done;
    Bindings io = exec->bindings();
    bind(io);
    const Totals before = checks_->witness().totals();
    const absl::StatusOr<penstock::Run> run = exec->Launch(io);
    EXPECT_OK(run.status());
    if (!run.ok()) return done;
    EXPECT_OK(run->Wait());
    return checks_->witness().totals() - before;
  }
  // Of copies up to 64 KiB: graphs have them as batches of one piece.
  Totals Small(Totals of_streams) const {
    Totals all = of_streams;
    if (!in_graphs()) return all;
    all.pieces += all.uploads.calls + all.downloads.calls;
    all.batch_uploads = std::exchange(all.uploads, {});
    all.batch_downloads = std::exchange(all.downloads, {});
    return all;
  }
  // How often each of two launches asks what kind its memory is. Of 40 inputs, i is bound to memory(i).
  template <class Memory>
  int64_t Inspections(Where where, Memory memory) {
    Graph g("forty");
    std::vector<BufferHandle<int32_t>> x;
    for (size_t i = 0; i < kInputs; ++i) x.push_back(g.Input<int32_t>("x" + std::to_string(i), kEach, where));
    g.ParallelFor("k", kEach, PlusOne{}, Read(x[0]), Write(g.Buffer<int32_t>("t", kEach)));
    const auto asked = [&] { return checks_->witness().log().count(CallKind::kInspect); };
    int64_t calls[2] = {0, 0};
    for (int64_t& of_launch : calls) {
      const int64_t before = asked();
      EXPECT_OK(RunOnce(g, [&](Bindings& io) {
        for (size_t i = 0; i < kInputs; ++i) io.Set(x[i], memory(i));
      }));
      of_launch = asked() - before;
    }
    EXPECT_EQ(calls[0], calls[1]);
    return calls[1];
  }
  static constexpr size_t kInputs = 40, kEach = 64;

  HostBuffer<int32_t> Pinned(int64_t n) {
    absl::StatusOr<HostBuffer<int32_t>> buffer = runtime_->MakeHostBuffer<int32_t>(n);
    EXPECT_OK(buffer.status());
    std::fill(buffer->begin(), buffer->end(), 1);
    return *std::move(buffer);
  }
};

TEST_P(CopyCounts, AnInputIsCopiedOnceForAllReaders) {
  Graph g("readers");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto unread = g.Input<int32_t>("unread", kN, kPinned);
  std::vector<BufferHandle<int32_t>> y;
  for (int i = 0; i < 3; ++i) {
    y.push_back(g.Output<int32_t>("y" + std::to_string(i), kN, kPinned));
    g.ParallelFor("k" + std::to_string(i), kN, PlusOne{}, Read(x), Write(y.back()));
  }
  const HostBuffer<int32_t> memory[] = {Pinned(kN), Pinned(kN), Pinned(kN), Pinned(kN), Pinned(kN)};
  const Totals done = OfOneRun(g, [&](Bindings& io) {
    io.Set(x, memory[0]).Set(unread, memory[1]).Set(y[0], memory[2]).Set(y[1], memory[3]).Set(y[2], memory[4]);
  });
  EXPECT_EQ(done, Small({.uploads = {1, kBytes}, .downloads = {3, 3 * kBytes}}));
}

// Neither comes back what nobody writes, nor does what is only used inside.
TEST_P(CopyCounts, OnlyWhatWasWrittenComesBack) {
  Graph g("back");
  auto x = g.InOut<int32_t>("x", kN, kPinned), y = g.InOut<int32_t>("y", kN, kPinned);
  auto t = g.Buffer<int32_t>("t", kN);
  g.ParallelFor("inside", kN, PlusOne{}, Read(x), Write(t));
  g.ParallelFor("all", kN, PlusOne{}, Read(t), Write(y));
  const HostBuffer<int32_t> hx = Pinned(kN), hy = Pinned(kN);
  EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }),
            Small({.uploads = {1, kBytes}, .downloads = {1, kBytes}}));
}

TEST_P(CopyCounts, CopiesOfMoreThan64KiBAreTheCopyEnginesInGraphsToo) {
  constexpr int64_t kMost = 65536 / 4;
  for (const int64_t n : {kMost, kMost + 1}) {
    Graph g("sizes");
    auto x = g.InOut<int32_t>("x", n, kPinned);
    g.ParallelFor("change", n, AddOne{}, ReadWrite(x));
    const HostBuffer<int32_t> memory = Pinned(n);
    const Totals moved{.uploads = {1, n * 4}, .downloads = {1, n * 4}};
    EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(x, memory); }), n == kMost ? Small(moved) : moved);
    EXPECT_EQ(memory[static_cast<size_t>(n - 1)], 2);
  }
}

TEST_P(CopyCounts, BoxesMoveTheirOwnBytes) {
  constexpr int64_t kRows = 40, kColumns = 60, kTile = 24;
  Graph g("tile");
  auto image = g.Input<int32_t>("image", {kRows, kColumns}, kPinned);
  auto tile = g.Buffer<int32_t>("tile", {kTile, kTile});
  auto out = g.Output<int32_t>("out", {kTile, kTile}, kPinned);
  g.Copy("in", Read(image, Slice({3, 5}, {kTile, kTile})), Write(tile));
  g.ParallelFor("k", kTile * kTile, PlusOne{}, Read(tile), Write(out));
  const HostBuffer<int32_t> from = Pinned(kRows * kColumns), to = Pinned(kTile * kTile);
  constexpr int64_t kTileBytes = kTile * kTile * 4;
  EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(image, from).Set(out, to); }),
            Small({.uploads = {1, kTileBytes}, .downloads = {1, kTileBytes}}));
}

// With memory that is pinned, and with memory that is staged.
TEST_P(CopyCounts, NoMoreIsUploadedThanNodesRead) {
  for (const bool pinned : {true, false}) {
    Graph g("part");
    auto x = g.Input<int32_t>("x", kN), y = g.Output<int32_t>("y", 50, kPinned);
    g.ParallelFor("k", 50, PlusOne{}, Read(x, Slice(100, 50)), Write(y));
    const HostBuffer<int32_t> hx = Pinned(kN), hy = Pinned(50);
    const std::vector<int32_t> pageable(kN, 1);
    EXPECT_EQ(OfOneRun(g,
                       [&](Bindings& io) {
                         pinned ? io.Set(x, hx) : io.Set(x, pageable);
                         io.Set(y, hy);
                       }),
              Small({.uploads = {1, 50 * 4}, .downloads = {1, 50 * 4}}));
    EXPECT_EQ(hy[49], 2);
  }
}

TEST_P(CopyCounts, NoMoreIsBroughtBackThanNodesWrite) {
  for (const bool pinned : {true, false}) {
    Graph g("back in part");
    auto x = g.Input<int32_t>("x", 20, kPinned), y = g.InOut<int32_t>("y", kN);
    auto z = g.Output<int32_t>("z", {30, 40}, kPinned);
    g.ParallelFor("k", 20, PlusOne{}, Read(x), Write(y, Slice(10, 20)));
    g.Fill("columns", Write(z, Slice({5, 8}, {20, 16})), 7);
    const HostBuffer<int32_t> hx = Pinned(20), hy = Pinned(kN), hz = Pinned(30 * 40);
    std::vector<int32_t> pageable(kN, 1);
    const Totals done = OfOneRun(g, [&](Bindings& io) {
      pinned ? io.Set(y, hy) : io.Set(y, pageable);
      io.Set(x, hx).Set(z, hz);
    });
    Totals needed{.uploads = {1, 20 * 4}, .downloads = {2, 20 * 4 + 20 * 16 * 4}};
    needed = Small(needed);
    needed.fills = {1, 20 * 16 * 4};
    EXPECT_EQ(done, needed);
    const int32_t* const got = pinned ? hy.data() : pageable.data();
    EXPECT_EQ(std::count(got, got + kN, 2), 20);
    EXPECT_EQ(std::count(got, got + kN, 1), kN - 20);
    EXPECT_EQ(std::count(hz.begin(), hz.end(), 7), 20 * 16);
  }
}

TEST_P(CopyCounts, PartsEndWhereTheBufferDoesInTheRun) {
  constexpr int64_t kMost = 40, kRows = 7, kColumns = 60;
  Graph g("cut");
  const auto rows = g.Param<int64_t>("rows", AtMost(kMost));
  auto x = g.InOut<int32_t>("x", {rows, kColumns}, kPinned);
  g.ParallelFor("k", {rows, 20}, AddOneAt{}, ReadWrite(x, Slice({0, 10}, {rows, 20})));
  const HostBuffer<int32_t> memory = Pinned(kMost * kColumns);
  for (const int64_t count : {kRows, kMost}) {
    const int64_t bytes = count * 20 * 4;
    std::fill(memory.begin(), memory.end(), 1);
    EXPECT_EQ(OfOneRun(g,
                       [&](Bindings& io) {
                         io.Set(rows, count).Set(x, std::span(memory.data(), static_cast<size_t>(count * kColumns)));
                       }),
              Small({.uploads = {1, bytes}, .downloads = {1, bytes}}));
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 2), count * 20);
  }
}

// Each of two devices has half of the rows; between them go the rows at the border, and nothing else.
TEST_P(CopyCounts, HaloRowsAloneGoBetweenDevices) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "needs two devices";
  constexpr int64_t kRows = 16, kColumns = 40, kHalf = kRows / 2, kRowBytes = kColumns * 4;
  constexpr int kSteps = 3;
  Graph g("halo");
  auto x = g.Input<int32_t>("x", {kRows, kColumns}, kPinned), y = g.Output<int32_t>("y", {kRows, kColumns}, kPinned);
  const BufferHandle<int32_t> t[2] = {g.Buffer<int32_t>("t0", {kRows, kColumns}),
                                      g.Buffer<int32_t>("t1", {kRows, kColumns})};
  const auto half = [](int device) { return Slice({device * kHalf, 0}, {kHalf, kColumns}); };
  for (int device = 0; device < 2; ++device) {
    g.ParallelFor("begin" + std::to_string(device), kHalf * kColumns, PlusOne{}, Read(x, half(device)),
                  Write(t[0], half(device)))
        .On(device);
  }
  for (int step = 0; step < kSteps; ++step) {
    const auto &from = t[step % 2], &to = t[(step + 1) % 2];
    const std::string number = std::to_string(step);
    g.ParallelFor("top" + number, kHalf * kColumns, AddRowBelow{}, kColumns,
                  Read(from, Slice({0, 0}, {kHalf + 1, kColumns})), Write(to, half(0)))
        .On(0);
    g.ParallelFor("bottom" + number, (kHalf - 1) * kColumns, AddRowBelow{}, kColumns, Read(from, half(1)),
                  Write(to, Slice({kHalf, 0}, {kHalf - 1, kColumns})))
        .On(1);
    g.Fill("edge" + number, Write(to, Slice({kRows - 1, 0}, {1, kColumns})), 1).On(1);
  }
  for (int device = 0; device < 2; ++device) {
    g.ParallelFor("end" + std::to_string(device), kHalf * kColumns, PlusOne{}, Read(t[kSteps % 2], half(device)),
                  Write(y, half(device)))
        .On(device);
  }
  const HostBuffer<int32_t> hx = Pinned(kRows * kColumns), hy = Pinned(kRows * kColumns);
  const Totals done = OfOneRun(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); });
  EXPECT_EQ(done, Small({.uploads = {2, kRows * kRowBytes},
                         .downloads = {2, kRows * kRowBytes},
                         .peer = {kSteps, kSteps * kRowBytes},
                         .fills = {kSteps, kSteps * kRowBytes}}));
  EXPECT_EQ(hy[0], 1 + 2 * 8);  // each step doubles, far from the edge
}

TEST_P(CopyCounts, FillsOfBoxesWriteTheirOwnBytes) {
  Graph g("border");
  auto image = g.Output<int32_t>("image", {40, 60}, kPinned);
  g.Fill("all", image, 1);
  g.Fill("column", Write(image, Slice({0, 59}, {40, 1})), 2);
  const HostBuffer<int32_t> memory = Pinned(40 * 60);
  EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(image, memory); }),
            Small({.downloads = {1, 40 * 60 * 4}, .fills = {2, 40 * 60 * 4 + 40 * 4}}));
}

TEST_P(CopyCounts, SmallCopiesAreOneSubmissionEachWay) {
  constexpr int kCount = 8;
  Graph g("many");
  std::vector<BufferHandle<int32_t>> x, y;
  for (int i = 0; i < kCount; ++i) {
    x.push_back(g.Input<int32_t>("x" + std::to_string(i), kN, kPinned));
    y.push_back(g.Output<int32_t>("y" + std::to_string(i), kN, kPinned));
    g.ParallelFor("k" + std::to_string(i), kN, PlusOne{}, Read(x.back()), Write(y.back()));
  }
  std::vector<HostBuffer<int32_t>> memory;
  for (int i = 0; i < 2 * kCount; ++i) memory.push_back(Pinned(kN));
  const Totals done = OfOneRun(g, [&](Bindings& io) {
    for (size_t i = 0; i < kCount; ++i) io.Set(x[i], memory[2 * i]).Set(y[i], memory[2 * i + 1]);
  });
  EXPECT_EQ(
      done,
      (Totals{.batch_uploads = {1, kCount * kBytes}, .batch_downloads = {1, kCount * kBytes}, .pieces = 2 * kCount}));
}

TEST_P(CopyCounts, BoundDeviceMemoryIsNotCopied) {
  Graph first("first"), second("second");
  auto x = first.Input<int32_t>("x", kN, kPinned), out = first.Output<int32_t>("out", kN, kDevice);
  first.ParallelFor("k", kN, PlusOne{}, Read(x), Write(out));
  auto in = second.InOut<int32_t>("in", kN, kDevice), y = second.Output<int32_t>("y", kN, kPinned);
  second.ParallelFor("change", kN, AddOne{}, ReadWrite(in));
  second.ParallelFor("k", kN, PlusOne{}, Read(in), Write(y));
  const HostBuffer<int32_t> hx = Pinned(kN), hy = Pinned(kN);
  const absl::StatusOr<DeviceBuffer<int32_t>> memory = runtime_->MakeDeviceBuffer<int32_t>(kN);
  ASSERT_OK(memory.status());
  EXPECT_EQ(OfOneRun(first, [&](Bindings& io) { io.Set(x, hx).Set(out, *memory); }), Small({.uploads = {1, kBytes}}));
  EXPECT_EQ(OfOneRun(second, [&](Bindings& io) { io.Set(in, *memory).Set(y, hy); }), Small({.downloads = {1, kBytes}}));
}

TEST_P(CopyCounts, WhatIsNeededOnTwoDevicesIsCopiedToEachOnceUntilItIsWritten) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "needs two devices";
  Graph g("two");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto sum = g.InOut<int32_t>("sum", kN, kPinned);
  auto t = g.Buffer<int32_t>("t", kN);
  g.ParallelFor("make", kN, PlusOne{}, Read(x), Write(t)).On(0);
  for (const int device : {0, 1, 1, 0}) {  // the sum goes over and comes back, t goes over once
    g.ParallelFor("t" + std::to_string(g.model().nodes.size()), kN, AddTo{}, Read(t), ReadWrite(sum)).On(device);
  }
  g.ParallelFor("again", kN, AddOne{}, ReadWrite(t)).On(0);
  g.ParallelFor("last", kN, AddTo{}, Read(t), ReadWrite(sum)).On(1);  // both once more
  const HostBuffer<int32_t> hx = Pinned(kN), hs = Pinned(kN);
  EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(x, hx).Set(sum, hs); }),
            Small({.uploads = {2, 2 * kBytes}, .downloads = {1, kBytes}, .peer = {5, 5 * kBytes}}));
  EXPECT_EQ(hs[0], 1 + 4 * 2 + 3);
}

// Across runs only States stay.
TEST_P(CopyCounts, AStateIsNotCopiedByRunsThatUseItAtHome) {
  auto state = runtime_->MakeState<int32_t>("s", kN);
  ASSERT_OK(state.status());
  Graph g("state");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  g.ParallelFor("add", kN, AddTo{}, Read(x), ReadWrite(*state));
  const HostBuffer<int32_t> hx = Pinned(kN);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(OfOneRun(g, [&](Bindings& io) { io.Set(x, hx); }), Small({.uploads = {1, kBytes}}));
  }
}

TEST_P(CopyCounts, ALaunchAsksOnceForAllMemoryOfOneAllocation) {
  const HostBuffer<int32_t> one = Pinned(kInputs * kEach);
  const auto part_of = [](auto& memory) {
    return [&memory](size_t i) { return std::span(memory.data() + i * kEach, kEach); };
  };
  EXPECT_EQ(Inspections(kPinned, part_of(one)), 1);
  EXPECT_EQ(Inspections(kHost, part_of(one)), 1);
  std::vector<HostBuffer<int32_t>> own;
  for (size_t i = 0; i < kInputs; ++i) own.push_back(Pinned(kEach));
  EXPECT_EQ(Inspections(kPinned, [&](size_t i) { return std::span(own[i].data(), kEach); }), 1)
      << "they lie in one slab";
  absl::StatusOr<DeviceBuffer<int32_t>> device = runtime_->MakeDeviceBuffer<int32_t>(kInputs * kEach, 0);
  ASSERT_OK(device.status());
  Graph fill("fill");
  auto x = fill.Output<int32_t>("x", kInputs * kEach, kDevice);
  fill.Fill("five", x, 5);
  ASSERT_OK(RunOnce(fill, [&](Bindings& io) { io.Set(x, *device); }));
  EXPECT_EQ(Inspections(kDevice, part_of(*device)), 1);
}

TEST_P(CopyCounts, ALaunchAsksOnceForEachBufferThatIsNotPinned) {
  const HostBuffer<int32_t> pinned = Pinned(kInputs * kEach);
  const std::vector<int32_t> pageable(kInputs * kEach, 1);
  EXPECT_EQ(Inspections(kHost, [&](size_t i) { return std::span(pageable.data() + i * kEach, kEach); }), kInputs);
  EXPECT_EQ(Inspections(kHost,
                        [&](size_t i) {
                          const int32_t* const from = i % 2 == 0 ? pinned.data() : pageable.data();
                          return std::span(from + i * kEach, kEach);
                        }),
            1 + kInputs / 2);
}

// After the first run, runs allocate nothing: neither of the devices nor pinned.
TEST_P(CopyCounts, ThousandsOfRunsOfFortyBuffersAllocateNothing) {
  constexpr int kRuns = kSanitized ? 300 : 3000;
  constexpr int kThirds = 10;
  Graph g("forty");
  std::vector<BufferHandle<int32_t>> bound;
  std::vector<std::vector<int32_t>> memory;
  for (int i = 0; i < kThirds; ++i) {
    const std::string number = std::to_string(i);
    const int64_t n = i == 0 ? 20000 : 64;  // the first goes through the ring
    auto in = g.Input<int32_t>("in" + number, n), out = g.Output<int32_t>("out" + number, n);
    auto t = g.Buffer<int32_t>("t" + number, n), u = g.Buffer<int32_t>("u" + number, n, i % 2 == 0 ? kPinned : kDevice);
    g.ParallelFor("one" + number, n, PlusOne{}, Read(in), Write(t));
    g.ParallelFor("two" + number, n, PlusOne{}, Read(t), Write(u));
    g.ParallelFor("three" + number, n, PlusOne{}, Read(u), Write(out));
    for (const auto& b : {in, out}) {
      bound.push_back(b);
      memory.emplace_back(static_cast<size_t>(n), 1);
    }
  }
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (size_t i = 0; i < bound.size(); ++i) io.Set(bound[i], memory[i]);
  Totals after_first;
  for (int i = 0; i < kRuns; ++i) {
    absl::StatusOr<penstock::Run> run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    if (i == 0) after_first = checks_->witness().totals();
  }
  const Totals since = checks_->witness().totals() - after_first;
  EXPECT_EQ(since.device_allocations, Totals::Sum{});
  EXPECT_EQ(since.pinned_allocations, Totals::Sum{});
  EXPECT_GT(since.batch_uploads.calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Host, CopyCounts,
                         testing::Values(Target{"host:2", "stream", true}, Target{"host:2", "graph", true}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, CopyCounts,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::copy_counts_test
