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

// By an address in shared memory, so that the compiler knows the kind of memory.
template <class T>
PENSTOCK_HIDDEN __device__ __forceinline__ T& SharedAt(uint32_t address) {
  return *static_cast<T*>(__cvta_shared_to_generic(address));
}
PENSTOCK_HIDDEN __device__ __forceinline__ ResidentBlock& BlockOfWorker() {
  extern __shared__ __align__(16) unsigned char penstock_resident_memory[];
  return *reinterpret_cast<ResidentBlock*>(penstock_resident_memory);
}
template <class T>
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t AddressOf(const T& shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(&shared));
}
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t WorkerInBlock() { return threadIdx.x / kLanes; }
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t Lane() { return threadIdx.x % kLanes; }
PENSTOCK_HIDDEN __device__ __forceinline__ ResidentBlock::Worker& ThisWorker() {
  return BlockOfWorker().workers[WorkerInBlock()];
}

}  // namespace penstock::detail
#endif
