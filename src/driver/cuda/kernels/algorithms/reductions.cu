// Reduce and the two Arg: see declare.h.
#include "penstock/arg_max.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class V, class Op>
void DeclareReduceBy(Graph& graph) {
  for (const auto& from : {AllOf<T>(graph), PartOf<T>(graph)}) graph.Reduce("reduce", from, LineTo<V>(graph, 1), Op());
}
template <class T>
void DeclareCountedSum(Graph& graph) {
  graph.Reduce("reduce", CountOf(Read(graph.Input<int64_t>("count", 1)), kWidth), LineOf<T>(graph),
               LineTo<T>(graph, 1));
}
template <class T, class R>
void DeclareArgs(Graph& graph) {
  for (const auto& from : {AllOf<T>(graph), PartOf<T>(graph)}) {
    ArgMin(graph, "least", from, LineTo<R>(graph, 1));
    ArgMax(graph, "greatest", from, LineTo<R>(graph, 1));
  }
}
template <class T>
void DeclareReductionsOf(Graph& graph) {
  DeclareReduceBy<T, T, Plus>(graph);
  DeclareReduceBy<T, T, Min>(graph);
  DeclareReduceBy<T, T, Max>(graph);
  DeclareCountedSum<T>(graph);
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
