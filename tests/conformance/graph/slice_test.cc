// Slices, aliases and Unordered through the whole library, on every driver: what nodes see of a part of a buffer, and
// that parts which share no element are independent.
#include <algorithm>
#include <numeric>

#include "graph/plan/plan.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::slice_test {
namespace {

// out = in + 3 * (y * 100 + x), with indices from the part's own corner.
struct AddIndex {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> in, View<int32_t> out) const {
    out(i.y, i.x) = in(i.y, i.x) + static_cast<int32_t>(3 * (i.y * 100 + i.x));
  }
};
struct Label {
  int32_t label;
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> out) const {
    out(i.y, i.x) = label * 10000 + static_cast<int32_t>(i.y * out.width + i.x);
  }
};
struct Label3 {
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> out) const {
    out(i.z, i.y, i.x) = static_cast<int32_t>(((i.z * out.height + i.y) * out.width + i.x) + 1000 * out.depth);
  }
};
// Of parts without rows: how wide they are.
struct AddWidths {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> a, View<const int32_t> b, int32_t* out) const {
    out[i] = static_cast<int32_t>(i + a.height * 1000 + a.width + b.height * 1000 + b.width);
  }
};
// CsrRows above and below summed, where the part has them; `first` is the part's first row that is written.
struct Blur {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> in, View<int32_t> out, int64_t first) const {
    const int64_t y = i.y + first;
    int32_t sum = in(y, i.x);
    if (y > 0) sum += in(y - 1, i.x);
    if (y + 1 < in.height) sum += in(y + 1, i.x);
    out(i.y, i.x) = sum % 100003;
  }
};
struct Pair {
  int32_t first, second;
};
struct Swap {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, Pair* p) const { p[i] = {p[i].second, p[i].first}; }
};
TEST_KERNEL void Count([[maybe_unused]] int n, [[maybe_unused]] int32_t* x, [[maybe_unused]] View<const int32_t> v) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = static_cast<int32_t>(v.pitch * 1000 + v.height * 100 + v(1, i));
#endif
}
void CountOnHost(int n, int32_t* x, View<const int32_t> v) {
  for (int i = 0; i < n; ++i) x[i] = static_cast<int32_t>(v.pitch * 1000 + v.height * 100 + v(1, i));
}

// Whether a path leads from one node of the plan to the other.
bool Ordered(const graph::Plan& plan, const std::string& from, const std::string& to) {
  std::vector<bool> after(plan.nodes.size());
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    after[n] = plan.nodes[n].name == from;
    for (const int32_t p : plan.nodes[n].preds) after[n] = after[n] || after[static_cast<size_t>(p)];
    if (plan.nodes[n].name == to) return after[n];
  }
  ADD_FAILURE() << "no node is called " << to;
  return false;
}
graph::Plan PlanOf(const Graph& g) {
  graph::PlanOptions options;
  options.devices.push_back({"host:0", false, 0, 0});
  auto plan = graph::MakePlan(g.model(), options);
  EXPECT_OK(plan.status());
  return plan.ok() ? *std::move(plan) : graph::Plan{};
}

class Slices : public GraphConformance {};

TEST_P(Slices, TilesAreWrittenByDifferentNodes) {
  constexpr int64_t kH = 30, kW = 44, kTile = 10;
  Graph g("tiles");
  auto x = g.Input<int32_t>("x", {kH, kW});
  auto y = g.Output<int32_t>("y", {kH, kW});
  for (int64_t top = 0; top < kH; top += kTile) {
    for (int64_t left = 0; left < kW; left += kTile) {
      const int64_t w = std::min(kTile, kW - left);
      const Box box = Slice({top, left}, {kTile, w});
      g.ParallelFor("tile " + std::to_string(top) + " " + std::to_string(left), {kTile, w}, AddIndex{}, Read(x, box),
                    Write(y, box));
    }
  }
  const std::vector<int32_t> hx = Random(kH * kW);
  std::vector<int32_t> hy = Poisoned(kH * kW);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  for (int64_t r = 0; r < kH; ++r) {
    for (int64_t c = 0; c < kW; ++c) {
      ASSERT_EQ(hy[r * kW + c], hx[r * kW + c] + 3 * (r % kTile * 100 + c % kTile)) << r << " " << c;
    }
  }
}

TEST_P(Slices, ColumnsThatInterleaveInMemoryAreIndependent) {
  constexpr int64_t kH = 64, kW = 48;
  Graph g("columns");
  auto y = g.Output<int32_t>("y", {kH, kW});
  g.ParallelFor("left", {kH, kW / 2}, Label{1}, Write(y, Slice({0, 0}, {kH, kW / 2})));
  g.ParallelFor("right", {kH, kW / 2}, Label{2}, Write(y, Slice({0, kW / 2}, {kH, kW / 2})));
  g.ParallelFor("both", {1, 2}, Label{3}, ReadWrite(y, Slice({0, kW / 2 - 1}, {1, 2})));
  const graph::Plan plan = PlanOf(g);
  EXPECT_FALSE(Ordered(plan, "left", "right"));
  EXPECT_TRUE(Ordered(plan, "left", "both"));
  EXPECT_TRUE(Ordered(plan, "right", "both"));
  std::vector<int32_t> hy = Poisoned(kH * kW);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(y, hy); }));
  for (int64_t r = 0; r < kH; ++r) {
    for (int64_t c = 0; c < kW; ++c) {
      const bool right = c >= kW / 2, both = r == 0 && (c == kW / 2 - 1 || c == kW / 2);
      const int64_t expected = both ? 30000 + (c - kW / 2 + 1) : (right ? 20000 : 10000) + r * (kW / 2) + c % (kW / 2);
      ASSERT_EQ(hy[r * kW + c], expected) << r << " " << c;
    }
  }
}

TEST_P(Slices, AStencilOnRowBlocksReadsItsNeighbours) {
  constexpr int64_t kH = 40, kW = 33, kBlock = 8;
  constexpr int kSteps = 5;
  Graph g("stencil");
  auto x = g.InOut<int32_t>("x", {kH, kW});
  auto t = g.Buffer<int32_t>("t", {kH, kW});
  for (int s = 0; s < kSteps; ++s) {
    for (int64_t row = 0; row < kH; row += kBlock) {
      const int64_t from = std::max<int64_t>(row - 1, 0), to = std::min(row + kBlock + 1, kH);
      g.ParallelFor("s" + std::to_string(s) + " r" + std::to_string(row), {kBlock, kW}, Blur{},
                    Read(s % 2 ? t : x, Slice({from, 0}, {to - from, kW})),
                    Write(s % 2 ? x : t, Slice({row, 0}, {kBlock, kW})), row - from);
    }
  }
  g.ParallelFor("back", {kH, kW}, AddIndex{}, Read(t), Write(x));
  std::vector<int32_t> hx(kH * kW);
  std::iota(hx.begin(), hx.end(), 1);
  std::vector<int32_t> now = hx;
  for (int s = 0; s < kSteps; ++s) {
    std::vector<int32_t> next(now.size());
    for (int64_t r = 0; r < kH; ++r) {
      for (int64_t c = 0; c < kW; ++c) {
        int32_t sum = now[r * kW + c];
        if (r > 0) sum += now[(r - 1) * kW + c];
        if (r + 1 < kH) sum += now[(r + 1) * kW + c];
        next[r * kW + c] = sum % 100003;
      }
    }
    now = next;
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }, {.max_lanes = 4}));
  for (int64_t r = 0; r < kH; ++r) {
    for (int64_t c = 0; c < kW; ++c) ASSERT_EQ(hx[r * kW + c], now[r * kW + c] + 3 * (r * 100 + c)) << r << " " << c;
  }
}

TEST_P(Slices, BoxesInThreeDimensionsKeepTheBuffersPitches) {
  constexpr int64_t kD = 5, kH = 7, kW = 11, kZ = 1, kY = 2, kX = 3, kDepth = 3, kHeight = 4, kWidth = 5;
  Graph g("cube");
  auto cube = g.InOut<int32_t>("cube", {kD, kH, kW});
  g.ParallelFor("label", {kDepth, kHeight, kWidth}, Label3{},
                Write(cube, Slice({kZ, kY, kX}, {kDepth, kHeight, kWidth})));
  std::vector<int32_t> h = Random(kD * kH * kW), expected = h;
  for (int64_t z = 0; z < kDepth; ++z) {
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        expected[((z + kZ) * kH + y + kY) * kW + x + kX] = static_cast<int32_t>((z * kHeight + y) * kWidth + x + 3000);
      }
    }
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(cube, h); }));
  EXPECT_EQ(h, expected);
}

TEST_P(Slices, AliasesOfAnotherTypeAndOfPartsAreTheirBase) {
  constexpr int64_t kH = 6, kW = 8;
  Graph g("aliases");
  auto x = g.InOut<int32_t>("x", {kH, kW});
  auto pairs = g.Alias<Pair>("pairs", x);
  auto row = g.Alias<Pair>("row", pairs, Slice({2, 0}, {1, kW / 2}));
  auto lower = g.Alias<int32_t>("lower", x, Slice({3, 1}, {3, 6}));
  auto corner = g.Alias<int32_t>("corner", lower, Slice({1, 2}, {2, 3}));
  g.ParallelFor("swap", kW / 2, Swap{}, ReadWrite(row));
  g.ParallelFor("one", kW, AddOne{}, ReadWrite(x, Slice({2, 0}, {1, kW})));
  g.ParallelFor("label", {2, 3}, Label{4}, Write(corner));
  const graph::Plan plan = PlanOf(g);
  EXPECT_TRUE(Ordered(plan, "swap", "one"));
  EXPECT_FALSE(Ordered(plan, "one", "label"));
  std::vector<int32_t> h = Random(kH * kW), expected = h;
  for (int64_t c = 0; c < kW; c += 2) std::swap(expected[2 * kW + c], expected[2 * kW + c + 1]);
  for (int64_t c = 0; c < kW; ++c) expected[2 * kW + c] += 1;
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t c = 0; c < 3; ++c) expected[(4 + r) * kW + 3 + c] = static_cast<int32_t>(40000 + r * 3 + c);
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, h); }));
  EXPECT_EQ(h, expected);
}

TEST_P(Slices, AliasesCannotBeBound) {
  Graph g("bound");
  auto x = g.InOut<int32_t>("x", 8);
  auto a = g.Alias<int32_t>("a", x, Slice(0, 4));
  g.ParallelFor("k", 4, AddOne{}, ReadWrite(a));
  std::vector<int32_t> h(8);
  const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, h).Set(a, h); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.ToString().find(": an alias has no memory of its own; bind the buffer it is a name for"),
            std::string::npos)
      << status;
}

TEST_P(Slices, AliasesAskForTheirOwnAlignment) {
  Graph g("aligned");
  auto x = g.InOut<int32_t>("x", 4);
  auto wide = g.Alias<int64_t>("wide", x);
  g.ParallelFor("k", 4, AddOne{}, ReadWrite(x));
  g.Host("h", [](std::span<const int64_t>) {}, Read(wide));
  alignas(8) int32_t memory[5] = {};
  const absl::Status odd = RunOnce(g, [&](Bindings& io) { io.Set(x, std::span<int32_t>(memory + 1, 4)); });
  EXPECT_EQ(odd.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(odd.ToString().find("bound to memory at no multiple of 8 bytes, which the elements of its alias 'wide' ("),
            std::string::npos)
      << odd;
  EXPECT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, std::span<int32_t>(memory, 4)); }));
}

TEST_P(Slices, ParametersMoveAndSizeSlicesFromRunToRun) {
  constexpr int64_t kW = 10;
  Graph g("moving");
  auto rows = g.Param<int>("rows", AtMost(20));
  auto top = g.Param<int>("top");
  auto n = g.Param<uint16_t>("n", AtMost(8));
  auto x = g.InOut<int32_t>("x", {rows, kW});
  auto part = g.Alias<int32_t>("part", x, Slice({top, 2}, {n, 6}));
  auto t = g.Buffer<int32_t>("t", {n, 3});
  g.ParallelFor("label", {n, 3}, Label{1}, Write(t));
  g.ParallelFor("take", {n, 3}, AddIndex{}, Read(t), ReadWrite(part, Slice({0, 1}, {n, 3})));
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const struct {
    int rows, top, n;
  } runs[] = {{20, 0, 8}, {5, 2, 3}, {20, 12, 8}, {9, 9, 0}, {1, 0, 1}};
  for (const auto& run : runs) {
    std::vector<int32_t> h = Random(run.rows * kW), expected = h;
    for (int64_t r = 0; r < run.n; ++r) {
      for (int64_t c = 0; c < 3; ++c) {
        expected[(run.top + r) * kW + 3 + c] = static_cast<int32_t>(10000 + r * 3 + c + 3 * (r * 100 + c));
      }
    }
    io.Set(rows, run.rows).Set(top, run.top).Set(n, static_cast<uint16_t>(run.n)).Set(x, h);
    auto made = exec->Launch(io);
    ASSERT_OK(made.status());
    ASSERT_OK(made->Wait());
    ASSERT_EQ(h, expected) << run.rows << " " << run.top << " " << run.n;
  }
}

TEST_P(Slices, ALaunchRefusesSlicesThatLeaveTheirBufferInThisRun) {
  Graph g("leaving");
  auto rows = g.Param<int64_t>("rows", AtMost(8));
  auto top = g.Param<int64_t>("top");
  auto n = g.Param<int64_t>("n", AtMost(8));
  auto x = g.InOut<int32_t>(Name("x", "a.cc", 4), {rows, 4});
  g.ParallelFor(Name("k", "a.cc", 5), {n, 4}, Label{1}, Write(x, Slice({top, 0}, {n, 4})));
  auto exec = runtime_->Compile(g, {});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  std::vector<int32_t> h(32);
  const auto launch = [&](int64_t r, int64_t t, int64_t count) {
    auto run = exec->Launch(io.Set(rows, r).Set(top, t).Set(n, count).Set(x, std::span(h).first(r * 4)));
    return run.ok() ? run->Wait() : run.status();
  };
  EXPECT_OK(launch(8, 4, 4));
  const std::string numbers[] = {"4 elements from 5 on", "8 elements from 1 on", "1 elements from -1 on",
                                 "2 elements from 9223372036854775807 on"};
  const int64_t tops[] = {5, 1, -1, INT64_MAX}, counts[] = {4, 8, 1, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(launch(8, tops[i], counts[i]).ToString(),
              "INVALID_ARGUMENT: graph 'leaving' node 'k' (a.cc:5): access 0 takes " + numbers[i] +
                  " in dimension 0 of 'x' (a.cc:4), which has 8 in this run; a slice lies inside its buffer; make its "
                  "offset or size smaller");
  }
  EXPECT_OK(launch(8, 8, 0));
}

TEST_P(Slices, HostCallablesTakeSpansOfRowsAndViewsOfColumns) {
  constexpr int64_t kH = 6, kW = 5;
  Graph g("host");
  auto x = g.Input<int32_t>("x", {kH, kW});
  auto y = g.InOut<int32_t>("y", {kH, kW});
  g.Host(
      "mixed",
      [](std::span<const int32_t> rows, View<const int32_t> column, int32_t add, View<int32_t> out) {
        if (rows.size() != 2 * kW || column.pitch != kW || column.height != kH) return absl::InternalError("shape");
        for (int64_t r = 0; r < out.height; ++r) out(r, 0) = rows[static_cast<size_t>(r)] + column(r, 0) + add;
        return absl::OkStatus();
      },
      Read(x, Slice({1, 0}, {2, kW})), Read(x, Slice({0, 4}, {kH, 1})), 7, ReadWrite(y, Slice({0, 2}, {kH, 1})));
  const std::vector<int32_t> hx = Random(kH * kW);
  std::vector<int32_t> hy = Random(kH * kW), expected = hy;
  for (int64_t r = 0; r < kH; ++r) expected[r * kW + 2] = hx[kW + r] + hx[r * kW + 4] + 7;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  EXPECT_EQ(hy, expected);
}

TEST_P(Slices, ALaunchRefusesSpansThatAreNotContiguousInThisRun) {
  Graph g("spans");
  auto w = g.Param<int>("w", AtMost(4));
  auto x = g.Input<int32_t>(Name("x", "a.cc", 2), {3, 4});
  g.Host(Name("h", "a.cc", 3), [](std::span<const int32_t>) {}, Read(x, Slice({0, 0}, {3, w})));
  auto exec = runtime_->Compile(g, {});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> h(12);
  auto run = exec->Launch(io.Set(w, 4).Set(x, h));
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  EXPECT_EQ(
      exec->Launch(io.Set(w, 3)).status().ToString(),
      "INVALID_ARGUMENT: graph 'spans' node 'h' (a.cc:3): access 0 is a span of a part of 'x' (a.cc:2), whose rows "
      "are not contiguous in this run; a span has no pitch; take a View, or slice whole rows");
}

TEST_P(Slices, KernelsTakePointersAndViewsOfParts) {
  constexpr int kN = 6;
  Graph g("kernel");
  auto x = g.Input<int32_t>("x", {4, 10});
  auto y = g.InOut<int32_t>("y", 20);
  g.Kernel("count", Count, Threads(kN), kN, ReadWrite(y, Slice(5, kN)), Read(x, Slice({1, 3}, {2, kN})))
      .HostFallback(CountOnHost);
  const std::vector<int32_t> hx = Random(40);
  std::vector<int32_t> hy = Random(20), expected = hy;
  for (int i = 0; i < kN; ++i) expected[5 + i] = 10200 + hx[2 * 10 + 3 + i];
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  EXPECT_EQ(hy, expected);
}

TEST_P(Slices, AnOutputKeepsWhatNoNodeWrites) {
  Graph g("rest");
  auto y = g.Output<int32_t>("y", {4, 4});
  g.ParallelFor("k", {2, 2}, Label{1}, Write(y, Slice({1, 1}, {2, 2})));
  std::vector<int32_t> h = Random(16), expected = h;
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t c = 0; c < 2; ++c) expected[(1 + r) * 4 + 1 + c] = static_cast<int32_t>(10000 + r * 2 + c);
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(y, h); }));
  EXPECT_EQ(h, expected);
}

TEST_P(Slices, NoElementsMayBeginPastTheEnd) {
  constexpr int64_t kN = 600;
  auto state = runtime_->MakeState<int32_t>("state", {2, kN / 2});
  ASSERT_OK(state.status());
  Graph g("corner");
  auto n = g.Param<int64_t>("n", AtMost(2));
  auto y = g.Output<int32_t>("y", kN);
  g.ParallelFor("k", kN, AddWidths{}, Read(*state, Slice({2, 1}, {0, 2})), Read(*state, Slice({2, 1}, {n, 2})),
                Write(y));
  std::vector<int32_t> h = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(y, h), io.Set(n, 0); }));
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(h[i], i + 2 + 2);
}

TEST_P(Slices, UnorderedAccessesRunInTheOrderOfAfter) {
  constexpr int64_t kN = 5000;
  Graph g("loose");
  auto x = g.InOut<int32_t>("x", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  auto late = g.ParallelFor("late", kN, AddOne{}, Unordered(ReadWrite(t)));
  auto early = g.ParallelFor("early", {1, kN}, Label{1}, Unordered(Write(t, Slice(0, kN))));
  late.After(early);
  g.Host(
       "out",
       [](std::span<const int32_t> from, std::span<int32_t> to) { std::copy(from.begin(), from.end(), to.begin()); },
       Unordered(Read(t)), Write(x))
      .After(late);
  std::vector<int32_t> h = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, h); }));
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(h[i], 10001 + i);
}

TEST_P(Slices, PartsMoveBetweenTwoDevices) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "one device only";
  constexpr int64_t kH = 20, kW = 30;
  Graph g("two");
  auto x = g.InOut<int32_t>("x", {kH, kW});
  // Contents move as wholes: of an Output with what nobody has written yet, which the checked driver minds.
  auto y = GetParam().checked ? g.InOut<int32_t>("y", {kH, kW}) : g.Output<int32_t>("y", {kH, kW});
  g.ParallelFor("left", {kH, kW / 2}, Label{1}, Write(y, Slice({0, 0}, {kH, kW / 2})));
  g.ParallelFor("right", {kH, kW / 2}, Label{2}, Write(y, Slice({0, kW / 2}, {kH, kW / 2}))).On(1);
  g.ParallelFor("top", {3, kW}, AddIndex{}, Read(y, Slice({0, 0}, {3, kW})), Write(x, Slice({4, 0}, {3, kW})));
  g.ParallelFor("bottom", {3, kW}, AddIndex{}, Read(x, Slice({4, 0}, {3, kW})), Write(x, Slice({10, 0}, {3, kW})))
      .On(1);
  std::vector<int32_t> hx = Random(kH * kW), expected = hx, hy = Poisoned(kH * kW);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < kW; ++c) {
      const int64_t label = (c < kW / 2 ? 10000 : 20000) + r * (kW / 2) + c % (kW / 2), add = 3 * (r * 100 + c);
      expected[(4 + r) * kW + c] = static_cast<int32_t>(label + add);
      expected[(10 + r) * kW + c] = static_cast<int32_t>(label + 2 * add);
    }
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  EXPECT_EQ(hx, expected);
  for (int64_t r = 0; r < kH; ++r) {
    for (int64_t c = 0; c < kW; ++c) {
      ASSERT_EQ(hy[r * kW + c], (c < kW / 2 ? 10000 : 20000) + r * (kW / 2) + c % (kW / 2)) << r << " " << c;
    }
  }
}

// Until a launch has come, where the rows of the target lie is not known.
TEST_P(Slices, ACopyOfConstantSizeMayGoToABufferWhoseRowsAreAParameter) {
  constexpr int64_t kH = 6, kW = 9, kPart = 4;
  Graph g("narrow");
  auto width = g.Param<int64_t>("width", AtMost(kW));
  auto x = g.Input<int32_t>("x", {kH, kW});
  auto t = g.Buffer<int32_t>("t", {kH, width});
  auto y = g.Output<int32_t>("y", {kPart, kPart});
  g.Copy("in", Read(x, Slice({1, 2}, {kPart, kPart})), Write(t, Slice({2, 1}, {kPart, kPart})));
  g.Copy("out", Read(t, Slice({2, 1}, {kPart, kPart})), Write(y));
  const std::vector<int32_t> hx = Random(kH * kW);
  for (const int64_t columns : {kW, int64_t{5}}) {
    std::vector<int32_t> hy = Poisoned(kPart * kPart);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(width, columns).Set(x, hx).Set(y, hy); }));
    for (int64_t i = 0; i < kPart * kPart; ++i) {
      ASSERT_EQ(hy[i], hx[(1 + i / kPart) * kW + 2 + i % kPart]) << columns << " " << i;
    }
  }
}

// Nobody reads what it copies, so it is not made; a mistake in it is one all the same.
TEST_P(Slices, ACopyThatIsNotMadeIsCheckedToo) {
  Graph g("dropped");
  auto at = g.Param<int64_t>("at");
  auto x = g.Input<int32_t>("x", 8), y = g.Output<int32_t>("y", 8);
  g.Copy("dead", Read(x, Slice(at, 4)), Write(g.Buffer<int32_t>("t", 4)));
  g.Copy("out", x, y);
  const std::vector<int32_t> hx = Random(8);
  std::vector<int32_t> hy = Poisoned(8);
  for (const int64_t start : {0, 4, 5}) {
    const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(at, start).Set(x, hx).Set(y, hy); });
    EXPECT_EQ(status.code(), start <= 4 ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Slices, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Slices, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::slice_test
