// Cufft: a plan of cuFFT for the callables of Launch nodes, by LaunchContext::Get.
//
//   PS_ASSIGN_OR_RETURN(ps::Cufft* fft, launch.Get<ps::Cufft>(ps::CufftShape{.n = {512, 512}, .type = CUFFT_C2C}));
//   return ps::ToStatus(cufftExecC2C(fft->plan(), from, to, CUFFT_FORWARD), "cufftExecC2C");
//
// One plan a device, lane, slot and shape, with the node's stream and a work area of its own. So cuFFT allocates
// nothing in a capture, and captured graphs find their memory where it was.
//
// Needs CUDA's and cuFFT's headers; the application links cuFFT (CUDA::cufft). The library itself does not use it.
//
// Threads: as LaunchContext.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cufft.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/cuda.h"
#include "penstock/cuda_workspace.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"
#include "penstock/status_macros.h"

namespace penstock {

// Returns OK for success, else `what` with the number of the error, for which cuFFT has no words. Codes:
// InvalidArgument for a wrong argument or size, ResourceExhausted for memory, FailedPrecondition for what cuFFT or this
// device cannot do, Internal for faults.
PENSTOCK_HIDDEN inline absl::Status ToStatus(cufftResult code, std::string_view what = "a call of cuFFT") {
  if (code == CUFFT_SUCCESS) return absl::OkStatus();
  const std::string text =
      std::string(what) + " failed: cufftResult " + std::to_string(static_cast<int>(code)) + " (cufft.h)";
  switch (code) {
    case CUFFT_INVALID_PLAN:
    case CUFFT_INVALID_TYPE:
    case CUFFT_INVALID_VALUE:
    case CUFFT_INVALID_SIZE:
    case CUFFT_UNALIGNED_DATA: return absl::InvalidArgumentError(text);
    case CUFFT_ALLOC_FAILED: return absl::ResourceExhaustedError(text);
    case CUFFT_NOT_IMPLEMENTED:
    case CUFFT_NOT_SUPPORTED: return absl::FailedPreconditionError(text);
    default: return absl::InternalError(text);
  }
}

// What a plan transforms: `batch` arrays of one to three dimensions, one array after the other, without padding.
struct CufftShape {
  std::array<long long, 3> n{};  // the extents, slowest first; the first 0 ends them
  cufftType type = CUFFT_C2C;  // of the elements that go in and come out
  long long batch = 1;  // the number of arrays
  friend bool operator==(const CufftShape&, const CufftShape&) = default;
};

class Cufft {
 public:
  // The factory that LaunchContext::Get calls.
  PENSTOCK_HIDDEN static absl::StatusOr<std::unique_ptr<Cufft>> Make(const LaunchContext& launch,
                                                                     const CufftShape& shape) {
    const detail::CaptureScope uncaptured;
    std::unique_ptr<Cufft> made(new Cufft);
    std::array<long long, 3> n = shape.n;
    int rank = 0;
    while (rank < 3 && n[static_cast<size_t>(rank)] != 0) ++rank;
    size_t bytes = 0;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cufftCreate(&made->plan_), "cufftCreate"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cufftSetAutoAllocation(made->plan_, 0), "cufftSetAutoAllocation"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(
        cufftMakePlanMany64(made->plan_, rank, n.data(), nullptr, 1, 0, nullptr, 1, 0, shape.type, shape.batch, &bytes),
        "cufftMakePlanMany64"));
    PENSTOCK_ASSIGN_OR_RETURN(made->work_area_, CudaWorkspace::Make(launch, bytes));
    if (bytes > 0) {
      PENSTOCK_RETURN_IF_ERROR(ToStatus(cufftSetWorkArea(made->plan_, made->work_area_->data()), "cufftSetWorkArea"));
    }
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cufftSetStream(made->plan_, CudaStream(launch)), "cufftSetStream"));
    return made;
  }
  PENSTOCK_HIDDEN ~Cufft() {
    const detail::CaptureScope uncaptured;
    if (plan_ != kNone) (void)cufftDestroy(plan_);
  }
  Cufft(const Cufft&) = delete;
  Cufft& operator=(const Cufft&) = delete;

  // For cuFFT's calls. It stays the object's: neither destroy it nor give it another stream or work area.
  cufftHandle plan() const { return plan_; }

 private:
  static constexpr cufftHandle kNone = -1;
  PENSTOCK_HIDDEN Cufft() = default;

  std::unique_ptr<CudaWorkspace> work_area_;  // goes after the plan
  cufftHandle plan_ = kNone;
};

}  // namespace penstock
