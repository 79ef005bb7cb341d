// What a node of an algorithm is an instance of, by which a file that nvcc did not compile gets the kernels for it that
// the library has: those of the algorithms over int32_t, int64_t, float, double and uint8_t.
//
// Threads: thread-safe.
#pragma once

#include "penstock/detail/host_device.h"
#include "penstock/detail/model.h"
#include "penstock/detail/type_of.h"
#include "penstock/export.h"
#include "penstock/view.h"

#if defined(__CUDACC__)
#include "penstock/detail/cuda_kernel.h"
#endif

namespace penstock::detail {

// Names an instance by the types that it is made of. Compilers agree on these names with RTTI; without it they disagree
// on some.
template <class... Parts>
struct AlgorithmOf {};
template <int kRank, class F, class... Stored>
struct LeavesOf {};

// What names an argument: a checked View has the memory of the other in front (checked_view.h), so kernels take both.
template <class Stored>
struct NameOfStored {
  using type = Stored;
};
template <class T>
struct NameOfStored<View<T>> {
  using type = T*;
};

// Adds the library's kernel, or its callable of a Launch node, for `code.algorithm`, or sets `code.lacks_cuda` if there
// is none. Without CUDA, or built without PENSTOCK_BUILD_ALGORITHMS, the library has none.
PENSTOCK_EXPORT void UseCompiledCode(NodeCode& code);

// The code of a kernel of the library's headers. Where nvcc does not compile it, `kernel` is only a name for the node.
template <bool kNvcc, class Algorithm, class... K>
PENSTOCK_HIDDEN NodeCode CodeOfKernel(void (*kernel)(K...)) {
  NodeCode code;
  code.cuda_self = reinterpret_cast<const void*>(kernel);
  code.algorithm = TypeOf<Algorithm>();
#if defined(__CUDACC__)
  code.cuda_kernel = &LoadCudaKernel;
#else
  UseCompiledCode(code);
#endif
  return code;
}
// The same of a Launch node's callable, which has the same members whoever compiles it.
template <bool kNvcc, class Algorithm>
PENSTOCK_HIDDEN NodeCode CodeOfLaunch(absl::Status (*call)(void* callable, LaunchContext* launch, void* const* argv)) {
  NodeCode code;
  code.call = call;
  code.algorithm = TypeOf<Algorithm>();
  if constexpr (!kNvcc) UseCompiledCode(code);
  return code;
}

}  // namespace penstock::detail
