// Device: what a program may know of a device of its runtime.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>

namespace penstock {

// A device of a runtime.
struct Device {
  std::string name;  // "cuda:0"
  std::string description;  // "NVIDIA H200"
  bool is_cuda = false;  // false: a host device
  int64_t memory_bytes = 0;  // total memory, free or not
};

}  // namespace penstock
