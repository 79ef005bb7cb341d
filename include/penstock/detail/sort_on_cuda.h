// A sort of one row by CUB, for the callable of a sort's node. Only nvcc compiles it.
//
// Threads: as LaunchContext.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/cuda.h"
#include "penstock/cuda_workspace.h"
#include "penstock/detail/radix_sort.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"
#include "penstock/status_macros.h"
#include "penstock/view.h"

namespace penstock::detail {

template <class K, class V>
class SortOnCuda {
 public:
  // Submits the sort. The spare memory of the row is not used: CUB has its own in the scratch, or in a workspace if
  // this CUB needs more than SortScratchBytes.
  PENSTOCK_HIDDEN static absl::Status Sort(LaunchContext& launch, View<std::byte> scratch, const SortedRow<K, V>& row,
                                           bool descending) {
    const Submit submit{row, descending, CudaStream(launch)};
    size_t bytes = 0;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(submit(nullptr, bytes), "asking for the room of a sort"));
    void* room = scratch.data;
    if (bytes > static_cast<size_t>(scratch.width)) {
      PENSTOCK_ASSIGN_OR_RETURN(CudaWorkspace* const own, launch.Get<CudaWorkspace>(std::bit_ceil(bytes)));
      room = own->data();
    }
    return ToStatus(submit(room, bytes), "sorting");
  }

 private:
  static constexpr bool kPairs = !std::is_same_v<V, KeysAlone>;
  static constexpr int kBits = 8 * int{sizeof(K)};

  // A call of CUB; without room it says how many bytes it needs.
  struct Submit {
    const SortedRow<K, V>& row;
    bool descending;
    cudaStream_t stream;

    // CUB is tuned for the type of its counts: with 64 bits it sorts keys 13 % faster, and pairs of 4 bytes 12 % slower
    // (H200, 2^26 of 4 bytes, CUDA 13.0).
    PENSTOCK_HIDDEN cudaError_t operator()(void* room, size_t& bytes) const {
      if constexpr (kPairs && sizeof(K) == 4 && sizeof(V) == 4) {
        if (row.n <= INT32_MAX) return Counting(static_cast<int32_t>(row.n), room, bytes);
      }
      return Counting(row.n, room, bytes);
    }
    template <class Count>
    PENSTOCK_HIDDEN cudaError_t Counting(Count n, void* room, size_t& bytes) const {
      using Cub = cub::DeviceRadixSort;
      const auto& [all, from, to, spare, values, values_to, values_spare] = row;
      if constexpr (kPairs) {
        return descending ? Cub::SortPairsDescending(room, bytes, from, to, values, values_to, n, 0, kBits, stream)
                          : Cub::SortPairs(room, bytes, from, to, values, values_to, n, 0, kBits, stream);
      } else {
        return descending ? Cub::SortKeysDescending(room, bytes, from, to, n, 0, kBits, stream)
                          : Cub::SortKeys(room, bytes, from, to, n, 0, kBits, stream);
      }
    }
  };
};

}  // namespace penstock::detail
