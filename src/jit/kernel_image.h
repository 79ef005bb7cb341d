// KernelImage: a kernel that has been compiled for one architecture.
//
// Threads: plain values.
#pragma once

#include <string>

namespace penstock::jit {

struct KernelImage {
  std::string symbol;  // of the kernel in the image: its mangled name
  std::string image;  // a cubin
  friend bool operator==(const KernelImage&, const KernelImage&) = default;
};

}  // namespace penstock::jit
