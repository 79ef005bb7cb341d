// ReduceByKey: see declare.h.
#include "penstock/reduce_by_key.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class K, class T, class C>
void DeclareTotals(Graph& graph) {
  for (const int64_t n : {kFew, kMany - 1}) {
    ReduceByKey(graph, "totals", From<K>(graph, n), From<T>(graph, n), To<K>(graph, n), To<T>(graph, n),
                To<C>(graph, 1));
  }
}
template <class K>
void DeclareRunsOf(Graph& graph) {
  DeclareTotals<K, int32_t, int32_t>(graph);
  DeclareTotals<K, int32_t, int64_t>(graph);
  DeclareTotals<K, int64_t, int32_t>(graph);
  DeclareTotals<K, int64_t, int64_t>(graph);
  DeclareTotals<K, float, int32_t>(graph);
  DeclareTotals<K, float, int64_t>(graph);
  DeclareTotals<K, double, int32_t>(graph);
  DeclareTotals<K, double, int64_t>(graph);
}

}  // namespace

void DeclareRuns(Graph& graph) {
  DeclareRunsOf<int32_t>(graph);
  DeclareRunsOf<int64_t>(graph);
}

}  // namespace penstock::detail
