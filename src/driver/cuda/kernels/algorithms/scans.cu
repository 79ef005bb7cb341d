// Scan: see declare.h.
#include "penstock/scan.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class V>
void DeclareScanOf(Graph& graph) {
  for (const CombineOrder order : {CombineOrder::kFixed, CombineOrder::kAny}) {
    for (const int64_t width : {kFew, kMany}) {
      Scan(graph, "sums", From<T>(graph, {kRows, width}), To<V>(graph, {kRows, width}), Plus(), {.order = order});
    }
  }
}

}  // namespace

void DeclareScans(Graph& graph) {
  DeclareScanOf<int32_t, int32_t>(graph);
  DeclareScanOf<int64_t, int64_t>(graph);
  DeclareScanOf<float, float>(graph);
  DeclareScanOf<double, double>(graph);
  DeclareScanOf<uint8_t, uint8_t>(graph);
  DeclareScanOf<int32_t, int64_t>(graph);
}

}  // namespace penstock::detail
