// Source: the text of a CUDA translation unit and the name of a kernel in it, which Compile compiles for the devices of
// the nodes that name it. The program itself needs no nvcc, and may make the text while it runs.
//
//   const ps::Source axpy(R"(
//     template <class T>
//     __global__ void axpy(T a, const T* x, T* y, int n) {
//       const int i = blockIdx.x * blockDim.x + threadIdx.x;
//       if (i < n) y[i] += a * x[i];
//     })", "axpy<float>");
//   graph.Kernel("axpy", axpy, ps::Threads(n), 2.0f, ps::Read(x), ps::ReadWrite(y), n_param);
//
// The compiler is NVIDIA's NVRTC, a shared library of the CUDA toolkit (libnvrtc.so.13) that the process loads when it
// first needs it. What it makes is kept on disk for the next process: docs/howto/source-kernels.md.
//
// Ownership: a copyable value; copies share their parts. A graph keeps the parts.
// Threads:   thread-safe: nothing changes it.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <memory>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

// A text that a source includes by this name: #include "name" or #include <name>.
struct SourceHeader {
  std::string name;  // as the #include spells it; no other header has it
  std::string text;  // what stands there instead
  friend bool operator==(const SourceHeader&, const SourceHeader&) = default;
};

// What else the compiler gets. The default is nothing but the text.
struct SourceOptions {
  // For NVRTC, as "--std=c++20", "-DWIDTH=32" or "--use_fast_math". Compile adds the architecture of each device,
  // unless one of these is a --gpu-architecture (-arch), such as "-arch=sm_90a".
  std::vector<std::string> options{};
  std::vector<SourceHeader> headers{};  // that the text and they themselves may include
  std::string file = "source.cu";  // what messages of the compiler call the text
  friend bool operator==(const SourceOptions&, const SourceOptions&) = default;
};

class PENSTOCK_EXPORT Source {
 public:
  // What it consists of.
  struct Parts {
    std::string text;  // the translation unit
    std::string kernel;  // the expression that names the kernel
    SourceOptions options;  // what else the compiler gets
    friend bool operator==(const Parts&, const Parts&) = default;
  };

  // `text` is a whole translation unit. `kernel` is an expression that names a __global__ function at the end of it:
  // "axpy<float>", "my::kernel", or the plain name of one that is extern "C" or has no namespace.
  Source(std::string text, std::string kernel, SourceOptions options = {});
  // A move copies, so that one that was moved from still has its parts.
  Source(const Source&) = default;
  Source& operator=(const Source&) = default;

  // The text, the kernel and the options, as they were given.
  const Parts& parts() const { return *parts_; }
  // The same, to be kept.
  const std::shared_ptr<const Parts>& shared_parts() const { return parts_; }

  // Whether both consist of the same.
  bool operator==(const Source& other) const { return parts_ == other.parts_ || *parts_ == *other.parts_; }

 private:
  std::shared_ptr<const Parts> parts_;
};

}  // namespace penstock
