// The CUDA driver in the drivers' conformance suite: its probe kernels and its registration.
#include <gtest/gtest.h>

#include "penstock/detail/cuda_kernel.h"
#include "penstock/detail/decision.h"
#include "src/driver/cuda/cuda_driver.h"
#include "tests/conformance/driver/driver_conformance.h"

namespace penstock::driver::conformance {
namespace {

constexpr uint64_t kTimeOutNs = 20'000'000'000;

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void Set(uint32_t* word) {
  *const_cast<volatile uint32_t*>(word) = 1;
  __threadfence_system();
}

__device__ bool IsOpen(const KernelLatch* latch) { return *const_cast<const volatile uint32_t*>(&latch->open) != 0; }

__global__ void StepKernel(int32_t* data, int64_t n, int32_t k) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) data[i] = static_cast<int32_t>(static_cast<uint32_t>(data[i]) * 3 + static_cast<uint32_t>(k));
}

__global__ void HoldKernel(KernelLatch* latch) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  Set(&latch->started);
  const uint64_t begin = NowNs();
  while (!IsOpen(latch)) {
    if (NowNs() - begin > kTimeOutNs) {
      Set(&latch->timed_out);
      return;
    }
    __nanosleep(100);
  }
  __threadfence_system();
}

__global__ void NoteKernel(const KernelLatch* latch, int32_t* out) { *out = IsOpen(latch) ? kSawOpen : kSawClosed; }

__global__ void DecideKernel(uint64_t handle, detail::LoopState* loop, int64_t most, detail::DecisionKind kind,
                             int32_t* number, int32_t by) {
  const int32_t value = *number;
  *number = value - by;
  detail::Decision decision;
  decision.handle = handle;
  decision.loop = loop;
  decision.most = most;
  decision.kind = kind;
  detail::Decide(decision, static_cast<uint32_t>(value));
}

Probe ProbeOf(const Probe& host, const void* stub) { return {host.range, {&detail::LoadCudaKernel, stub}}; }

const ProbeKernels& CudaProbes() {
  static const ProbeKernels kProbes{ProbeOf(HostProbes().step, reinterpret_cast<const void*>(&StepKernel)),
                                    ProbeOf(HostProbes().hold, reinterpret_cast<const void*>(&HoldKernel)),
                                    ProbeOf(HostProbes().note, reinterpret_cast<const void*>(&NoteKernel)),
                                    ProbeOf(HostProbes().decide, reinterpret_cast<const void*>(&DecideKernel))};
  return kProbes;
}

void Synchronize(void* native_stream) {
  EXPECT_NE(cudaStreamSynchronize(static_cast<cudaStream_t>(native_stream)), cudaSuccess);
}

absl::StatusOr<std::unique_ptr<Driver>> CreateWithoutBell(penstock::host::EventCount* /*event_count*/) {
  return CreateCudaDriver({});
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, DriverConformance,
                         testing::Values(DriverUnderTest{"cuda", &CreateWithoutBell, &CudaProbes, &Synchronize},
                                         DriverUnderTest{"cuda_checked", &CreateWithoutBell, &CudaProbes, &Synchronize,
                                                         true}),
                         NameOf);

}  // namespace penstock::driver::conformance
