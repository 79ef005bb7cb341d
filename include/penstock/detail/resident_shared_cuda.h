// The shared memory of a block that runs a resident region (resident_protocol.h), and the part of it that belongs to
// the calling thread's worker.
//
// Threads: device code of a region's kernel, compiled for compute capability 9.0 or more.
#pragma once

#include <cstdint>

#include "penstock/detail/resident_protocol.h"
#include "penstock/export.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
namespace penstock::detail {

// Offsets in the shared memory stand for addresses, so that the compiler knows the kind of memory.
template <class T>
PENSTOCK_HIDDEN __device__ __forceinline__ T& SharedAt(uint32_t offset) {
  extern __shared__ __align__(16) unsigned char penstock_resident_memory[];
  return *reinterpret_cast<T*>(penstock_resident_memory + offset);
}
PENSTOCK_HIDDEN __device__ __forceinline__ ResidentBlock& BlockOfWorker() { return SharedAt<ResidentBlock>(0); }
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t WorkerInBlock() { return threadIdx.x / kLanes; }
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t Lane() { return threadIdx.x % kLanes; }
PENSTOCK_HIDDEN __device__ __forceinline__ ResidentBlock::Worker& ThisWorker() {
  return BlockOfWorker().workers[WorkerInBlock()];
}

// What a decision of this worker (decision.h) has come to, and whether the host has ended the loops.
PENSTOCK_HIDDEN __device__ __forceinline__ void ChooseInRegion(uint32_t choice) { ThisWorker().choice = choice; }
PENSTOCK_HIDDEN __device__ __forceinline__ bool IsRegionStopped() { return ThisWorker().stopped != 0; }
// How many iterations of a loop (Decision::in_region) have begun.
PENSTOCK_HIDDEN __device__ __forceinline__ int64_t IterationsInRegion(uint64_t loop) {
  return ThisWorker().iterations[loop - 1];
}

}  // namespace penstock::detail
#endif
