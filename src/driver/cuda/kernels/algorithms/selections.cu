// Select by a comparison: see declare.h.
#include "penstock/compared.h"
#include "penstock/select.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T>
void DeclareSelectionsOf(Graph& graph) {
  for (const int64_t width : {int64_t{1}, kWidth}) {
    Select(graph, "select", Read(graph.Input<T>("from", width)), LineTo<T>(graph, width), LineTo<int64_t>(graph, 1),
           LessThan(T{}));
  }
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
