// The library's kernels of algorithms, for files that nvcc does not compile: see penstock/detail/algorithm_code.h.
//
// Owns a table of the code that the nodes of kernels/algorithms/ have. It is made when it is first asked for, by the
// first algorithm that a program compiled without nvcc declares, and lives until the process ends.
//
// Threads: thread-safe.
#include "penstock/detail/algorithm_code.h"

#include <algorithm>
#include <vector>

#include "penstock/penstock.h"
#include "src/driver/cuda/kernels/algorithms/declare.h"

namespace penstock::detail {
namespace {

struct Compiled {
  TypeInfo algorithm;
  decltype(NodeCode::call) call;
  decltype(NodeCode::cuda_kernel) cuda_kernel;
  const void* cuda_self;
};

const std::vector<Compiled>& AllCompiled() {
  static const auto* const all = [] {
    Graph graph("algorithms");
    for (const auto declare : {&DeclareReductions, &DeclareRows, &DeclareRuns, &DeclareScans, &DeclareSelections,
                               &DeclareHistograms, &DeclareSorts})
      declare(graph);
    auto* const codes = new std::vector<Compiled>();
    for (const NodeDecl& node : graph.model().nodes) {
      const NodeCode& code = node.code;
      const auto same = [&](const Compiled& other) { return other.algorithm == code.algorithm; };
      if (code.algorithm.size == 0 || std::any_of(codes->begin(), codes->end(), same)) continue;
      codes->push_back({code.algorithm, code.call, code.cuda_kernel, code.cuda_self});
    }
    return codes;
  }();
  return *all;
}

}  // namespace

void UseCompiledCode(NodeCode& code) {
  for (const Compiled& compiled : AllCompiled()) {
    if (compiled.algorithm != code.algorithm) continue;
    if (compiled.call != nullptr) code.call = compiled.call;
    code.cuda_kernel = compiled.cuda_kernel;
    code.cuda_self = compiled.cuda_self;
    return;
  }
  code.lacks_cuda = true;
}

}  // namespace penstock::detail
