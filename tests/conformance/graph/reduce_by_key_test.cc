// ReduceByKey: the runs, in order, and for each the bits of the order that reduce_by_key.h describes, which is written
// down here once more, from the blocks of all elements.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/reduce_by_key.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/reduce_oracle.h"

namespace penstock::conformance::reduce_by_key_test {
namespace {

using reduce_oracle::AnyOf;
using reduce_oracle::SameAll;

constexpr int64_t kMost = 100'003;

// What `size` elements from `first` on give pairwise, without those before `begin`; nothing if all are.
template <class V, class Op>
std::optional<V> Block(const std::vector<V>& values, size_t first, size_t size, size_t begin, const Op& op) {
  if (first + size <= begin) return std::nullopt;
  if (size == 1) return values[first];
  const std::optional<V> a = Block(values, first, size / 2, begin, op);
  const std::optional<V> b = Block(values, first + size / 2, size / 2, begin, op);
  return a ? op(*a, *b) : *b;
}
template <class K, class V>
struct Runs {
  std::vector<K> keys;
  std::vector<V> totals;
};
// The blocks before the last element of each run are those of the binary digits of its index, the largest first.
template <class K, class V, class Op>
Runs<K, V> Expected(const std::vector<K>& keys, const std::vector<V>& values, const Op& op) {
  Runs<K, V> runs;
  for (size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    for (end = begin + 1; end < keys.size() && keys[end] == keys[end - 1];) ++end;
    const size_t last = end - 1;
    std::optional<V> all;
    for (size_t bit = size_t{1} << 40, at = 0; bit > 0; bit /= 2) {
      if ((last & bit) == 0) continue;
      const std::optional<V> block = Block(values, at, bit, begin, op);
      if (block) all = all ? op(*all, *block) : *block;
      at += bit;
    }
    runs.keys.push_back(keys[begin]);
    runs.totals.push_back(all ? op(*all, values[last]) : values[last]);
  }
  return runs;
}

// x -> scale * x + shift, modulo 2^32. To compose is associative and not commutative.
struct Affine {
  uint32_t scale, shift, maps;
};
struct Compose {
  PENSTOCK_HOST_DEVICE Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift, a.maps + b.maps};
  }
};
// 48 bytes.
struct Wide {
  uint64_t at[6];
};
struct AddWide {
  PENSTOCK_HOST_DEVICE Wide operator()(const Wide& a, const Wide& b) const {
    Wide c{};
    for (int i = 0; i < 6; ++i) c.at[i] = a.at[i] * 3 + b.at[i];
    return c;
  }
};
// Ends in a multiplication and begins with an addition, which compilers would contract.
struct Drift {
  PENSTOCK_HOST_DEVICE float operator()(float a, float b) const { return (a + b) * 0.9990234F; }
};
struct Point {
  int16_t x, y, z;
  PENSTOCK_HOST_DEVICE bool operator==(const Point& other) const {
    return x == other.x && y == other.y && z == other.z;
  }
};

class ByKey : public GraphConformance {
 protected:
  // Runs of about so many elements, and one in a hundred of many more.
  std::vector<int32_t> Keys(int64_t n, int length) {
    std::vector<int32_t> keys(static_cast<size_t>(n));
    for (size_t i = 0, left = 0; i < keys.size(); ++i, --left) {
      const bool begins = left == 0;
      if (begins) left = 1 + rng_() % static_cast<uint32_t>(2 * length - 1) * (rng_() % 100 == 0 ? 500 : 1);
      keys[i] = i == 0 ? -3 : begins ? keys[i - 1] + 1 - 2 * static_cast<int32_t>(i % 2) : keys[i - 1];
    }
    return keys;
  }
  // A chunk of the ring is small, so many extents take long; and a checked driver does the same arithmetic.
  std::vector<int64_t> Extents() const {
    if (GetParam().ring) return {0, 1, 33, 2049, 4097};
    std::vector<int64_t> extents{0, 1, 2, 7, 9, 31, 33, 255, 257, 1000, 2047, 2048, 2049, 4096, 4097, 6151};
    if (!GetParam().checked) extents.push_back(kMost);
    return extents;
  }

  // Runs over every extent, with runs of several lengths, and compares with what is expected.
  template <class V, class T, class Op, class Make>
  void AreThoseOfTheOrder(Make make, const Op& op) {
    Graph g("runs");
    auto n = g.Param<int64_t>("n", AtMost(kMost));
    auto keys = g.Input<int32_t>("keys", n);
    auto values = g.Input<T>("values", n);
    auto unique = g.InOut<int32_t>("unique", n);
    auto totals = g.InOut<V>("totals", n);
    auto count = g.Output<int32_t>("count", 3);
    ReduceByKey(g, "runs", Read(keys), Read(values), Write(unique), Write(totals), Write(count, Slice({1}, {1})), op);
    auto exec = runtime_->Compile(g, {.slots = 2});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t most : Extents()) {
      for (const int length : {1, 3, 300, 1'000'000}) {
        const std::vector<int32_t> hkeys = Keys(most, length);
        const std::vector<T> hvalues = make(most);
        const std::vector<V> converted(hvalues.begin(), hvalues.end());
        Runs<int32_t, V> want = Expected(hkeys, converted, op);
        const auto runs = static_cast<int32_t>(want.keys.size());
        want.keys.resize(hkeys.size(), -9);  // the rest keeps its value in memory that is bound
        want.totals.resize(hkeys.size(), V{});
        std::vector<int32_t> got_keys(hkeys.size(), -9), got_count(3, -1);
        std::vector<V> got(hkeys.size(), V{});
        io.Set(n, most).Set(keys, hkeys).Set(values, hvalues).Set(unique, got_keys).Set(totals, got);
        auto run = exec->Launch(io.Set(count, got_count));
        ASSERT_OK(run.status());
        ASSERT_OK(run->Wait());
        EXPECT_EQ(got_count[1], runs) << most << " " << length;
        EXPECT_EQ(got_keys, want.keys) << most << " " << length;
        EXPECT_TRUE(SameAll(got, want.totals)) << most << " " << length;
      }
    }
  }
};

TEST_P(ByKey, OfFloatsAreThoseOfTheOrder) {
  AreThoseOfTheOrder<float, float>([&](int64_t n) { return AnyOf<float>(rng_, n); }, Plus());
}
TEST_P(ByKey, RoundEachResultAndConvertEachValue) {
  AreThoseOfTheOrder<float, float>([&](int64_t n) { return AnyOf<float>(rng_, n); }, Drift{});
  AreThoseOfTheOrder<double, float>([&](int64_t n) { return AnyOf<float>(rng_, n); }, Plus());
}
TEST_P(ByKey, KeepTheOrderOfWhatDoesNotCommute) {
  AreThoseOfTheOrder<Affine, Affine>(
      [&](int64_t n) {
        std::vector<Affine> maps(static_cast<size_t>(n));
        for (Affine& m : maps) m = {static_cast<uint32_t>(rng_() | 1U), static_cast<uint32_t>(rng_()), 1};
        return maps;
      },
      Compose{});
}

// Large and small integers, against a loop from left to right; keys of other types.
TEST_P(ByKey, OfIntegersAreSumsOfTheRuns) {
  constexpr int64_t kN = 9001;
  Graph g("integers");
  auto keys = g.Input<Point>("keys", kN);
  auto floats = g.Input<double>("floats", kN);
  auto values = g.Input<int32_t>("values", kN);
  auto unique = g.Output<Point>("unique", 9000);
  auto unique_floats = g.Output<float>("unique floats", kN);
  auto sums = g.Output<int64_t>("sums", kN);
  auto most = g.Output<uint8_t>("most", kN);
  auto counts = g.Output<uint16_t>("counts", 2);
  const Box part = Slice({1}, {8000});
  ReduceByKey(g, "sums", Read(keys, part), Read(values, part), Write(unique, Slice({500}, {8000})), Write(sums),
              Write(counts, Slice({0}, {1})));
  ReduceByKey(g, "most", Read(floats), Read(values), Write(unique_floats), Write(most), Write(counts, Slice({1}, {1})),
              Max());
  std::vector<Point> hkeys(kN);
  std::vector<double> hfloats(kN);
  std::vector<int32_t> hvalues(kN);
  const std::vector<int32_t> runs = Keys(kN, 5);
  for (int64_t i = 0; i < kN; ++i) {
    hkeys[i] = {static_cast<int16_t>(runs[i]), static_cast<int16_t>(runs[i] / 2), 4};
    hfloats[i] = i % 1000 < 3 ? std::numeric_limits<double>::quiet_NaN() : i % 4 == 0 ? -0.0 : i % 4 == 1 ? 0.0 : 1;
    hvalues[i] = static_cast<int32_t>(rng_() % 20'000);
  }
  std::vector<int64_t> want_sums;
  std::vector<uint8_t> want_most;
  std::vector<int16_t> want_keys;
  for (int64_t i = 0; i < kN; ++i) {
    if (i >= 1 && i < 8001) {
      if (i == 1 || !(hkeys[i] == hkeys[i - 1])) want_sums.push_back(0), want_keys.push_back(hkeys[i].x);
      want_sums.back() += hvalues[i];
    }
    if (i == 0 || !(hfloats[i] == hfloats[i - 1])) want_most.push_back(0);
    want_most.back() = std::max(want_most.back(), static_cast<uint8_t>(hvalues[i]));
  }
  std::vector<Point> got_keys(9000);
  std::vector<float> got_floats(kN);
  std::vector<int64_t> got_sums(kN);
  std::vector<uint8_t> got_most(kN);
  std::vector<uint16_t> got_counts(2);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    io.Set(keys, hkeys).Set(floats, hfloats).Set(values, hvalues).Set(unique, got_keys).Set(sums, got_sums);
    io.Set(unique_floats, got_floats).Set(most, got_most).Set(counts, got_counts);
  }));
  ASSERT_EQ(got_counts[0], want_sums.size());
  ASSERT_EQ(got_counts[1], want_most.size());
  EXPECT_TRUE(std::equal(want_sums.begin(), want_sums.end(), got_sums.begin()));
  EXPECT_TRUE(std::equal(want_keys.begin(), want_keys.end(), got_keys.begin() + 500,
                         [](int16_t x, const Point& p) { return p.x == x && p.y == x / 2 && p.z == 4; }));
  EXPECT_TRUE(std::equal(want_most.begin(), want_most.end(), got_most.begin()));
  // The first key of a run, of 0 and -0.
  for (int64_t i = 0, run = -1; i < kN; ++i) {
    if (i > 0 && hfloats[i] == hfloats[i - 1]) continue;
    ++run;
    EXPECT_TRUE(std::isnan(hfloats[i]) || std::signbit(got_floats[run]) == std::signbit(hfloats[i])) << i;
  }
}

TEST_P(ByKey, OfTotalsThatAreTooLargeToExchange) {
  constexpr int64_t kN = 4500;
  Graph g("wide");
  auto keys = g.Input<int32_t>("keys", kN);
  auto values = g.Input<Wide>("values", kN);
  auto unique = g.Output<int32_t>("unique", kN);
  auto totals = g.Output<Wide>("totals", kN);
  auto count = g.Output<int64_t>("count", 1);
  ReduceByKey(g, "runs", Read(keys), Read(values), Write(unique), Write(totals), Write(count), AddWide{});
  const std::vector<int32_t> hkeys = Keys(kN, 4);
  std::vector<Wide> hvalues(kN), got(kN);
  for (Wide& w : hvalues) w = {{rng_(), rng_(), rng_(), rng_(), rng_(), rng_()}};
  std::vector<int32_t> got_keys(kN);
  std::vector<int64_t> got_count(1);
  const Runs<int32_t, Wide> want = Expected(hkeys, hvalues, AddWide{});
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    io.Set(keys, hkeys).Set(values, hvalues).Set(unique, got_keys).Set(totals, got).Set(count, got_count);
  }));
  ASSERT_EQ(got_count[0], static_cast<int64_t>(want.keys.size()));
  got.resize(want.totals.size());
  EXPECT_TRUE(SameAll(got, want.totals));
}

// One ReduceByKey after the other, on what the device has counted.
TEST_P(ByKey, OfTheFirstElementsThatTheDeviceCounts) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (const int32_t counted : {0, -2, 1, 2048, 2049, 4999, 7000}) {
    const std::vector<int32_t> hkeys = Keys(5000, 3);
    const std::vector<float> hvalues = AnyOf<float>(rng_, 5000);
    const std::vector<int32_t> hcount{counted};
    const auto there = static_cast<size_t>(std::clamp<int64_t>(counted, 0, 5000));
    const Runs<int32_t, float> once = Expected(std::vector<int32_t>(hkeys.begin(), hkeys.begin() + there),
                                               std::vector<float>(hvalues.begin(), hvalues.begin() + there), Plus());
    for (GraphCache* const cache : {&found, &checked}) {
      std::vector<int32_t> got_keys(5000), got_count(2);
      std::vector<float> got(5000);
      absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
        auto of = g.Input<int32_t>("of", 1);
        auto keys = g.Input<int32_t>("keys", 5000);
        auto values = g.Input<float>("values", 5000);
        auto unique = g.Buffer<int32_t>("unique", 5000), again = g.Output<int32_t>("again", 5000);
        auto totals = g.Buffer<float>("totals", 5000), sums = g.Output<float>("sums", 5000);
        auto counts = g.Output<int32_t>("counts", 2);
        ReduceByKey(g, "once", CountOf(of, 5000), Read(keys), Read(values), Write(unique), Write(totals),
                    Write(counts, Slice({0}, {1})));
        ReduceByKey(g, "again", CountOf(Read(counts, Slice({0}, {1})), 5000), Read(unique), Read(totals), Write(again),
                    Write(sums), Write(counts, Slice({1}, {1})));
        io.Set(of, hcount).Set(keys, hkeys).Set(values, hvalues).Set(again, got_keys).Set(sums, got);
        io.Set(counts, got_count);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const auto runs = static_cast<int32_t>(once.keys.size());  // neighbours differ, so nothing is left to combine
      EXPECT_EQ(got_count, (std::vector<int32_t>{runs, runs})) << counted;
      got_keys.resize(once.keys.size());
      got.resize(once.totals.size());
      EXPECT_EQ(got_keys, once.keys) << counted;
      EXPECT_TRUE(SameAll(got, once.totals)) << counted;
    }
  }
  EXPECT_EQ(found.counts().compiled, 1);
}

TEST_P(ByKey, HaveAsManyLevelsAsTheyNeed) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  constexpr int64_t kN = (int64_t{1} << 22) + 5000;
  Graph g("levels");
  auto keys = g.Input<int32_t>("keys", kN);
  auto values = g.Input<float>("values", kN);
  auto unique = g.Output<int32_t>("unique", kN);
  auto totals = g.Output<float>("totals", kN);
  auto count = g.Output<int32_t>("count", 1);
  ReduceByKey(g, "runs", Read(keys), Read(values), Write(unique), Write(totals), Write(count));
  std::vector<int32_t> hkeys(kN), got_keys(kN);
  for (int64_t i = 0; i < kN; ++i) hkeys[i] = static_cast<int32_t>(i / 1'234'567 + (i > kN - 50 ? i % 3 : 0));
  const std::vector<float> hvalues = AnyOf<float>(rng_, kN);
  std::vector<float> got(kN);
  std::vector<int32_t> got_count(1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    io.Set(keys, hkeys).Set(values, hvalues).Set(unique, got_keys).Set(totals, got).Set(count, got_count);
  }));
  const Runs<int32_t, float> want = Expected(hkeys, hvalues, Plus());
  ASSERT_EQ(got_count[0], static_cast<int32_t>(want.keys.size()));
  got.resize(want.totals.size());
  got_keys.resize(want.keys.size());
  EXPECT_EQ(got_keys, want.keys);
  EXPECT_TRUE(SameAll(got, want.totals));
}

INSTANTIATE_TEST_SUITE_P(Host, ByKey, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ByKey, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::reduce_by_key_test
