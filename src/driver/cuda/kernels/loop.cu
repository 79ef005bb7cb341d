// Decides about a loop, and looks whether the host has stopped it: see loop_kernels.h. One thread looks; one decides,
// and all of its block switch nodes.
//
// CUDA's driver resolves cudaGraphSetConditional and cudaGraphKernelNodeSetEnabled when it loads the image.
#include "penstock/detail/programmatic.h"
#include "src/driver/loop_kernels.h"

namespace penstock::driver {

extern "C" __global__ void PenstockDecide(DecideArgs args) {
  detail::AwaitDependencies();
  __shared__ detail::Switching switching;
  if (threadIdx.x == 0) switching = detail::Decide(args.decision, 1);
  if (args.decision.switches == nullptr) return;
  __syncthreads();
  if (switching.begin < switching.end) detail::Switch(args.decision, switching, threadIdx.x, blockDim.x);
}

extern "C" __global__ void PenstockLook(LookArgs args) {
  detail::AwaitDependencies();
  const uint32_t stop = *static_cast<const volatile uint32_t*>(args.stop);
  if (stop != 0) detail::StopLoop(*args.state, stop);
}

}  // namespace penstock::driver
