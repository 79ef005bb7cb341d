// The library's kernels of algorithms, for files that nvcc does not compile: see penstock/detail/algorithm_code.h.
//
// Owns a table of the code that the nodes of kernels/algorithms/ have. It is made when it is first asked for, by the
// first algorithm that a program compiled without nvcc declares, and lives until the process ends.
//
// Threads: thread-safe.
#include "penstock/detail/algorithm_code.h"

#include <vector>

#include "penstock/penstock.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

const std::vector<NodeCode>& CompiledCode() {
  static const auto* const all = [] {
    Graph graph("algorithms");
    for (const auto declare : {&DeclareReductions, &DeclareRows, &DeclareRuns, &DeclareScans, &DeclareSelections,
                               &DeclareHistograms, &DeclareSorts})
      declare(graph);
    auto* const codes = new std::vector<NodeCode>();
    for (const NodeDecl& node : graph.model().nodes) {
      if (node.code.algorithm.size != 0) codes->push_back(node.code);
    }
    return codes;
  }();
  return *all;
}

}  // namespace

void UseCompiledCode(NodeCode& code) {
  for (const NodeCode& compiled : CompiledCode()) {
    if (compiled.algorithm != code.algorithm) continue;
    if (compiled.call != nullptr) code.call = compiled.call;
    code.cuda_kernel = compiled.cuda_kernel;
    code.cuda_self = compiled.cuda_self;
    return;
  }
}

}  // namespace penstock::detail
