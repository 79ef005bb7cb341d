// Buffers whose rows lie apart, through the whole library on every driver: what nodes see, what is bound, and that
// nobody touches what lies between the rows.
#include <algorithm>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::pitch_test {
namespace {

// out = 2 * in + 100 * y + x, through whatever pitches they have.
struct Twice {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> in, View<int32_t> out) const {
    out(i.y, i.x) = 2 * in(i.y, i.x) + static_cast<int32_t>(100 * i.y + i.x);
  }
};
struct Shift {
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> x) const {
    x(i.z, i.y, i.x) += static_cast<int32_t>(10000 * i.z + 100 * i.y + i.x);
  }
};
// What a View says of its buffer.
struct Tell {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<const int32_t> v, int64_t* out) const {
    out[0] = v.height, out[1] = v.width, out[2] = v.pitch, out[3] = v.slice;
  }
};

class Pitches : public GraphConformance {};

TEST_P(Pitches, NodesComeAndGoBetweenRowsOfAnyPitchAndTouchNothingBetween) {
  constexpr int64_t kH = 9, kW = 13, kFrom = 17, kTo = 20;
  Graph g("pitched");
  auto x = g.Input<int32_t>("x", Pitched({kH, kW}, kFrom));
  auto y = g.InOut<int32_t>("y", Pitched({kH, kW}, kTo));
  auto z = g.Output<int32_t>("z", {kH, kW});
  auto t = g.Buffer<int32_t>("t", Pitched({kH, kW}, kW + 1));
  g.ParallelFor("twice", {kH, kW}, Twice{}, Read(x), Write(t));
  g.Copy("dense", t, z);
  g.Copy("part", Read(x, Slice({1, 2}, {3, 4})), Write(y, Slice({5, 8}, {3, 4})));
  g.Fill("column", Write(y, Slice({0, kW - 1}, {kH, 1})), -1);
  g.Host(
      "host",
      [](View<int32_t> v) {
        for (int64_t r = 0; r < v.height; ++r) v(r, 0) += 7;
      },
      ReadWrite(y));
  const std::vector<int32_t> hx = Random(kH * kFrom);
  for (const bool to_the_end : {false, true}) {  // or to the last element
    std::vector<int32_t> hy = Random(kH * kTo - (to_the_end ? 0 : kTo - kW)), hz = Poisoned(kH * kW);
    std::vector<int32_t> expected = hy;
    for (int64_t r = 0; r < kH; ++r) {
      for (int64_t c = 2; c < 6 && r >= 1 && r < 4; ++c) expected[(r + 4) * kTo + c + 6] = hx[r * kFrom + c];
    }
    for (int64_t r = 0; r < kH; ++r) expected[r * kTo + kW - 1] = -1;
    for (int64_t r = 0; r < kH; ++r) expected[r * kTo] += 7;
    const auto from = std::span(hx).first(static_cast<size_t>(kH * kFrom - (to_the_end ? 0 : kFrom - kW)));
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, from).Set(y, hy).Set(z, hz); }));
    EXPECT_EQ(hy, expected) << to_the_end;
    for (int64_t r = 0; r < kH; ++r) {
      for (int64_t c = 0; c < kW; ++c) ASSERT_EQ(hz[r * kW + c], 2 * hx[r * kFrom + c] + 100 * r + c) << r << " " << c;
    }
  }
}

TEST_P(Pitches, InThreeDimensionsSlicesLieSideBySide) {
  constexpr int64_t kD = 3, kH = 4, kW = 5, kPitch = 8;
  Graph g("cube");
  auto x = g.InOut<int32_t>("x", Pitched({kD, kH, kW}, kPitch));
  auto part = g.Alias<int32_t>("part", x, Slice({1, 1, 2}, {2, 3, 3}));
  g.ParallelFor("part", {2, 3, 3}, Shift{}, ReadWrite(part));
  std::vector<int32_t> h = Random(kD * kH * kPitch), expected = h;
  for (int64_t z = 0; z < 2; ++z) {
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t c = 0; c < 3; ++c)
        expected[((z + 1) * kH + y + 1) * kPitch + c + 2] += static_cast<int32_t>(10000 * z + 100 * y + c);
    }
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, h); }));
  EXPECT_EQ(h, expected);
}

TEST_P(Pitches, AreTheSameWhereverTheBufferIs) {
  constexpr int64_t kH = 4, kW = 6, kPitch = 10;
  Graph g("tell");
  auto x = g.Input<int32_t>("x", Pitched({kH, kW}, kPitch));
  auto wide = g.Alias<int64_t>("wide", x);
  auto told = g.Output<int64_t>("told", {3, 4});
  g.ParallelFor("whole", 1, Tell{}, Read(x), Write(told, Slice({0, 0}, {1, 4})));
  g.ParallelFor("part", 1, Tell{}, Read(x, Slice({1, 1}, {2, 3})), Write(told, Slice({1, 0}, {1, 4})));
  g.Host(
      "host",
      [](View<const int64_t> v, std::span<int64_t> out) {
        out[0] = v.height, out[1] = v.width, out[2] = v.pitch, out[3] = v.slice;
      },
      Read(wide), Write(told, Slice({2, 0}, {1, 4})));
  alignas(8) int32_t memory[kH * kPitch] = {};
  std::vector<int64_t> h(12, -1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, std::span<int32_t>(memory)).Set(told, h); }));
  EXPECT_EQ(h, (std::vector<int64_t>{kH, kW, kPitch, kH * kPitch, 2, 3, kPitch, kH * kPitch, kH, kW / 2, kPitch / 2,
                                     kH * kPitch / 2}));
}

TEST_P(Pitches, ALaunchTakesAsManyElementsAsItsParametersSay) {
  constexpr int64_t kPitch = 12;
  Graph g("sized");
  auto rows = g.Param<int>("rows", AtMost(6)), width = g.Param<int>("width", AtMost(10));
  auto x = g.InOut<int32_t>(Name("x", "a.cc", 4), Pitched({rows, width}, kPitch));
  g.Fill("f", x, 3);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> before(6 * kPitch, 1);
  std::vector<int32_t> h;
  const auto launch = [&](int r, int w, int64_t elements) {
    h = before;
    auto run = exec->Launch(io.Set(rows, r).Set(width, w).Set(x, std::span(h).first(static_cast<size_t>(elements))));
    return run.ok() ? run->Wait() : run.status();
  };
  const auto filled = [&](int64_t r, int64_t w) {
    for (size_t i = 0; i < h.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      EXPECT_EQ(h[i], at / kPitch < r && at % kPitch < w ? 3 : 1) << r << " x " << w << " at " << i;
    }
  };
  for (const auto& [r, w] : {std::pair(6, 10), {3, 7}, {1, 1}, {6, 0}, {0, 10}}) {
    const int64_t least = r == 0 || w == 0 ? 0 : (r - 1) * kPitch + w, most = r * kPitch;
    for (const int64_t elements : {least, most}) {
      ASSERT_OK(launch(r, w, elements));
      filled(r, w);
    }
    const std::string numbers = std::to_string(least) + " with what lies between rows, " + std::to_string(most) +
                                " with what lies behind the last; bind so many";
    for (const int64_t elements : {least - 1, most + 1}) {
      if (elements < 0 || elements > static_cast<int64_t>(before.size())) continue;
      EXPECT_EQ(launch(r, w, elements).ToString(), "INVALID_ARGUMENT: graph 'sized' buffer 'x' (a.cc:4): bound to " +
                                                       std::to_string(elements) +
                                                       " elements; its extent in this run has " + numbers);
      EXPECT_EQ(h, before);
    }
  }
}

TEST_P(Pitches, ASpanOfRowsThatLieApartIsRefusedAtLaunchWhereParametersSayHowMany) {
  Graph g("spans");
  auto rows = g.Param<int>("rows", AtMost(3));
  auto x = g.Input<int32_t>(Name("x", "a.cc", 2), Pitched({rows, 4}, 5));
  g.Host(Name("h", "a.cc", 3), [](std::span<const int32_t>) {}, Read(x));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> h(15);
  auto run = exec->Launch(io.Set(rows, 1).Set(x, std::span(h).first(4)));
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  EXPECT_EQ(exec->Launch(io.Set(rows, 2).Set(x, std::span(h).first(9))).status().ToString(),
            "INVALID_ARGUMENT: graph 'spans' node 'h' (a.cc:3): access 0 is a span of a part of 'x' (a.cc:2), whose "
            "rows are not contiguous in this run; a span has no pitch; take a View, or slice whole rows");
}

// Pinned, in the slot, and larger than what is staged through the slot.
TEST_P(Pitches, LieWhereverABufferMay) {
  constexpr int64_t kH = 150, kW = 200, kPitch = 256;
  Graph g("places");
  auto x = g.Input<int32_t>("x", Pitched({kH, kW}, kPitch), kSlot);
  auto y = g.Output<int32_t>("y", Pitched({kH, kW}, kPitch + 3), kPinned);
  auto z = g.Output<int32_t>("z", Pitched({kH, kW}, kPitch + 5));
  auto kept = g.Buffer<int32_t>("kept", Pitched({kH, kW}, kW + 9), kPinned);
  g.Copy("keep", x, kept);
  g.ParallelFor("y", {kH, kW}, Twice{}, Read(kept), Write(y));
  g.ParallelFor("z", {kH, kW}, Twice{}, Read(x), Write(z));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  auto hy = runtime_->MakeHostBuffer<int32_t>(kH * (kPitch + 3));
  ASSERT_OK(hy.status());
  std::fill(hy->begin(), hy->end(), 5);
  std::vector<int32_t> hz(kH * (kPitch + 5), 6);
  auto lease = exec->Acquire();
  ASSERT_OK(lease.status());
  const std::span<int32_t> hx = lease->span(x);
  ASSERT_EQ(hx.size(), static_cast<size_t>((kH - 1) * kPitch + kW));
  for (size_t i = 0; i < hx.size(); ++i) hx[i] = static_cast<int32_t>(i);
  Bindings io = exec->bindings();
  auto run = lease->Launch(io.Set(y, *hy).Set(z, hz));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  const auto check = [&](std::span<const int32_t> h, int64_t pitch, int32_t between) {
    for (int64_t i = 0; i < static_cast<int64_t>(h.size()); ++i) {
      const int64_t r = i / pitch, c = i % pitch;
      ASSERT_EQ(h[static_cast<size_t>(i)], c < kW ? 2 * (r * kPitch + c) + 100 * r + c : between) << r << " " << c;
    }
  };
  check(std::span<const int32_t>(hy->data(), static_cast<size_t>(hy->size())), kPitch + 3, 5);
  check(hz, kPitch + 5, 6);
}

TEST_P(Pitches, ATwinIsCheckedOnCopiesThatLieTheSame) {
  constexpr int64_t kH = 5, kW = 7, kPitch = 9;
  Graph g("twin");
  auto x = g.InOut<int32_t>("x", Pitched({kH, kW}, kPitch));
  g.ParallelFor("k", {1, kH, kW}, Shift{}, ReadWrite(x));
  std::vector<int32_t> h = Random(kH * kPitch), expected = h;
  for (int64_t r = 0; r < kH; ++r) {
    for (int64_t c = 0; c < kW; ++c) expected[r * kPitch + c] += static_cast<int32_t>(100 * r + c);
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, h); }, {.check_against_host = true}));
  EXPECT_EQ(h, expected);
}

INSTANTIATE_TEST_SUITE_P(Host, Pitches, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Pitches, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::pitch_test
