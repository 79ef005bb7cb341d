// Select by a comparison: see declare.h.
#include "penstock/compared.h"
#include "penstock/select.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class C>
void DeclareSelectionsTo(Graph& graph) {
  for (const int64_t n : {kFew, kMany - 1}) {
    Select(graph, "select", From<T>(graph, n), To<T>(graph, n), To<C>(graph, 1), LessThan(T{}));
  }
}
template <class T>
void DeclareSelectionsOf(Graph& graph) {
  DeclareSelectionsTo<T, int32_t>(graph);
  DeclareSelectionsTo<T, int64_t>(graph);
}

}  // namespace

void DeclareSelections(Graph& graph) {
  DeclareSelectionsOf<int32_t>(graph);
  DeclareSelectionsOf<int64_t>(graph);
  DeclareSelectionsOf<float>(graph);
  DeclareSelectionsOf<double>(graph);
  DeclareSelectionsOf<uint8_t>(graph);
}

}  // namespace penstock::detail
