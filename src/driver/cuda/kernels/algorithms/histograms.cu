// Histogram: see declare.h.
#include "penstock/histogram.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

template <class T, class F>
void DeclareBins(Graph& graph, const F& bin) {
  Histogram(graph, "bins", From<T>(graph, kMany), To<int32_t>(graph, 256), bin);
  Histogram(graph, "bins", From<T>(graph, kMany), To<int64_t>(graph, 256), bin);
}
template <class T>
void DeclareEvenBins(Graph& graph) {
  DeclareBins<T>(graph, EvenBins<T>(0, 1, 1));
}

}  // namespace

void DeclareHistograms(Graph& graph) {
  DeclareBins<uint8_t>(graph, OwnBin());
  DeclareBins<int32_t>(graph, OwnBin());
  DeclareBins<int64_t>(graph, OwnBin());
  DeclareEvenBins<int32_t>(graph);
  DeclareEvenBins<int64_t>(graph);
  DeclareEvenBins<float>(graph);
  DeclareEvenBins<double>(graph);
  DeclareEvenBins<uint8_t>(graph);
}

}  // namespace penstock::detail
