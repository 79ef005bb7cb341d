// ReduceByKey: see declare.h.
#include "penstock/reduce_by_key.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class K, class T>
void DeclareTotals(Graph& graph) {
  ReduceByKey(graph, "totals", LineOf<K>(graph), LineOf<T>(graph), LineTo<K>(graph), LineTo<T>(graph),
              LineTo<int64_t>(graph, 1));
}
template <class K>
void DeclareRunsOf(Graph& graph) {
  DeclareTotals<K, int32_t>(graph);
  DeclareTotals<K, int64_t>(graph);
  DeclareTotals<K, float>(graph);
  DeclareTotals<K, double>(graph);
}

}  // namespace

void DeclareRuns(Graph& graph) {
  DeclareRunsOf<int32_t>(graph);
  DeclareRunsOf<int64_t>(graph);
}

}  // namespace penstock::detail
