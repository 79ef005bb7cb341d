// The callable of a Launch node in a file that may be compiled without CUDA.
#pragma once

#include "absl/status/status.h"
#include "penstock/launch_context.h"

namespace penstock::detail {

// What stands for a callable where there is no CUDA.
struct CompiledWithoutCuda {
  template <class... Args>
  PENSTOCK_HIDDEN absl::Status operator()(LaunchContext&, const Args&...) const {
    return absl::UnimplementedError(
        "the callable was compiled without CUDA, by PENSTOCK_ON_CUDA; compile its file with nvcc or include "
        "penstock/cuda.h there, or use host devices and a HostFallback");
  }
};

}  // namespace penstock::detail

// The callable of a Launch node that needs CUDA: itself if nvcc compiles the file, or if the file includes
// penstock/cuda.h or a header for one of CUDA's libraries. Elsewhere nothing of it is compiled, and the node runs on
// host devices only, by its HostFallback; on another device it fails with Unimplemented.
//
//   graph.Launch("gemv", PS_ON_CUDA(Gemv), ...).HostFallback(GemvOnHost);
#if defined(__CUDACC__)
#define PENSTOCK_ON_CUDA(...) __VA_ARGS__
#else
#define PENSTOCK_ON_CUDA(...) \
  ::penstock::detail::CompiledWithoutCuda {}
#endif
