// ReduceRows: see declare.h.
#include "penstock/reduce_rows.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class V, class Op>
void DeclareRowsBy(Graph& graph) {
  constexpr int64_t kPacks = 32;  // rows of a power of two up to 256 have a kernel of their own
  for (const int64_t width : {kFew, kPacks, kMany}) {
    for (const auto& from : {From<T>(graph, {kRows, width}), FromPart<T>(graph, width)}) {
      ReduceRows(graph, "rows", from, To<V>(graph, kRows), Op());
    }
  }
}
template <class T>
void DeclareRowsOf(Graph& graph) {
  DeclareRowsBy<T, T, Plus>(graph);
  DeclareRowsBy<T, T, Min>(graph);
  DeclareRowsBy<T, T, Max>(graph);
}

}  // namespace

void DeclareRows(Graph& graph) {
  DeclareRowsOf<int32_t>(graph);
  DeclareRowsOf<int64_t>(graph);
  DeclareRowsOf<float>(graph);
  DeclareRowsOf<double>(graph);
}

}  // namespace penstock::detail
