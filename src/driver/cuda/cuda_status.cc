// Slow paths of cuda_status.h, reached only after failed calls.
#include "src/driver/cuda/cuda_status.h"

#include <atomic>

#include "penstock/detail/cuda_error.h"
#include "src/base/status.h"

namespace penstock::driver {
namespace {

// Per process, as is the loss it records.
std::atomic<bool> lost{false};

void Note(cudaError_t code) {
  (void)cudaGetLastError();
  if (detail::IsFatalCudaError(code)) lost.store(true, std::memory_order_relaxed);
}

}  // namespace

absl::Status StatusOfFailure(cudaError_t code, std::string_view what) {
  Note(code);
  return base::WithFault(absl::Status(detail::StatusCodeOfCudaError(code), detail::TextOfCudaError(code, what)),
                         {.cuda_code = static_cast<int>(code), .fatal = detail::IsFatalCudaError(code)});
}

absl::Status ToRefusal(cudaError_t code, std::string_view what) {
  absl::Status status = ToStatus(code, what);
  if (!absl::IsInvalidArgument(status)) return status;
  return base::WithFault(absl::FailedPreconditionError(status.message()), {.cuda_code = static_cast<int>(code)});
}

void Forget(cudaError_t code) {
  if (code != cudaSuccess) Note(code);
}

bool CudaIsLost() { return lost.load(std::memory_order_relaxed); }

}  // namespace penstock::driver
