// Kernels of an application: loaded by its own translation unit, launched by the driver.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "penstock/cuda.h"
#include "penstock/detail/cuda_kernel.h"
#include "src/base/status.h"
#include "tests/driver/cuda/gpu_latch.h"
#include "tests/driver/cuda/gpu_test.h"

namespace penstock::driver::cuda_kernel_test {
namespace {

using ::testing::HasSubstr;

__global__ void Axpy(float a, const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] += a * x[i];
}

__global__ void __launch_bounds__(128) Bounded(int* sum) {
  __shared__ int values[1000];
  for (int i = static_cast<int>(threadIdx.x); i < 1000; i += static_cast<int>(blockDim.x)) values[i] = sum[i];
  __syncthreads();
  sum[threadIdx.x] = values[999 - threadIdx.x];
}

// Notes, for each block, that `bytes` of dynamic shared memory hold what was written.
__global__ void UseShared(int bytes, int* ok) {
  extern __shared__ unsigned char shared[];
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += static_cast<int>(blockDim.x)) {
    shared[i] = static_cast<unsigned char>(i * 7);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int good = 1;
    for (int i = 0; i < bytes; ++i) good &= shared[i] == static_cast<unsigned char>(i * 7);
    ok[blockIdx.x] = good;
  }
}

// Kernels for single tests, so that no other has loaded them.
__global__ void LoadedByTheSource(int* p) { *p = 1; }
__global__ void LoadedByTheDriver(int* p) { *p = 2; }
__global__ void WriteThrough(int* p) { *p = 3; }
template <class T>
__global__ void HasVariable(T) {
  __attribute__((used)) static __device__ int32_t answer = 42;
}

class CudaKernelTest : public GpuTest {
 protected:
  // Loads a kernel that writes `written` to its argument, then launches it beside a held one.
  void ExpectLaunchWhileHeld(const KernelSource& source, int written) {
    const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, source);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    int* word = reinterpret_cast<int*>(Pinned(sizeof(int)));
    *word = 0;
    void* argv[] = {&word};
    const Stream other = NewStream();
    GpuLatch latch(*driver_);
    ASSERT_TRUE(latch.Hold(stream_).ok());
    ASSERT_TRUE(latch.AwaitRunning());
    EXPECT_TRUE(driver_->Launch(other, {.kernel = kernel->kernel, .argv = argv, .argc = 1}).ok());
    EXPECT_TRUE(Finish(other).ok());
    EXPECT_EQ(*word, written);
    latch.Release();
    EXPECT_TRUE(Finish(stream_).ok());
    EXPECT_FALSE(latch.timed_out());
  }
};

KernelSource SourceOf(const void* stub) { return {&detail::LoadCudaKernel, stub}; }
template <class K>
KernelSource SourceOf(K* kernel) {
  return SourceOf(reinterpret_cast<const void*>(kernel));
}

TEST_F(CudaKernelTest, LaunchesWithArgumentsAndShape) {
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&Axpy));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int n = 1000;
  float a = 3;
  auto* x = reinterpret_cast<float*>(Pinned(n * sizeof(float)));  // mapped: kernels read it in place
  auto* y = reinterpret_cast<float*>(Pinned(n * sizeof(float)));
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
  }
  void* argv[] = {&a, &x, &y, &n};
  const KernelOp op{.kernel = kernel->kernel, .grid = {8, 1, 1}, .block = {128, 1, 1}, .argv = argv, .argc = 4};
  ASSERT_TRUE(driver_->Launch(stream_, op).ok());
  a = 0;  // read before the call returned
  ASSERT_TRUE(Finish(stream_).ok());
  for (int i = 0; i < n; ++i) ASSERT_EQ(y[i], 3 * static_cast<float>(i) + 1) << i;
}

// The first launch of a kernel that is not loaded would wait for the held one.
TEST_F(CudaKernelTest, AFirstLaunchDoesNotLoad) { ExpectLaunchWhileHeld(SourceOf(&LoadedByTheSource), 1); }

// A source that only knows the handle: the driver loads by itself.
TEST_F(CudaKernelTest, DriverLoadsWhatTheSourceDidNot) {
  static constexpr auto kHandleOnly = [](const void* stub, int* error) -> const void* {
    cudaKernel_t kernel = nullptr;
    *error = cudaGetKernel(&kernel, stub);
    return kernel;
  };
  ExpectLaunchWhileHeld({kHandleOnly, reinterpret_cast<const void*>(&LoadedByTheDriver)}, 2);
}

TEST_F(CudaKernelTest, BlocksCanHaveAllTheDevicesSharedMemory) {
  int most = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), cudaSuccess);
  ASSERT_GT(most, 48 << 10);
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&UseShared));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int* ok = reinterpret_cast<int*>(Pinned(3 * sizeof(int)));
  void* argv[] = {&most, &ok};
  KernelOp op{.kernel = kernel->kernel, .grid = {3, 1, 1}, .block = {256, 1, 1}, .argv = argv, .argc = 2};
  op.shared_bytes = static_cast<uint32_t>(most);
  const absl::Status status = driver_->Launch(stream_, op);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(Finish(stream_).ok());
  EXPECT_EQ(ok[0] + ok[1] + ok[2], 3);
}

TEST_F(CudaKernelTest, ALoadedKernelTellsWhatItsBlocksCanHave) {
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&Bounded));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->block_threads, 128);
  EXPECT_EQ(kernel->shared_bytes, 4000);
  const base::KernelLimits& limits = driver_->device(0).limits;
  EXPECT_EQ(limits.block_threads, 1024);
  EXPECT_EQ(limits.block, (std::array<int64_t, 3>{1024, 1024, 64}));
  EXPECT_EQ(limits.grid, (std::array<int64_t, 3>{INT32_MAX, 65535, 65535}));
  EXPECT_GT(limits.shared_bytes, 48 << 10);
}

TEST_F(CudaKernelTest, ABadShapeIsTheCallersMistake) {
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&Axpy));
  ASSERT_TRUE(kernel.ok());
  float a = 0;
  float* x = nullptr;
  int n = 0;
  void* argv[] = {&a, &x, &x, &n};
  const KernelOp op{.kernel = kernel->kernel, .grid = {2, 1, 1}, .block = {5000, 1, 1}, .argv = argv, .argc = 4};
  const absl::Status status = driver_->Launch(stream_, op);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(base::Str(status.message()), HasSubstr("launching 2 x 1 x 1 blocks of 5000 x 1 x 1 threads"));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_TRUE(Finish(stream_).ok());
}

TEST_F(CudaKernelTest, AnEmptyGridIsNoLaunch) {
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&Axpy));
  ASSERT_TRUE(kernel.ok());
  for (int axis = 0; axis < 3; ++axis) {
    KernelOp op{.kernel = kernel->kernel};
    op.grid[axis] = 0;
    EXPECT_TRUE(driver_->Launch(stream_, op).ok());
  }
}

void NoKernel() {}

TEST_F(CudaKernelTest, FindsAVariableInAKernelsBody) {
  KernelSource source = SourceOf(&HasVariable<CudaKernelTest*>);
  source.variable = "answer";
  const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, source);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int32_t found = 0;
  ASSERT_EQ(cudaMemcpy(&found, kernel->variable, sizeof(found), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(found, 42);
  source.variable = "question";
  const absl::Status status = driver_->LoadKernel(0, source).status();
  EXPECT_NE(status.message().find("question"), std::string::npos) << status;
}

TEST_F(CudaKernelTest, WhatIsNoKernelIsRefusedAtLoad) {
  const absl::Status status = driver_->LoadKernel(0, SourceOf(&NoKernel)).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(base::Str(status.message()), HasSubstr("loading a kernel on cuda:0 (sm_"));
  EXPECT_FALSE(base::FaultOf(status)->fatal);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaKernelTest, ASourceWithoutAReasonLosesOnlyItsKernel) {
  static constexpr auto kNothing = [](const void*, int* error) -> const void* {
    *error = 0;
    return nullptr;
  };
  const absl::Status status = driver_->LoadKernel(0, {kNothing, nullptr}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_FALSE(base::FaultOf(status)->fatal);
}

TEST_F(CudaKernelTest, CodeThatNvccDidNotCompileIsRefusedAtLoad) {
  const absl::Status status = driver_->LoadKernel(0, KernelSource{}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Str(status.message()), HasSubstr("compile its file with nvcc"));
}

TEST_F(CudaKernelTest, ForeignCodeSubmitsToTheStream) {
  const std::vector<std::byte> noise = Noise(1000, 5);
  std::byte *const pinned = Pinned(1000), *const memory = Device(1000);
  std::copy(noise.begin(), noise.end(), pinned);
  const LaunchContext launch(driver_->NativeStream(stream_), 0, "cuda:0");
  EXPECT_EQ(CudaStream(launch), driver_->NativeStream(stream_));
  const absl::Status status =
      penstock::ToStatus(cudaMemcpyAsync(memory, pinned, 1000, cudaMemcpyHostToDevice, CudaStream(launch)), "copying");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Download(memory, 1000), noise);  // on the same stream
}

// In a process of its own, which loses its device.
class CudaFaultDeathTest : public GpuTest {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    GpuTest::SetUp();
  }

  [[noreturn]] void LoseTheDevice() {
    const absl::StatusOr<KernelCode> kernel = driver_->LoadKernel(0, SourceOf(&WriteThrough));
    int* nowhere = reinterpret_cast<int*>(uintptr_t{64});
    void* argv[] = {&nowhere};
    std::byte* const memory = Device(256);
    const Event event = NewEvent();
    (void)driver_->Launch(stream_, {.kernel = kernel.value_or(KernelCode{}).kernel, .argv = argv, .argc = 1});
    (void)driver_->Record(event, stream_);
    const absl::Status first = Finish(event);
    const auto fault = base::FaultOf(first);
    const bool fatal = first.code() == absl::StatusCode::kInternal && fault && fault->fatal && fault->cuda_code == 700;
    // Everything later says the same, and releases are quiet.
    const absl::Status later[] = {driver_->Record(event, stream_), driver_->AllocateDevice(0, 16).status(),
                                  driver_->Query(event).status(), driver_->CreateStream(0, 0).status(),
                                  driver_->Copy(stream_, {.dst = memory, .src = memory, .width = 4})};
    bool same = true;
    for (const absl::Status& status : later) same &= base::FaultOf(status) && base::FaultOf(status)->cuda_code == 700;
    driver_->FreeDevice(0, memory);
    driver_->DestroyEvent(event);
    driver_->DestroyStream(stream_);
    driver_.reset();
    std::fprintf(stderr, "fatal=%d same=%d %s\n", fatal, same, first.ToString().c_str());
    std::exit(0);
  }
};

TEST_F(CudaFaultDeathTest, AnIllegalAccessIsFatalAndEveryLaterCallSaysSo) {
  EXPECT_EXIT(LoseTheDevice(), ::testing::ExitedWithCode(0), "fatal=1 same=1 .*lost its CUDA devices");
}

}  // namespace
}  // namespace penstock::driver::cuda_kernel_test
