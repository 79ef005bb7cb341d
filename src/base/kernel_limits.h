// KernelLimits: what a device accepts in one kernel launch. The defaults are those of GPUs since compute capability
// 9.0. Host devices use them too, so that what runs there does not fail in production.
//
// Threads: plain values.
#pragma once

#include <array>
#include <cstdint>

namespace penstock::base {

struct KernelLimits {
  int64_t block_threads = 1024;
  std::array<int64_t, 3> block{1024, 1024, 64};
  std::array<int64_t, 3> grid{INT32_MAX, 65535, 65535};
  int64_t shared_bytes = 227 << 10;  // per block, static and dynamic together, for kernels that opt in
  int64_t argument_bytes = 32764;
  friend bool operator==(const KernelLimits&, const KernelLimits&) = default;
};

}  // namespace penstock::base
