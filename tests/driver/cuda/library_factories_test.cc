// How the factories of cublas.h, cusolver.h and cufft.h make and destroy handles: by fakes of the libraries, and of the
// few functions of the CUDA runtime that they need, which note each call. Nothing of Penstock's and of CUDA's is
// linked.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/cublas.h"
#include "penstock/cufft.h"
#include "penstock/cusolver.h"

namespace penstock::library_factories_test {
namespace {

std::vector<std::string> calls;  // without arguments, but for those that matter
std::string to_fail;  // the first call of this name, or none
int relaxed = 0;  // how many CaptureScopes are open

// Notes the call; whether it is to succeed.
bool Note(const std::string& call) {
  EXPECT_GT(relaxed, 0) << call << " could break a capture of another thread";
  calls.push_back(call);
  if (to_fail.empty() || !call.starts_with(to_fail)) return true;
  to_fail.clear();
  return false;
}
std::string Named(const char* what, const void* value) {
  return std::string(what) + " " + std::to_string(reinterpret_cast<uintptr_t>(value));
}
template <class T>
T* At(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}
LaunchContext OnStream5() { return {At<void>(5), 0, "cuda:0"}; }

// Makes a T, destroys it, and returns what was called; then with each of these calls failing in turn, after which all
// that was made must have gone.
template <class T, class... Options>
std::vector<std::string> MadeAndDestroyed(const Options&... options) {
  calls.clear();
  EXPECT_TRUE(T::Make(OnStream5(), options...).ok());
  const std::vector<std::string> all = calls;
  for (const std::string& call : all) {
    if (call.find("Destroy") != std::string::npos || call.starts_with("cudaFree")) continue;
    calls.clear();
    to_fail = call;
    const absl::Status failed = T::Make(OnStream5(), options...).status();
    EXPECT_EQ(to_fail, "") << call << " was not called";
    EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << call << ": " << failed;
    int open = 0;
    for (const std::string& made : calls) {
      if (made == call) continue;  // it failed
      open += made.starts_with("cudaMalloc") || made.find("Create") != std::string::npos ? 1 : 0;
      open -= made.starts_with("cudaFree") || made.find("Destroy") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(open, 0) << "when " << call << " had failed";
  }
  return all;
}

TEST(LibraryFactoriesTest, CublasGetsItsWorkspaceAfterTheStream) {
  EXPECT_EQ(MadeAndDestroyed<Cublas>(),
            (std::vector<std::string>{"cudaMalloc 33554432", "cublasCreate", "cublasSetStream 5",
                                      "cublasSetWorkspace 4096 33554432", "cublasSetPointerMode 1", "cublasDestroy",
                                      "cudaFree"}));
}

TEST(LibraryFactoriesTest, CublasHasTheWorkspaceAndPointerModeOfItsOptions) {
  const CublasOptions options{.workspace_bytes = 100, .pointer_mode = CUBLAS_POINTER_MODE_HOST};
  EXPECT_EQ(
      MadeAndDestroyed<Cublas>(options),
      (std::vector<std::string>{"cudaMalloc 100", "cublasCreate", "cublasSetStream 5", "cublasSetWorkspace 4096 100",
                                "cublasSetPointerMode 0", "cublasDestroy", "cudaFree"}));
}

TEST(LibraryFactoriesTest, CusolverGetsTheStream) {
  EXPECT_EQ(MadeAndDestroyed<Cusolver>(),
            (std::vector<std::string>{"cusolverDnCreate", "cusolverDnSetStream 5", "cusolverDnDestroy"}));
}

TEST(LibraryFactoriesTest, CufftPlansWithoutAllocatingAndGetsItsWorkArea) {
  EXPECT_EQ(MadeAndDestroyed<Cufft>(CufftShape{.n = {8, 4}, .type = CUFFT_R2C, .batch = 3}),
            (std::vector<std::string>{"cufftCreate", "cufftSetAutoAllocation 0", "cufftMakePlanMany64 8x4 R2C 3",
                                      "cudaMalloc 640", "cufftSetWorkArea 4096", "cufftSetStream 5", "cufftDestroy",
                                      "cudaFree"}));
}

TEST(LibraryFactoriesTest, CufftWithoutNeedOfAWorkAreaHasNone) {
  EXPECT_EQ(MadeAndDestroyed<Cufft>(CufftShape{.n = {1}}),
            (std::vector<std::string>{"cufftCreate", "cufftSetAutoAllocation 0", "cufftMakePlanMany64 1 C2C 1",
                                      "cufftSetStream 5", "cufftDestroy"}));
}

TEST(LibraryFactoriesTest, ErrorsOfTheLibrariesSayWhatFailedAndHow) {
  EXPECT_EQ(ToStatus(CUBLAS_STATUS_INVALID_VALUE, "gemm"),
            absl::InvalidArgumentError("gemm failed: words (cublasStatus_t 7)"));
  EXPECT_EQ(ToStatus(CUBLAS_STATUS_NOT_SUPPORTED).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStatus(CUBLAS_STATUS_EXECUTION_FAILED).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ToStatus(CUSOLVER_STATUS_INVALID_VALUE, "potrf"),
            absl::InvalidArgumentError("potrf failed: cusolverStatus_t 3 (cusolver_common.h)"));
  EXPECT_EQ(ToStatus(CUFFT_INVALID_SIZE, "fft"), absl::InvalidArgumentError("fft failed: cufftResult 8 (cufft.h)"));
  EXPECT_TRUE(ToStatus(CUBLAS_STATUS_SUCCESS).ok());
  EXPECT_TRUE(ToStatus(CUSOLVER_STATUS_SUCCESS).ok());
  EXPECT_TRUE(ToStatus(CUFFT_SUCCESS).ok());
}

cublasStatus_t Blas(const std::string& call) { return Note(call) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED; }
cusolverStatus_t Solver(const std::string& call) {
  return Note(call) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cufftResult Fft(const std::string& call) { return Note(call) ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED; }

}  // namespace
}  // namespace penstock::library_factories_test

// The fakes. Handles are made only where a call succeeds.
using namespace penstock::library_factories_test;  // NOLINT: they cannot be in a namespace

extern "C" {

cudaError_t cudaMalloc(void** to, size_t bytes) {
  if (!Note("cudaMalloc " + std::to_string(bytes))) return cudaErrorMemoryAllocation;
  *to = At<void>(4096);
  return cudaSuccess;
}
cudaError_t cudaFree(void*) {
  Note("cudaFree");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "name"; }
const char* cudaGetErrorString(cudaError_t) { return "words"; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  relaxed = current == cudaStreamCaptureModeRelaxed ? 1 : 0;
  return cudaSuccess;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const cublasStatus_t status = Blas("cublasCreate");
  if (status == CUBLAS_STATUS_SUCCESS) *handle = At<cublasContext>(16);
  return status;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return Blas("cublasDestroy"); }
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t stream) {
  return Blas(Named("cublasSetStream", stream));
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* at, size_t bytes) {
  return Blas(Named("cublasSetWorkspace", at) + " " + std::to_string(bytes));
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t mode) {
  return Blas("cublasSetPointerMode " + std::to_string(static_cast<int>(mode)));
}
const char* cublasGetStatusString(cublasStatus_t) { return "words"; }

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  const cusolverStatus_t status = Solver("cusolverDnCreate");
  if (status == CUSOLVER_STATUS_SUCCESS) *handle = At<cusolverDnContext>(16);
  return status;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t) { return Solver("cusolverDnDestroy"); }
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t stream) {
  return Solver(Named("cusolverDnSetStream", stream));
}

cufftResult cufftCreate(cufftHandle* plan) {
  const cufftResult result = Fft("cufftCreate");
  if (result == CUFFT_SUCCESS) *plan = 0;  // the first plan of a process has this number
  return result;
}
cufftResult cufftDestroy(cufftHandle) { return Fft("cufftDestroy"); }
cufftResult cufftSetAutoAllocation(cufftHandle, int on) { return Fft("cufftSetAutoAllocation " + std::to_string(on)); }
cufftResult cufftMakePlanMany64(cufftHandle, int rank, long long* n, long long* in, long long, long long,
                                long long* out, long long, long long, cufftType type, long long batch, size_t* bytes) {
  EXPECT_TRUE(in == nullptr && out == nullptr) << "contiguous";
  std::string call = "cufftMakePlanMany64 ";
  for (int d = 0; d < rank; ++d) call += (d > 0 ? "x" : "") + std::to_string(n[d]);
  *bytes = n[0] == 1 ? 0 : 640;
  return Fft(call + (type == CUFFT_R2C ? " R2C " : " C2C ") + std::to_string(batch));
}
cufftResult cufftSetWorkArea(cufftHandle, void* at) { return Fft(Named("cufftSetWorkArea", at)); }
cufftResult cufftSetStream(cufftHandle, cudaStream_t stream) { return Fft(Named("cufftSetStream", stream)); }

}  // extern "C"
