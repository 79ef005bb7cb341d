// Sort and SortPairs: see declare.h.
#include "penstock/sort.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class K>
void DeclareSortsOf(Graph& graph) {
  Sort(graph, "keys", From<K>(graph, kFew), To<K>(graph, kFew));
  SortPairs(graph, "pairs", From<K>(graph, kFew), To<K>(graph, kFew), From<int32_t>(graph, kFew),
            To<int32_t>(graph, kFew));
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
