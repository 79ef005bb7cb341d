// Sort and SortPairs: see declare.h.
#include "penstock/sort.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class K>
void DeclareSortsOf(Graph& graph) {
  Sort(graph, "keys", LineOf<K>(graph), LineTo<K>(graph));
  SortPairs(graph, "pairs", LineOf<K>(graph), LineTo<K>(graph), LineOf<int32_t>(graph), LineTo<int32_t>(graph));
}

}  // namespace

void DeclareSorts(Graph& graph) {
  DeclareSortsOf<int32_t>(graph);
  DeclareSortsOf<int64_t>(graph);
  DeclareSortsOf<float>(graph);
  DeclareSortsOf<double>(graph);
  DeclareSortsOf<uint8_t>(graph);
}

}  // namespace penstock::detail
