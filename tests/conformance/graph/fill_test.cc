// Fills of parts through the whole library, on every driver, against plain loops.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::fill_test {
namespace {

template <size_t N>
struct Bytes {
  std::array<uint8_t, N> bytes{};
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

using Sizes = std::array<int64_t, 3>;  // slowest first, as in an Extent of three dimensions

Extent ExtentOf(int rank, const std::array<Dim, 3>& dims) {
  return rank == 1 ? Extent(dims[2]) : rank == 2 ? Extent(dims[1], dims[2]) : Extent(dims[0], dims[1], dims[2]);
}

// What a fill does to a buffer of this shape in host memory.
template <class T>
void FillOnHost(std::vector<T>& to, const Sizes& shape, const Sizes& from, const Sizes& count, const T& value) {
  for (int64_t z = from[0]; z < from[0] + count[0]; ++z) {
    for (int64_t y = from[1]; y < from[1] + count[1]; ++y) {
      for (int64_t x = from[2]; x < from[2] + count[2]; ++x) {
        to[static_cast<size_t>((z * shape[1] + y) * shape[2] + x)] = value;
      }
    }
  }
}

class Fills : public GraphConformance {
 protected:
  // A graph of random fills of random boxes on random devices, some of them moved and sized by parameters, in a few
  // runs.
  template <size_t N>
  void TryRandomBoxes(uint32_t seed);
};

// A random fill: what varies from run to run is drawn again.
template <class T>
struct RandomFill {
  Sizes from{0, 0, 0}, count{1, 1, 1};
  std::array<ParamHandle<int64_t>, 3> from_param, count_param;
  T value;

  // Of the last `rank` dimensions.
  void Draw(std::mt19937& random, const Sizes& shape, int rank, bool first) {
    const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
    for (size_t d = static_cast<size_t>(3 - rank); d < 3; ++d) {
      const bool moves = first || from_param[d].index() >= 0, grows = first || count_param[d].index() >= 0;
      if (grows) count[d] = random() % 8 == 0 ? 0 : upto(shape[d] - (moves ? 0 : from[d]));
      if (moves) from[d] = random() % 4 == 0 ? shape[d] - count[d] : upto(shape[d] - count[d]);
    }
  }
  void Bind(Bindings& io) const {
    for (size_t d = 0; d < 3; ++d) {
      if (from_param[d].index() >= 0) io.Set(from_param[d], from[d]);
      if (count_param[d].index() >= 0) io.Set(count_param[d], count[d]);
    }
  }
};

template <size_t N>
void Fills::TryRandomBoxes(uint32_t seed) {
  using T = Bytes<N>;
  SCOPED_TRACE("seed " + std::to_string(seed) + ", elements of " + std::to_string(N));
  std::mt19937 random(seed);
  const int rank = 1 + static_cast<int>(random() % 3);
  Sizes shape{1, 1, 1};
  for (size_t d = static_cast<size_t>(3 - rank); d < 3; ++d) shape[d] = 1 + random() % (rank == 1 ? 400 : 13);

  Graph g("random");
  auto x = g.InOut<T>("x", ExtentOf(rank, {shape[0], shape[1], shape[2]}));
  std::vector<RandomFill<T>> fills(1 + random() % 5);
  for (size_t f = 0; f < fills.size(); ++f) {
    RandomFill<T>& fill = fills[f];
    fill.Draw(random, shape, rank, true);
    std::array<Dim, 3> from, count;
    for (size_t d = static_cast<size_t>(3 - rank); d < 3; ++d) {
      const std::string name = std::to_string(f) + " " + std::to_string(d);
      if (random() % 4 == 0) fill.from_param[d] = g.Param<int64_t>("from " + name);
      if (random() % 4 == 0) fill.count_param[d] = g.Param<int64_t>("count " + name, AtMost(shape[d]));
      from[d] = fill.from_param[d].index() >= 0 ? Dim(fill.from_param[d]) : Dim(fill.from[d]);
      count[d] = fill.count_param[d].index() >= 0 ? Dim(fill.count_param[d]) : Dim(fill.count[d]);
    }
    const bool equal = random() % 3 == 0;
    for (size_t i = 0; i < N; ++i) fill.value.bytes[i] = static_cast<uint8_t>(equal ? f : f * 37 + i * 11 + 1);
    g.Fill("fill " + std::to_string(f), Write(x, Slice(ExtentOf(rank, from), ExtentOf(rank, count))), fill.value)
        .On(static_cast<int>(random() % runtime_->devices().size()));
  }
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (int run = 0; run < 4; ++run) {
    std::vector<T> h(static_cast<size_t>(shape[0] * shape[1] * shape[2]));
    for (T& element : h) {
      for (uint8_t& byte : element.bytes) byte = static_cast<uint8_t>(random());
    }
    std::vector<T> expected = h;
    for (RandomFill<T>& fill : fills) {
      if (run > 0) fill.Draw(random, shape, rank, false);
      fill.Bind(io);
      FillOnHost(expected, shape, fill.from, fill.count, fill.value);
    }
    auto made = exec->Launch(io.Set(x, h));
    ASSERT_OK(made.status());
    ASSERT_OK(made->Wait());
    ASSERT_TRUE(h == expected) << "run " << run;
  }
}

TEST_P(Fills, RandomBoxesOfAnyElementAreFilledExactly) {
  for (uint32_t seed = 1; seed <= 6 && !HasFatalFailure(); ++seed) {
    TryRandomBoxes<1>(seed);
    TryRandomBoxes<2>(seed + 100);
    TryRandomBoxes<3>(seed + 200);
    TryRandomBoxes<4>(seed + 300);
    TryRandomBoxes<7>(seed + 400);
    TryRandomBoxes<8>(seed + 500);
    TryRandomBoxes<12>(seed + 600);
    TryRandomBoxes<16>(seed + 700);
  }
}

// Large enough that several blocks, or threads, take part.
TEST_P(Fills, AFrameAroundAnImage) {
  constexpr int64_t kH = kSanitized ? 101 : 701, kW = kSanitized ? 203 : 1003, kBorder = 3;
  Graph g("frame");
  auto image = g.Output<int32_t>("image", {kH, kW});
  g.Fill("frame", image, 0x01020304);
  g.Fill("inside", Write(image, Slice({kBorder, kBorder}, {kH - 2 * kBorder, kW - 2 * kBorder})), -2);
  g.Fill("column", Write(image, Slice({0, kW - 1}, {kH, 1})), 0x7f7f7f7f);
  std::vector<int32_t> h = Poisoned(kH * kW), expected(h.size(), 0x01020304);
  const Sizes shape{1, kH, kW};
  FillOnHost(expected, shape, {0, kBorder, kBorder}, {1, kH - 2 * kBorder, kW - 2 * kBorder}, -2);
  FillOnHost(expected, shape, {0, 0, kW - 1}, {1, kH, 1}, 0x7f7f7f7f);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(image, h); }));
  EXPECT_TRUE(h == expected);
}

TEST_P(Fills, OfAliasesAreFillsOfTheirBuffer) {
  using Pair = Bytes<8>;
  constexpr int64_t kH = 5, kW = 6;
  Graph g("aliases");
  auto x = g.InOut<int32_t>("x", {kH, kW});
  auto pairs = g.Alias<Pair>("pairs", x);
  auto lower = g.Alias<int32_t>("lower", x, Slice({3, 1}, {2, 5}));
  Pair pair;
  const int32_t halves[] = {11, 22};
  std::memcpy(&pair, halves, sizeof pair);
  g.Fill("pair", Write(pairs, Slice({0, 1}, {3, 2})), pair);
  g.Fill("lower", lower, 33);
  g.Fill("corner", Write(lower, Slice({1, 4}, {1, 1})), 44);
  std::vector<int32_t> h = Random(kH * kW), expected = h;
  const Sizes shape{1, kH, kW};
  for (const int64_t column : {2, 4}) {
    FillOnHost(expected, shape, {0, 0, column}, {1, 3, 1}, 11);
    FillOnHost(expected, shape, {0, 0, column + 1}, {1, 3, 1}, 22);
  }
  FillOnHost(expected, shape, {0, 3, 1}, {1, 2, 5}, 33);
  FillOnHost(expected, shape, {0, 4, 5}, {1, 1, 1}, 44);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, h); }));
  EXPECT_EQ(h, expected);
}

TEST_P(Fills, OfPartsOfAStateKeepTheRestFromRunToRun) {
  const std::vector<int32_t> initial(15, 7);
  auto state = runtime_->MakeState<int32_t>("state", {3, 5}, initial);
  ASSERT_OK(state.status());
  Graph g("state");
  auto row = g.Param<int>("row");
  g.Fill("row", Write(*state, Slice({row, 1}, {1, 4})), 9);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  std::vector<int32_t> expected = initial, contents(15);
  for (const int r : {2, 0}) {
    auto run = exec->Launch(io.Set(row, r));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    FillOnHost(expected, {1, 3, 5}, {0, r, 1}, {1, 1, 4}, 9);
    ASSERT_OK(state->Read(std::span<int32_t>(contents)));
    EXPECT_EQ(contents, expected) << r;
  }
}

TEST_P(Fills, ALaunchRefusesBoxesThatLeaveTheirBufferAndTouchesNothing) {
  Graph g("leaving");
  auto rows = g.Param<int64_t>("rows", AtMost(8));
  auto left = g.Param<int64_t>("left");
  auto n = g.Param<int64_t>("n", AtMost(4));
  auto x = g.InOut<int32_t>(Name("x", "a.cc", 4), {rows, 4});
  g.Fill(Name("f", "a.cc", 5), Write(x, Slice({0, left}, {rows, n})), 1);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  std::vector<int32_t> h(32, 5);
  const auto launch = [&](int64_t r, int64_t l, int64_t count) {
    auto run = exec->Launch(io.Set(rows, r).Set(left, l).Set(n, count).Set(x, std::span(h).first(r * 4)));
    return run.ok() ? run->Wait() : run.status();
  };
  const std::string numbers[] = {"4 elements from 1 on", "1 elements from -1 on",
                                 "2 elements from 9223372036854775807 on"};
  const int64_t lefts[] = {1, -1, INT64_MAX}, counts[] = {4, 1, 2};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(launch(8, lefts[i], counts[i]).ToString(),
              "INVALID_ARGUMENT: graph 'leaving' node 'f' (a.cc:5): access 0 takes " + numbers[i] +
                  " in dimension 1 of 'x' (a.cc:4), which has 4 in this run; a slice lies inside its buffer; make its "
                  "offset or size smaller");
  }
  EXPECT_EQ(h, std::vector<int32_t>(32, 5));
  EXPECT_OK(launch(8, 4, 0));
  EXPECT_OK(launch(0, 1, 3));
  EXPECT_EQ(h, std::vector<int32_t>(32, 5));
  EXPECT_OK(launch(3, 3, 1));
  for (size_t i = 0; i < h.size(); ++i) EXPECT_EQ(h[i], i < 12 && i % 4 == 3 ? 1 : 5) << i;
}

INSTANTIATE_TEST_SUITE_P(Host, Fills, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Fills, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::fill_test
