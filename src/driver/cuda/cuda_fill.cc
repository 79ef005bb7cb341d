// The driver's memset takes patterns of equal bytes, in lines and planes; the kernel does everything else.
#include "src/driver/cuda/cuda_fill.h"

#include <algorithm>
#include <cstdint>

#include "src/driver/fill_box.h"

namespace penstock::driver {
namespace {

constexpr size_t kMostPitch = INT32_MAX;  // in CUDA's own pitched calls (cudaDevAttrMaxPitch)

bool IsOneByte(const FillOp& op) {
  const auto* const first = op.pattern.data();
  return std::all_of(first, first + op.pattern_size, [=](std::byte b) { return b == *first; });
}

}  // namespace

cudaError_t SubmitFill(const LibraryKernels& kernels, const FillOp& op, cudaStream_t stream) {
  const FillOp least = Collapse(op);
  const bool plane = least.height > 1;
  if (!IsOneByte(op) || least.depth > 1 || (plane && least.pitch > kMostPitch)) {
    return Submit(kernels.pattern_fill, LaunchOf(least), stream);
  }
  const int value = std::to_integer<int>(op.pattern[0]);
  const size_t width = least.count * least.pattern_size;
  if (!plane) return cudaMemsetAsync(least.dst, value, width, stream);
  return cudaMemset2DAsync(least.dst, least.pitch, value, width, least.height, stream);
}

}  // namespace penstock::driver
