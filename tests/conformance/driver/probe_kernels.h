// Kernels that the driver conformance suite launches, each for host devices and, by a driver's author, for CUDA.
//
// A Probe holds the host code and the source of the CUDA kernel; a driver uses the one it knows. The CUDA kernels take
// the same arguments in the same order and stand in a .cu file.
#pragma once

#include <cstdint>

#include "src/driver/driver.h"

namespace penstock::driver::conformance {

// Lies in pinned memory, which kernels of every driver see at the same address.
struct KernelLatch {
  uint32_t started = 0;    // written by the kernel
  uint32_t open = 0;       // written by the test
  uint32_t timed_out = 0;  // the kernel gave up after 20 s
};

// What NoteLatch writes.
inline constexpr int32_t kSawClosed = 1, kSawOpen = 2;

struct Probe {
  void (*range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  KernelSource cuda;
};

struct ProbeKernels {
  // (int32_t* data, int64_t n, int32_t k): data[i] = data[i] * 3 + k for i < n. Launched with one row or thread an
  // element.
  Probe step;
  // (KernelLatch* latch): says that it has started, then stays until the latch is open. One row or thread.
  Probe hold;
  // (const KernelLatch* latch, int32_t* out): *out = whether the latch was open. One row or thread.
  Probe note;
  // (uint64_t handle, LoopState* loop, int64_t most, DecisionKind kind, int32_t* number, int32_t by): decides by the
  // number, and takes `by` from it. One row or thread.
  Probe decide;
};

// With host code only.
const ProbeKernels& HostProbes();

// Waits until the kernel has started; false if it has not after a minute.
bool AwaitStarted(const KernelLatch& latch);
void Open(KernelLatch& latch);

}  // namespace penstock::driver::conformance
