// Decides about a loop, and looks whether the host has stopped it: see loop_kernels.h. One thread each.
//
// CUDA's driver resolves cudaGraphSetConditional when it loads the image. Both words in pinned memory are read before
// either is used, so that a look takes one trip across the bus.
#include "penstock/detail/programmatic.h"
#include "src/driver/loop_kernels.h"

namespace penstock::driver {

extern "C" __global__ void PenstockDecide(DecideArgs args) {
  detail::AwaitDependencies();
  detail::Decide(args.decision, 1);
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
