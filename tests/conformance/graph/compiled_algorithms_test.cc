// Algorithms over the standard types in a file that the C++ compiler compiles, also for a GPU: the library has their
// kernels (penstock/detail/algorithm_code.h). What is tried here is all that docs/howto/algorithms.md lists, against
// loops and the standard library. Values are small whole numbers, so sums of floats are exact in any order.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "penstock/penstock.h"
#include "penstock/sort.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::compiled_algorithms_test {
namespace {

constexpr int64_t kN = 10'007, kRows = 3, kWidth = 5001;  // several leaves of 2048

class CompiledAlgorithms : public GraphConformance {
 protected:
  template <class T>
  std::vector<T> Small(int64_t n) {
    std::vector<T> out(static_cast<size_t>(n));
    for (T& v : out) v = static_cast<T>(rng_() % 11);
    return out;
  }
  template <class T>
  static std::vector<T> Poison(int64_t n) {
    return std::vector<T>(static_cast<size_t>(n), static_cast<T>(77));
  }

  template <class T, class V, class Op, class Fold>
  void Reduced(const Op& op, V first, const Fold& fold) {
    const std::vector<T> x = Small<T>(kRows * kWidth);
    for (const int64_t width : {kWidth, kWidth - 2}) {  // dense, and with gaps between the rows
      Graph g("reduced");
      auto from = g.Input<T>("x", {kRows, kWidth});
      auto to = g.Output<V>("y", 1);
      if (width == kWidth) g.Reduce("reduce", Read(from), Write(to), op);
      else g.Reduce("reduce", Read(from, Slice({0, 0}, {kRows, width})), Write(to), op);
      V want = first, got = 77;
      for (int64_t y = 0; y < kRows; ++y) {
        for (int64_t i = 0; i < width; ++i) want = fold(want, static_cast<V>(x[static_cast<size_t>(y * kWidth + i)]));
      }
      ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(to, std::span(&got, 1)); }));
      EXPECT_EQ(got, want) << width;
    }
  }
  template <class T>
  void Reduces() {
    const auto add = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
    const auto least = [](auto a, auto b) { return std::min(a, b); };
    const auto greatest = [](auto a, auto b) { return std::max(a, b); };
    Reduced<T, T>(Plus(), T{0}, add);
    Reduced<T, T>(Min(), T{100}, least);
    Reduced<T, T>(Max(), T{0}, greatest);
    if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int32_t>)
      Reduced<T, int64_t>(Plus(), int64_t{0}, add);
    if constexpr (std::is_same_v<T, float>) Reduced<T, double>(Plus(), 0.0, add);
  }
  template <class T, class C>
  void ReducesOfCounts() {
    const std::vector<T> x = Small<T>(kN);
    Graph g("counted");
    auto count = g.Input<C>("count", 1);
    auto from = g.Input<T>("x", kN);
    auto to = g.Output<T>("y", 1);
    g.Reduce("reduce", CountOf(Read(count), kN), Read(from), Write(to));
    for (const C n : {C{0}, C{5000}, static_cast<C>(kN)}) {
      T got = 77;
      ASSERT_OK(
          RunOnce(g, [&](Bindings& io) { io.Set(count, std::span(&n, 1)).Set(from, x).Set(to, std::span(&got, 1)); }));
      EXPECT_EQ(got, static_cast<T>(std::accumulate(x.begin(), x.begin() + n, T{0}))) << n;
    }
  }
  template <class T>
  void Args() {
    std::vector<T> x = Small<T>(kRows * kWidth);
    x[9000] = 100;
    x[9004] = 100;
    Graph g("args");
    auto from = g.Input<T>("x", {kRows, kWidth});
    auto least = g.Output<int64_t>("least", 2), greatest = g.Output<int64_t>("greatest", 2);
    ArgMin(g, "least", Read(from), Write(least, Slice(0, 1)));
    ArgMax(g, "greatest", Read(from), Write(greatest, Slice(0, 1)));
    ArgMin(g, "least of part", Read(from, Slice({1, 1}, {2, 5000})), Write(least, Slice(1, 1)));
    ArgMax(g, "greatest of part", Read(from, Slice({1, 1}, {2, 5000})), Write(greatest, Slice(1, 1)));
    std::vector<int64_t> min = Poison<int64_t>(2), max = min;
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(least, min).Set(greatest, max); }));
    std::vector<T> part;
    for (const int64_t y : {1, 2}) part.insert(part.end(), x.begin() + y * kWidth + 1, x.begin() + (y + 1) * kWidth);
    EXPECT_EQ(min[0], std::min_element(x.begin(), x.end()) - x.begin());
    EXPECT_EQ(max[0], 9000);
    EXPECT_EQ(min[1], std::min_element(part.begin(), part.end()) - part.begin());
    EXPECT_EQ(max[1], std::max_element(part.begin(), part.end()) - part.begin());
  }

  template <class T, class Op, class Fold>
  void RowsReduced(const Op& op, T first, const Fold& fold) {
    for (const int64_t width : {int64_t{32}, kWidth}) {
      const std::vector<T> x = Small<T>(kRows * width);
      Graph g("rows");
      auto from = g.Input<T>("x", {kRows, width});
      auto to = g.Output<T>("y", kRows);
      ReduceRows(g, "rows", Read(from), Write(to), op);
      std::vector<T> got = Poison<T>(kRows), want;
      for (auto row = x.begin(); row != x.end(); row += width)
        want.push_back(std::accumulate(row, row + width, first, fold));
      ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(to, got); }));
      EXPECT_EQ(got, want) << width;
    }
  }
  template <class T>
  void Rows() {
    RowsReduced(Plus(), T{0}, [](T a, T b) { return static_cast<T>(a + b); });
    RowsReduced(Min(), T{100}, [](T a, T b) { return std::min(a, b); });
    RowsReduced(Max(), T{0}, [](T a, T b) { return std::max(a, b); });
  }

  template <class K, class T>
  void Runs() {
    std::vector<K> keys = Small<K>(kN), unique = Poison<K>(kN), want_keys;
    const std::vector<T> values = Small<T>(kN);
    std::vector<T> totals = Poison<T>(kN), want;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % 3 != 0) keys[i] = keys[i - 1];
      if (i == 0 || keys[i] != keys[i - 1]) {
        want_keys.push_back(keys[i]);
        want.push_back(0);
      }
      want.back() += values[i];
    }
    Graph g("runs");
    auto k = g.Input<K>("keys", kN);
    auto v = g.Input<T>("values", kN);
    auto u = g.Output<K>("unique", kN);
    auto t = g.Output<T>("totals", kN);
    auto c = g.Output<int64_t>("count", 1);
    ReduceByKey(g, "runs", Read(k), Read(v), Write(u), Write(t), Write(c));
    int64_t count = 77;
    ASSERT_OK(RunOnce(g, [&](Bindings& io) {
      io.Set(k, keys).Set(v, values).Set(u, unique).Set(t, totals).Set(c, std::span(&count, 1));
    }));
    ASSERT_EQ(count, static_cast<int64_t>(want.size()));
    unique.resize(want.size());
    totals.resize(want.size());
    EXPECT_EQ(unique, want_keys);
    EXPECT_EQ(totals, want);
  }

  template <class T, class V>
  void Scans() {
    for (const int64_t n : {int64_t{100}, kN}) {
      const std::vector<T> x = Small<T>(n);
      for (const CombineOrder order : {CombineOrder::kFixed, CombineOrder::kAny}) {
        for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
          Graph g("scans");
          auto from = g.Input<T>("x", n);
          auto to = g.Output<V>("y", n);
          Scan(g, "scan", Read(from), Write(to), Plus(), {.kind = kind, .order = order});
          std::vector<V> got = Poison<V>(n), want;
          V sum = 0;
          for (const T v : x) {
            if (kind == ScanKind::kExclusive) want.push_back(sum);
            sum = static_cast<V>(sum + static_cast<V>(v));
            if (kind == ScanKind::kInclusive) want.push_back(sum);
          }
          ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(to, got); }));
          EXPECT_EQ(got, want) << n;
        }
      }
    }
  }

  template <class T>
  void Selections() {
    const T with = 5;
    const std::vector<std::pair<Compared<T>, std::vector<bool>>> ways{
        {LessThan(with), {true, false, false}},    {LessOrEqual(with), {true, true, false}},
        {GreaterThan(with), {false, false, true}}, {GreaterOrEqual(with), {false, true, true}},
        {EqualTo(with), {false, true, false}},     {NotEqualTo(with), {true, false, true}}};
    for (const int64_t n : {int64_t{100}, kN}) {
      const std::vector<T> x = Small<T>(n);
      for (const auto& [predicate, kept] : ways) {
        Graph g("selections");
        auto from = g.Input<T>("x", n);
        auto to = g.Output<T>("y", n);
        auto c = g.Output<int64_t>("count", 1);
        Select(g, "select", Read(from), Write(to), Write(c), predicate);
        std::vector<T> got = Poison<T>(n), want;
        for (const T v : x) {
          if (kept[v < with ? 0 : v == with ? 1 : 2]) want.push_back(v);
        }
        int64_t count = 77;
        ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(to, got).Set(c, std::span(&count, 1)); }));
        ASSERT_EQ(count, static_cast<int64_t>(want.size()));
        got.resize(want.size());
        EXPECT_EQ(got, want);
      }
    }
  }

  template <class T, class C, class F, class Bin>
  void Binned(const F& functor, const Bin& bin) {
    const std::vector<T> x = Small<T>(kN);
    Graph g("bins");
    auto from = g.Input<T>("x", kN);
    auto to = g.Output<C>("counts", 8);
    Histogram(g, "bins", Read(from), Write(to), functor);
    std::vector<C> got = Poison<C>(8), want(8);
    for (const T v : x) {
      if (const int at = bin(v); at >= 0 && at < 8) ++want[static_cast<size_t>(at)];
    }
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(from, x).Set(to, got); }));
    EXPECT_EQ(got, want);
  }
  template <class T>
  void Histograms() {
    const auto in_twos = [](T x) { return x >= 2 && x < 10 ? (static_cast<int>(x) - 2) / 2 : -1; };
    Binned<T, int32_t>(EvenBins<T>(2, 10, 4), in_twos);
    Binned<T, int64_t>(EvenBins<T>(2, 10, 4), in_twos);
    if constexpr (std::is_integral_v<T>) {
      Binned<T, int32_t>(OwnBin(), [](T x) { return static_cast<int>(x); });
      Binned<T, int64_t>(OwnBin(), [](T x) { return static_cast<int>(x); });
    }
  }

  template <class K>
  void Sorts() {
    const std::vector<K> x = Small<K>(kN);
    for (const bool descending : {false, true}) {
      Graph g("sorts");
      auto from = g.Input<K>("x", kN);
      auto to = g.Output<K>("y", kN), keys = g.Output<K>("keys", kN);
      auto places = g.Input<int32_t>("places", kN);
      auto moved = g.Output<int32_t>("moved", kN);
      Sort(g, "sort", Read(from), Write(to), {.descending = descending});
      SortPairs(g, "pairs", Read(from), Write(keys), Read(places), Write(moved), {.descending = descending});
      std::vector<int32_t> order(x.size());
      std::iota(order.begin(), order.end(), 0);
      std::vector<int32_t> got_moved = Poison<int32_t>(kN);
      std::vector<K> got = Poison<K>(kN), got_keys = got, want = x;
      const std::vector<int32_t> given = order;
      ASSERT_OK(RunOnce(g, [&](Bindings& io) {
        io.Set(from, x).Set(to, got).Set(keys, got_keys).Set(places, given).Set(moved, got_moved);
      }));
      std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const K left = x[static_cast<size_t>(a)], right = x[static_cast<size_t>(b)];
        if (left == right) return a < b;
        return descending ? left > right : left < right;
      });
      for (size_t i = 0; i < want.size(); ++i) want[i] = x[static_cast<size_t>(order[i])];
      EXPECT_EQ(got, want);
      EXPECT_EQ(got_keys, want);
      EXPECT_EQ(got_moved, order);
    }
  }
};

TEST_P(CompiledAlgorithms, Reduce) {
  Reduces<int32_t>();
  Reduces<int64_t>();
  Reduces<float>();
  Reduces<double>();
  Reduces<uint8_t>();
}

TEST_P(CompiledAlgorithms, ReduceWhatACountSays) {
  ReducesOfCounts<int32_t, int32_t>();
  ReducesOfCounts<int32_t, int64_t>();
  ReducesOfCounts<int64_t, int32_t>();
  ReducesOfCounts<int64_t, int64_t>();
  ReducesOfCounts<float, int32_t>();
  ReducesOfCounts<float, int64_t>();
  ReducesOfCounts<double, int32_t>();
  ReducesOfCounts<double, int64_t>();
  ReducesOfCounts<uint8_t, int32_t>();
  ReducesOfCounts<uint8_t, int64_t>();
}

TEST_P(CompiledAlgorithms, FindExtremes) {
  Args<int32_t>();
  Args<int64_t>();
  Args<float>();
  Args<double>();
  Args<uint8_t>();
}

TEST_P(CompiledAlgorithms, ReduceRowsAndRuns) {
  Rows<int32_t>();
  Rows<int64_t>();
  Rows<float>();
  Rows<double>();
  Runs<int32_t, int32_t>();
  Runs<int32_t, int64_t>();
  Runs<int32_t, float>();
  Runs<int32_t, double>();
  Runs<int64_t, int32_t>();
  Runs<int64_t, int64_t>();
  Runs<int64_t, float>();
  Runs<int64_t, double>();
}

TEST_P(CompiledAlgorithms, ScanAndSelect) {
  Scans<int32_t, int32_t>();
  Scans<int64_t, int64_t>();
  Scans<float, float>();
  Scans<double, double>();
  Scans<uint8_t, uint8_t>();
  Scans<int32_t, int64_t>();
  Selections<int32_t>();
  Selections<int64_t>();
  Selections<float>();
  Selections<double>();
  Selections<uint8_t>();
}

TEST_P(CompiledAlgorithms, CountBinsAndSort) {
  Histograms<int32_t>();
  Histograms<int64_t>();
  Histograms<float>();
  Histograms<double>();
  Histograms<uint8_t>();
  Sorts<int32_t>();
  Sorts<int64_t>();
  Sorts<float>();
  Sorts<double>();
  Sorts<uint8_t>();
}

struct Longest {
  int32_t operator()(int32_t a, int32_t b) const { return a > b ? a : b; }
};
TEST_P(CompiledAlgorithms, SayThatOthersNeedNvcc) {
  std::vector<Graph> graphs;
  for (const char* name : {"operation", "count", "sort"}) graphs.emplace_back(name);
  graphs[0].Reduce("r", Read(graphs[0].Input<int32_t>("x", kN)), Write(graphs[0].Output<int32_t>("y", 1)), Longest(),
                   0);
  Select(graphs[1], "s", Read(graphs[1].Input<float>("x", kN)), Write(graphs[1].Output<float>("y", kN)),
         Write(graphs[1].Output<uint32_t>("count", 1)), LessThan(0.F));
  Sort(graphs[2], "s", Read(graphs[2].Input<int16_t>("x", kN)), Write(graphs[2].Output<int16_t>("y", kN)));
  for (const Graph& g : graphs) {
    const absl::Status status = runtime_->Compile(g).status();
    if (!on_cuda()) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("which nvcc did not compile"), std::string::npos) << status;
    EXPECT_NE(status.message().find("docs/howto/algorithms.md"), std::string::npos) << status;
  }
}

// The promise is which code is found. A ring, whose chunks are small, would take most of the time and change nothing.
std::vector<Target> HostTargetsWithoutRing() {
  std::vector<Target> targets = HostTargetsOfResults();
  std::erase_if(targets, [](const Target& target) { return target.ring; });
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Host, CompiledAlgorithms, testing::ValuesIn(HostTargetsWithoutRing()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, CompiledAlgorithms, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::compiled_algorithms_test
