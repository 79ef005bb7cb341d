// Sort and SortPairs on every driver against std::sort of keys and indices, by a comparison that is written down here.
#include "penstock/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::sort_test {
namespace {

// Extents around what a tile of CUB holds, and what has several.
constexpr int64_t kExtents[] = {0, 1, 2, 31, 257, 4096, 12'001};
constexpr int64_t kMost = 12'001;

// Numbers as they are; a NaN behind infinity or, with its sign set, before minus infinity; two NaNs by their bits.
template <class K>
bool ComesBefore(K a, K b) {
  if constexpr (std::is_floating_point_v<K>) {
    const auto group = [](K x) { return !std::isnan(x) ? 0 : std::signbit(x) ? -1 : 1; };
    if (group(a) != group(b)) return group(a) < group(b);
    if (group(a) == 0) return a < b;
    using Bits = std::conditional_t<sizeof(K) == 4, int32_t, int64_t>;
    const auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    return group(a) > 0 ? x < y : x > y;
  } else {
    return a < b;
  }
}

template <class T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct Point {
  int32_t at;
  uint8_t rest[20];
};

struct Mix {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const uint32_t> sorted, View<uint32_t> x) const {
    x(i) = sorted(i) * 2654435761U + static_cast<uint32_t>(i);
  }
};

class Sorts : public GraphConformance {
 protected:
  // Random keys with all bits or only some of them set, so that some have many equals; floats include 0, -0, infinity
  // and NaN.
  template <class K>
  std::vector<K> RandomKeys(int64_t n) {
    std::vector<K> keys(static_cast<size_t>(n));
    const uint64_t mask = std::array<uint64_t, 4>{~uint64_t{0}, 0xff, 0x8000'0000'0000'0003, 0xff00'ff00}[rng_() % 4];
    for (K& key : keys) {
      const uint64_t bits = rng_() & mask;
      std::memcpy(&key, &bits, sizeof(K));
      if constexpr (std::is_floating_point_v<K>) {
        constexpr K kOdd[] = {0, -K{0}, std::numeric_limits<K>::infinity(), std::numeric_limits<K>::quiet_NaN()};
        if (rng_() % 8 == 0) key = rng_() % 2 == 0 ? kOdd[rng_() % 4] : -kOdd[rng_() % 4];
      }
    }
    return keys;
  }
  template <class K>
  static std::vector<int32_t> OrderedIndices(std::span<const K> keys, bool descending) {
    std::vector<int32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const K x = keys[static_cast<size_t>(a)], y = keys[static_cast<size_t>(b)];
      if (ComesBefore(x, y) || ComesBefore(y, x)) return descending ? ComesBefore(y, x) : ComesBefore(x, y);
      return a < b;
    });
    return order;
  }

  // One executable for all extents, so that a captured call sees each of them.
  template <class K, class V>
  void PairsAreSorted(V (*value)(int32_t)) {
    for (const bool descending : {false, true}) {
      Graph g("pairs");
      auto n = g.Param<int32_t>("n", AtMost(kMost));
      auto keys = g.Input<K>("keys", n), sorted_keys = g.Output<K>("sorted keys", n);
      auto values = g.Input<V>("values", n), sorted_values = g.Output<V>("sorted values", n);
      SortPairs(g, "sort", Read(keys), Write(sorted_keys), Read(values), Write(sorted_values),
                {.descending = descending});
      auto exec = runtime_->Compile(g);
      ASSERT_OK(exec.status());
      Bindings io = exec->bindings();
      for (const int64_t count : kExtents) {
        const std::vector<K> from = RandomKeys<K>(count);
        std::vector<V> from_values(from.size()), to_values(from.size());
        for (size_t i = 0; i < from.size(); ++i) from_values[i] = value(static_cast<int32_t>(i));
        std::vector<K> to(from.size());
        io.Set(n, static_cast<int32_t>(count)).Set(keys, from).Set(values, from_values);
        auto run = exec->Launch(io.Set(sorted_keys, to).Set(sorted_values, to_values));
        ASSERT_OK(run.status());
        ASSERT_OK(run->Wait());
        std::vector<K> expected(from.size());
        std::vector<V> expected_values(from.size());
        const std::vector<int32_t> order = OrderedIndices(std::span<const K>(from), descending);
        for (size_t i = 0; i < order.size(); ++i) {
          expected[i] = from[static_cast<size_t>(order[i])];
          expected_values[i] = from_values[static_cast<size_t>(order[i])];
        }
        EXPECT_EQ(BytesOf(to), BytesOf(expected)) << count;
        EXPECT_EQ(BytesOf(to_values), BytesOf(expected_values)) << count;
      }
    }
  }
};

TEST_P(Sorts, PairsOfFloats) {
  PairsAreSorted<float, int32_t>([](int32_t i) { return i; });
}
TEST_P(Sorts, PairsOfSignedNumbersAndStructs) {
  PairsAreSorted<int64_t, Point>([](int32_t i) { return Point{i, {static_cast<uint8_t>(i)}}; });
}
TEST_P(Sorts, PairsOfBytes) {
  PairsAreSorted<uint8_t, double>([](int32_t i) { return i / 8.0; });
}

// Rows of pitched memory and of a box, both in one graph with a chain: what was sorted is sorted the other way.
TEST_P(Sorts, EachRowByItself) {
  constexpr int64_t kH = 5, kW = 301, kPitch = 310;
  Graph g("rows");
  auto in = g.Input<uint32_t>("in", Pitched({kH, kW}, kPitch));
  auto up = g.Buffer<uint32_t>("up", {kH, kW});
  auto down = g.Output<uint32_t>("down", {kH, kW});
  auto part = g.Output<uint32_t>("part", {2, 100});
  Sort(g, "ascending", Read(in), Write(up));
  Sort(g, "descending", Read(up), Write(down), {.descending = true});
  Sort(g, "part", Read(up, Slice({1, 50}, {2, 100})), Write(part), {.descending = true});
  const std::vector<uint32_t> from = RandomKeys<uint32_t>(kH * kPitch);
  std::vector<uint32_t> to(kH * kW), to_part(200);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(in, from).Set(down, to).Set(part, to_part); }));
  for (int64_t y = 0; y < kH; ++y) {
    std::vector<uint32_t> row(from.begin() + y * kPitch, from.begin() + y * kPitch + kW);
    std::sort(row.begin(), row.end(), std::greater<>());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), to.begin() + y * kW)) << y;
    if (y < 1 || y > 2) continue;
    EXPECT_TRUE(std::equal(row.end() - 150, row.end() - 50, to_part.begin() + (y - 1) * 100)) << y;
  }
}

// As often as a value in device memory says, which CUDA decides in a graph.
TEST_P(Sorts, WorkInLoops) {
  constexpr int64_t kN = 12'001;
  Graph g("loop");
  auto trips = g.Input<int32_t>("trips", 1);
  auto x = g.InOut<uint32_t>("x", kN);
  g.Repeat("repeat", Read(trips), [&](Graph& body) {
    auto sorted = body.Buffer<uint32_t>("sorted", kN);
    Sort(body, "sort", Read(x), Write(sorted));
    body.ParallelFor("mix", kN, Mix{}, Read(sorted), Write(x));
  });
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  for (const int32_t times : {3, 0, 2}) {
    std::vector<uint32_t> values = RandomKeys<uint32_t>(kN), expected = values;
    for (int32_t trip = 0; trip < times; ++trip) {
      std::sort(expected.begin(), expected.end());
      for (size_t k = 0; k < expected.size(); ++k) expected[k] = expected[k] * 2654435761U + static_cast<uint32_t>(k);
    }
    auto run = exec->Launch(exec->bindings().Set(trips, std::span(&times, 1)).Set(x, values));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(values, expected) << times;
  }
}

TEST_P(Sorts, ExtentsThatDifferAreRefused) {
  Graph g("g");
  auto n = g.Param<int32_t>("n", AtMost(10));
  auto keys = g.Input<float>("keys", n), sorted = g.Output<float>("sorted", n);
  auto values = g.Input<float>("values", 10), sorted_values = g.Output<float>("sorted values", n);
  SortPairs(g, "by key", Read(keys), Write(sorted), Read(values), Write(sorted_values));
  const absl::Status status = runtime_->Compile(g).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("node 'by key' (sort_test.cc:"), std::string::npos) << status;
  EXPECT_NE(status.message().find("reads {10} elements of 'values' (sort_test.cc:"), std::string::npos) << status;
  EXPECT_NE(status.message().find("a sort reads and writes boxes of one shape"), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(Host, Sorts, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Sorts, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::sort_test
