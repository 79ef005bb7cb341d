#include "tests/conformance/graph/resident_elsewhere.h"

namespace penstock::conformance {
namespace {

struct AddTen {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { x(i) += 10; }
};

}  // namespace

void AddTenElsewhere(Graph& graph, const std::string& name, int64_t n, BufferHandle<int32_t> x) {
  graph.ParallelFor(name, n, AddTen{}, ReadWrite(x));
}

}  // namespace penstock::conformance
