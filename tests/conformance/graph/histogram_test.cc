// Histograms on every driver against loops over the elements.
#include "penstock/histogram.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::histogram_test {
namespace {

constexpr int64_t kExtents[] = {0, 1, 17, 4096, 30'003};
constexpr int64_t kMost = 30'003;

struct Rest {
  int64_t by;
  PENSTOCK_HOST_DEVICE int64_t operator()(int64_t x) const { return x % by; }
};
// No bins for a tenth of them, below and above all.
struct OfPoint {
  PENSTOCK_HOST_DEVICE int operator()(const Index3& at) const {
    return static_cast<int>(at.x % 110) - 5 + static_cast<int>(at.y % 2);
  }
};

struct Pixel {
  uint8_t red, green, blue;
};
struct OfPixel {
  PENSTOCK_HOST_DEVICE int operator()(const Pixel& at) const {
    return at.red % 5 * 20 + at.green % 5 * 4 + at.blue % 3;
  }
};

struct Odd {
  explicit Odd(int n) : value(n) {}
  int value;
};
struct OfOdd {
  PENSTOCK_HOST_DEVICE int operator()(const Odd& x) const { return x.value; }
};

class Histograms : public GraphConformance {
 protected:
  // One executable for all extents; the counts of the run before must not count.
  template <class C, class T, class F>
  void CountsAreRight(int64_t bins, F bin, const std::vector<T>& all) {
    Graph g("counts");
    auto n = g.Param<int32_t>("n", AtMost(kMost));
    auto x = g.Input<T>("x", n);
    auto counts = g.Output<C>("counts", bins);
    Histogram(g, "count", Read(x), Write(counts), bin);
    auto exec = runtime_->Compile(g);
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t count : kExtents) {
      const std::vector<T> elements(all.begin(), all.begin() + count);
      std::vector<C> found(static_cast<size_t>(bins), C{77}), expected(found.size());
      auto run = exec->Launch(io.Set(n, static_cast<int32_t>(count)).Set(x, elements).Set(counts, found));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      for (const T& element : elements) {
        const auto at = static_cast<int64_t>(bin(element));
        if (at >= 0 && at < bins) ++expected[static_cast<size_t>(at)];
      }
      EXPECT_EQ(found, expected) << count;
    }
  }
  template <class T>
  std::vector<T> RandomOf() {
    std::vector<T> all(kMost);
    for (T& element : all) {
      const uint64_t bits[] = {rng_(), rng_(), rng_()};
      std::memcpy(&element, bits, sizeof(T));
    }
    return all;
  }
};

TEST_P(Histograms, OfBytes) { CountsAreRight<uint32_t>(256, OwnBin(), RandomOf<uint8_t>()); }
TEST_P(Histograms, OfSignedNumbersThatPartlyHaveNoBin) { CountsAreRight<int32_t>(3000, OwnBin(), RandomOf<int16_t>()); }
TEST_P(Histograms, OfMoreBinsThanABlockHas) { CountsAreRight<int64_t>(9999, Rest{10'007}, RandomOf<int64_t>()); }
TEST_P(Histograms, OfStructs) {
  CountsAreRight<uint64_t>(100, OfPoint(), RandomOf<Index3>());
  CountsAreRight<int32_t>(100, OfPixel(), RandomOf<Pixel>());
}
TEST_P(Histograms, OfEvenBins) {
  std::vector<float> values(kMost);
  for (float& v : values) v = static_cast<float>(rng_() % 12'000) / 100 - 10;
  values[1] = NAN, values[3] = INFINITY, values[5] = -INFINITY, values[7] = 100,
  values[9] = std::nextafter(100.0F, 0.0F);
  CountsAreRight<int32_t>(50, EvenBins(0.0F, 100.0F, 50), values);
  const EvenBins bins(0.0F, 100.0F, 50);
  EXPECT_EQ(bins(0), 0);
  EXPECT_EQ(bins(1.99F), 0);
  EXPECT_EQ(bins(2), 1);
  EXPECT_EQ(bins(std::nextafter(100.0F, 0.0F)), 49);
  EXPECT_EQ(bins(100), -1);
  EXPECT_EQ(bins(-0.01F), -1);
  EXPECT_EQ(bins(NAN), -1);
}

// Against whole numbers: bin b of n begins at lower + b * width / n.
TEST(BinsOfOneWidth, BeginWhereTheyDo) {
  for (const int32_t lower : {-1000, 0, 7}) {
    for (int32_t width = 1; width < 260; ++width) {
      for (const int32_t bins : {1, 2, 3, 7, 49, 100, 255}) {
        const EvenBins ints(lower, lower + width, bins);
        const EvenBins longs(int64_t{lower}, int64_t{lower + width}, bins);
        const EvenBins floats(static_cast<float>(lower), static_cast<float>(lower + width), bins);
        const EvenBins doubles(double{0} + lower, double{0} + lower + width, bins);
        for (int32_t x = 0; x < width; ++x) {
          const int32_t bin = x * bins / width;
          ASSERT_EQ(ints(lower + x), bin) << x << " of " << width << " in " << bins;
          ASSERT_EQ(longs(lower + x), bin) << x << " of " << width << " in " << bins;
          ASSERT_EQ(floats(static_cast<float>(lower + x)), bin) << x << " of " << width << " in " << bins;
          ASSERT_EQ(doubles(lower + x), bin) << x << " of " << width << " in " << bins;
        }
        ASSERT_EQ(ints(lower - 1), -1);
        ASSERT_EQ(ints(lower + width), -1);
      }
    }
  }
  const EvenBins all(INT32_MIN, INT32_MAX, INT32_MAX);
  EXPECT_EQ(all(INT32_MIN), 0);
  EXPECT_EQ(all(INT32_MIN + 2), 0);
  EXPECT_EQ(all(INT32_MIN + 3), 1);
  EXPECT_EQ(all(INT32_MAX - 1), INT32_MAX - 1);
  EXPECT_EQ(EvenBins(-16'777'216.F, 1.F, 4)(0.5F), 3) << "its distance from the lower bound is rounded to the width";
}
TEST(BinsOfOneWidth, AreNoneOfARangeThatIsNone) {
  EXPECT_EQ(EvenBins(-3e38F, 3e38F, 10)(2e38F), -1) << "the width is infinite";
  EXPECT_EQ(EvenBins(0.F, 1e-38F, 16)(0), -1) << "its inverse is";
  EXPECT_EQ(EvenBins(0.F, 1e38F, 16)(5e37F), -1) << "16 of it are";
  EXPECT_EQ(EvenBins(0.F, 1.F, 0)(0.5F), -1);
  EXPECT_EQ(EvenBins(0.F, 1.F, (1 << 20) + 1)(0.5F), -1);
  EXPECT_EQ(EvenBins(0.F, 1.F, 1 << 20)(0.5F), 1 << 19);
  EXPECT_EQ(EvenBins(0.F, 1.F, INT32_MIN)(0.5F), -1);
  EXPECT_EQ(EvenBins(1.F, 0.F, 3)(0.5F), -1);
  EXPECT_EQ(EvenBins(NAN, 1.F, 3)(0.5F), -1);
  EXPECT_EQ(EvenBins(5, 5, 3)(5), -1);
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_EQ(EvenBins(kLarge, kLarge + 1, 1)(kLarge), -1) << "its width is 0 as a double";
}

// A box of pitched memory of three dimensions, and one whose first byte is not aligned, into a box of the counts.
TEST_P(Histograms, OfBoxes) {
  constexpr int64_t kD = 3, kH = 20, kW = 33, kPitch = 40;
  Graph g("boxes");
  auto x = g.Input<uint8_t>("x", Pitched({kD, kH, kW}, kPitch));
  auto line = g.Input<uint8_t>("line", 5000);
  auto counts = g.Output<uint32_t>("counts", 600);
  Histogram(g, "box", Read(x, Slice({1, 2, 3}, {2, 15, 29})), Write(counts, Slice(0, 256)), OwnBin());
  Histogram(g, "line", Read(line, Slice(3, 4900)), Write(counts, Slice(300, 200)), OwnBin());
  g.Fill("rest", Write(counts, Slice(256, 44)), uint32_t{5});
  g.Fill("end", Write(counts, Slice(500, 100)), uint32_t{6});
  std::vector<uint8_t> cube(kD * kH * kPitch), bytes(5000);
  for (std::vector<uint8_t>* of : {&cube, &bytes}) {
    for (uint8_t& byte : *of) byte = static_cast<uint8_t>(rng_());
  }
  std::vector<uint32_t> found(600, 77), expected(600);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, cube).Set(line, bytes).Set(counts, found); }));
  for (int64_t z = 1; z < 3; ++z) {
    for (int64_t y = 2; y < 17; ++y) {
      for (int64_t c = 3; c < 32; ++c) ++expected[cube[static_cast<size_t>((z * kH + y) * kPitch + c)]];
    }
  }
  for (size_t i = 3; i < 4903; ++i) {
    if (bytes[i] < 200) ++expected[300 + bytes[i]];
  }
  std::fill(expected.begin() + 256, expected.begin() + 300, 5);
  std::fill(expected.begin() + 500, expected.end(), 6);
  EXPECT_EQ(found, expected);
}

// GPUs load 16 bytes at a time, from where there are 16 on.
TEST_P(Histograms, OfNumbersFromAnyElementOn) {
  Graph g("from any");
  auto x = g.Input<int32_t>("x", 5000);
  auto counts = g.Output<int32_t>("counts", 500);
  constexpr int64_t kCounted = 4901;
  for (int64_t first = 0; first < 5; ++first) {
    Histogram(g, "from " + std::to_string(first), Read(x, Slice(first, kCounted)),
              Write(counts, Slice(100 * first, 100)), OwnBin());
  }
  std::vector<int32_t> values(5000), found(500, 77), expected(500);
  for (int32_t& value : values) value = static_cast<int32_t>(rng_() % 110) - 5;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(counts, found); }));
  for (size_t first = 0; first < 5; ++first) {
    for (size_t i = first; i < first + kCounted; ++i) {
      if (values[i] >= 0 && values[i] < 100) ++expected[first * 100 + static_cast<size_t>(values[i])];
    }
  }
  EXPECT_EQ(found, expected);
}

TEST_P(Histograms, OfElementsWithoutADefault) {
  CountsAreRight<uint32_t>(10, OfOdd(), std::vector<Odd>(kMost, Odd(3)));
}

// Counts below 0 and above the maximum are the nearer end.
TEST_P(Histograms, OfTheFirstElementsThatACountSays) {
  Graph g("first");
  auto count = g.Input<int32_t>("count", 2);
  auto x = g.Input<uint8_t>("x", kMost);
  auto counts = g.Output<int32_t>("counts", 256);
  const AccessOf<int32_t, AccessMode::kRead> second = Read(count, Slice(1, 1));
  Histogram(g, "bins", CountOf(second, kMost), Read(x), Write(counts), OwnBin());
  auto exec = runtime_->Compile(g, {.check_against_host = true});
  ASSERT_OK(exec.status());
  const std::vector<uint8_t> all = RandomOf<uint8_t>();
  for (const int32_t n : {0, 1, 1000, 30'003, -5, 30'010}) {
    const std::vector<int32_t> given{3, n};
    std::vector<int32_t> found(256, 77), expected(256);
    for (int32_t i = 0; i < std::min<int32_t>(n, kMost); ++i) ++expected[all[static_cast<size_t>(i)]];
    auto run = exec->Launch(exec->bindings().Set(count, given).Set(x, all).Set(counts, found));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(found, expected) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Histograms, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Histograms, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::histogram_test
