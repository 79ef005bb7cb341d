// Decides about a loop, and looks whether the host has stopped it: see loop_kernels.h. One thread looks; one decides,
// and all of its block switch nodes.
//
// CUDA's driver resolves cudaGraphSetConditional and cudaGraphKernelNodeSetEnabled when it loads the image. Both words
// in pinned memory are read before either is used, so that a look takes one trip across the bus.
#include "penstock/detail/programmatic.h"
#include "src/driver/loop_kernels.h"

namespace penstock::driver {

extern "C" __global__ void PenstockDecide(DecideArgs args) {
  detail::AwaitDependencies();
  __shared__ detail::Switching switching;
  if (threadIdx.x == 0) switching = detail::Decide(args.decision, 1);
  if (args.decision.unroll == 1) return;
  __syncthreads();
  if (switching.begin < switching.end) detail::Switch(args.decision, switching, threadIdx.x, blockDim.x);
}

extern "C" __global__ void PenstockLook(LookArgs args) {
  detail::AwaitDependencies();
  volatile uint64_t* const iterations = args.iterations;
  const uint32_t stop = *static_cast<const volatile uint32_t*>(args.stop);
  const uint64_t before = iterations != nullptr ? *iterations : 0;
  if (stop != 0) detail::StopLoop(*args.state, stop);
  if (iterations != nullptr) *iterations = before + 1;
}

}  // namespace penstock::driver
