// A library without kernels of algorithms: without CUDA, or without PENSTOCK_BUILD_ALGORITHMS.
#include "penstock/detail/algorithm_code.h"

namespace penstock::detail {

void UseCompiledCode(NodeCode& code) { code.lacks_cuda = true; }

}  // namespace penstock::detail
