// The image is made from kernels/*.cu by the build (cmake/PenstockKernelImage.cmake).
#include "src/driver/cuda/cuda_kernels.h"

#include <algorithm>

#include "penstock/status_macros.h"
#include "src/base/mutex.h"
#include "src/driver/cuda/cuda_status.h"

extern "C" const unsigned char penstock_kernels_fatbin[];

namespace penstock::driver {
namespace {

// Enough blocks to keep any present device busy; the kernel strides over the rest.
constexpr uint64_t kMaxFillBlocks = 2048;

absl::StatusOr<LibraryKernels> LoadImage() {
  cudaLibrary_t library = nullptr;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaLibraryLoadData(&library, penstock_kernels_fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0),
               "loading the library's kernels"));
  LibraryKernels kernels;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaLibraryGetKernel(&kernels.pattern_fill, library, "PenstockPatternFill"),
                                    "finding the pattern fill kernel"));
  return kernels;
}

}  // namespace

absl::StatusOr<LibraryKernels> LibraryKernels::Get() {
  static base::Mutex mu;
  static LibraryKernels loaded;
  base::MutexLock lock(mu);
  if (loaded.pattern_fill == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(loaded, LoadImage());
  }
  return loaded;
}

absl::Status LibraryKernels::Load() const {
  return ToStatus(LoadOnCurrentDevice(pattern_fill, 0), "loading the pattern fill kernel");
}

cudaError_t LoadOnCurrentDevice(const void* kernel, int shared_limit) {
  cudaFuncAttributes attributes;
  if (const cudaError_t code = cudaFuncGetAttributes(&attributes, kernel)) return code;
  const int dynamic = shared_limit - static_cast<int>(attributes.sharedSizeBytes);
  if (dynamic > attributes.maxDynamicSharedSizeBytes) {
    // Without this, launches that ask for more than 48 KiB are refused; where it fails they still are, with a Status.
    Forget(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
  }
  return cudaSuccess;
}

cudaError_t LaunchPatternFill(cudaKernel_t kernel, PatternFill fill, cudaStream_t stream) {
  const uint64_t chunks = fill.bytes / 16 + 1;
  const uint64_t blocks = std::min((chunks + kPatternFillThreads - 1) / kPatternFillThreads, kMaxFillBlocks);
  void* args[] = {&fill};
  return cudaLaunchKernel(static_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                          dim3(kPatternFillThreads), args, 0, stream);
}

}  // namespace penstock::driver
