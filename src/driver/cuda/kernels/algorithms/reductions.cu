// Reduce and the two Arg: see declare.h.
#include "penstock/arg_max.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class V, class Op>
void DeclareReduceBy(Graph& graph) {
  for (const int64_t width : {kFew, kMany}) {
    for (const auto& from : {From<T>(graph, {kRows, width}), FromPart<T>(graph, width)}) {
      graph.Reduce("reduce", from, To<V>(graph, 1), Op());
    }
  }
}
template <class T, class C>
void DeclareCountedSum(Graph& graph) {
  for (const int64_t most : {kFew, kMany - 1}) {
    graph.Reduce("reduce", CountOf(From<C>(graph, 1), most), From<T>(graph, most), To<T>(graph, 1));
  }
}
template <class T, class R>
void DeclareArgs(Graph& graph) {
  for (const int64_t width : {kFew, kMany}) {
    for (const auto& from : {From<T>(graph, {kRows, width}), FromPart<T>(graph, width)}) {
      ArgMin(graph, "least", from, To<R>(graph, 1));
      ArgMax(graph, "greatest", from, To<R>(graph, 1));
    }
  }
}
template <class T>
void DeclareReductionsOf(Graph& graph) {
  DeclareReduceBy<T, T, Plus>(graph);
  DeclareReduceBy<T, T, Min>(graph);
  DeclareReduceBy<T, T, Max>(graph);
  DeclareCountedSum<T, int32_t>(graph);
  DeclareCountedSum<T, int64_t>(graph);
  DeclareArgs<T, int32_t>(graph);
  DeclareArgs<T, int64_t>(graph);
}

}  // namespace

void DeclareReductions(Graph& graph) {
  DeclareReductionsOf<int32_t>(graph);
  DeclareReductionsOf<int64_t>(graph);
  DeclareReductionsOf<float>(graph);
  DeclareReductionsOf<double>(graph);
  DeclareReductionsOf<uint8_t>(graph);
  DeclareReduceBy<uint8_t, int64_t, Plus>(graph);
  DeclareReduceBy<int32_t, int64_t, Plus>(graph);
  DeclareReduceBy<float, double, Plus>(graph);
}

}  // namespace penstock::detail
