// The library's kernels of algorithms, without a GPU: which nodes declared by the C++ compiler's code have one. Each
// row of docs/howto/algorithms.md is tried with as many elements as take one node, and more, in one row, in several and
// in a part of these.
#include "penstock/detail/algorithm_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "penstock/penstock.h"
#include "penstock/sort.h"

namespace penstock::detail::algorithm_code_test {
namespace {

constexpr int64_t kSizes[] = {1, 32, 100, 2048, 2049, int64_t{1} << 23, int64_t{1} << 30};

// The names of nodes that a CUDA device could not run.
std::string Lacking(const Graph& graph) {
  std::string names;
  for (const NodeDecl& node : graph.model().nodes) {
    if (node.kind == NodeKind::kFill) continue;
    const bool has = node.kind == NodeKind::kLaunch ? !node.code.lacks_cuda : node.code.cuda_kernel != nullptr;
    if (!has) names += std::string(node.name.view()) + " ";
  }
  return names;
}
template <class Declare>
void ExpectCode(const Declare& declare) {
  for (const int64_t n : kSizes) {
    Graph graph("g");
    declare(graph, n);
    EXPECT_EQ(Lacking(graph), "") << n << " elements, " << __PRETTY_FUNCTION__;
  }
}

template <class T, class V, class Op>
void Reduces() {
  ExpectCode([](Graph& g, int64_t n) {
    auto x = g.Input<T>("x", {3, 3, n + 1});
    auto y = Write(g.Output<V>("y", 1));
    g.Reduce("line", Read(g.Input<T>("line", n)), y, Op());
    g.Reduce("all", Read(x), y, Op());
    g.Reduce("part", Read(x, Slice({0, 0, 0}, {3, 2, n})), y, Op());
  });
}
template <class T, class C>
void TakeCounts() {
  ExpectCode([](Graph& g, int64_t n) {
    auto x = Read(g.Input<T>("x", n));
    auto to = Write(g.Output<T>("to", n));
    auto count = g.Output<C>("count", 1);
    g.Reduce("sum", CountOf(Read(count), n), x, Write(g.Output<T>("y", 1)));
    Select(g, "select", x, to, Write(count), GreaterThan(T{1}));
    Histogram(g, "even", x, Write(g.Output<C>("bins", 9)), EvenBins<T>(0, 9, 9));
    if constexpr (std::is_integral_v<T> && sizeof(T) != 2) {
      Histogram(g, "own", x, Write(g.Output<C>("own bins", 9000)), OwnBin());
    }
  });
}
template <class T, class R>
void FindExtremes() {
  ExpectCode([](Graph& g, int64_t n) {
    auto x = g.Input<T>("x", {3, n + 1});
    auto y = Write(g.Output<R>("y", 1));
    ArgMin(g, "least", Read(x), y);
    ArgMax(g, "greatest", Read(x), y);
    ArgMin(g, "least of part", Read(x, Slice({0, 0}, {2, n})), y);
    ArgMax(g, "greatest of part", Read(x, Slice({0, 0}, {2, n})), y);
  });
}
template <class T, class V>
void Scans() {
  ExpectCode([](Graph& g, int64_t n) {
    auto x = Read(g.Input<T>("x", {5, n}));
    auto y = Write(g.Output<V>("y", {5, n}));
    for (const CombineOrder order : {CombineOrder::kFixed, CombineOrder::kAny}) {
      for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
        Scan(g, "scan", x, y, Plus(), {.kind = kind, .order = order});
        Scan(g, "from 3", x, y, Plus(), V{3}, {.kind = kind, .order = order});
      }
    }
  });
}
template <class T, class Op>
void Rows() {
  ExpectCode([](Graph& g, int64_t n) {
    auto x = g.Input<T>("x", {5, 3, n + 1});
    auto y = Write(g.Output<T>("y", {5, 3}));
    ReduceRows(g, "rows", Read(x), y, Op());
    ReduceRows(g, "part", Read(x, Slice({0, 0, 0}, {5, 3, n})), y, Op());
  });
}
template <class K, class T, class C>
void Runs() {
  ExpectCode([](Graph& g, int64_t n) {
    ReduceByKey(g, "runs", Read(g.Input<K>("keys", n)), Read(g.Input<T>("values", n)), Write(g.Output<K>("unique", n)),
                Write(g.Output<T>("totals", n)), Write(g.Output<C>("count", 1)));
  });
}
template <class T>
void Numbers() {
  Reduces<T, T, Plus>();
  Reduces<T, T, Min>();
  Reduces<T, T, Max>();
  TakeCounts<T, int32_t>();
  TakeCounts<T, int64_t>();
  FindExtremes<T, int32_t>();
  FindExtremes<T, int64_t>();
  Scans<T, T>();
  ExpectCode([](Graph& g, int64_t n) {
    auto keys = Read(g.Input<T>("keys", n));
    auto sorted = Write(g.Output<T>("sorted", n));
    Sort(g, "sort", keys, sorted);
    SortPairs(g, "pairs", keys, sorted, Read(g.Input<int32_t>("values", n)), Write(g.Output<int32_t>("moved", n)));
  });
}
template <class T>
void Keyed() {
  Rows<T, Plus>();
  Rows<T, Min>();
  Rows<T, Max>();
  Runs<int32_t, T, int32_t>();
  Runs<int32_t, T, int64_t>();
  Runs<int64_t, T, int32_t>();
  Runs<int64_t, T, int64_t>();
}

TEST(AlgorithmCode, IsThereForEachListedAlgorithmAndAnyNumberOfElements) {
  Numbers<int32_t>();
  Numbers<int64_t>();
  Numbers<float>();
  Numbers<double>();
  Numbers<uint8_t>();
  Keyed<int32_t>();
  Keyed<int64_t>();
  Keyed<float>();
  Keyed<double>();
  Reduces<uint8_t, int64_t, Plus>();
  Reduces<int32_t, int64_t, Plus>();
  Reduces<float, double, Plus>();
  Scans<int32_t, int64_t>();
}

TEST(AlgorithmCode, IsNotThereForOthers) {
  Graph g("g");
  g.Reduce("reduce", Read(g.Input<int16_t>("x", 10)), Write(g.Output<int16_t>("y", 1)));
  Sort(g, "sort", Read(g.Input<int16_t>("keys", 10)), Write(g.Output<int16_t>("sorted", 10)));
  EXPECT_EQ(Lacking(g), "reduce sort ");
}

}  // namespace
}  // namespace penstock::detail::algorithm_code_test
