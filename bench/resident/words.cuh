// The 32-bit words that the tasks work on, shared by all ways of a trial: a word's place in the L2 cache alone can make
// a difference of 15 %. On a CUDA device they are a DeviceBuffer, bound kDevice and given to the graphs made by hand,
// and nothing is copied while a clock runs. A host device's memory cannot be reached from here: there they are pinned
// memory, which runs copy.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

class Words {
 public:
  Words(ps::Runtime& runtime, bool cuda, int count)
      : cuda_(cuda),
        pinned_(Must(runtime.MakeHostBuffer<uint32_t>(count))),
        device_(Must(runtime.MakeDeviceBuffer<uint32_t>(cuda ? count : 1))) {}

  ps::Where where() const { return cuda_ ? ps::kDevice : ps::kPinned; }
  int count() const { return static_cast<int>(pinned_.size()); }
  // Where kernels made by hand find them, or host code on a host device.
  uint32_t* data() const { return cuda_ ? device_.data() : pinned_.data(); }
  void Bind(ps::Bindings& io, ps::BufferHandle<uint32_t> buffer) const {
    if (cuda_) io.Set(buffer, device_);
    else io.Set(buffer, pinned_);
  }

  // Both are done when they return, since the memory is pinned.
  void Put(const std::vector<uint32_t>& words) const {
    std::copy(words.begin(), words.end(), pinned_.begin());
    Copy(device_.data(), pinned_.data());
  }
  std::vector<uint32_t> Get() const {
    Copy(pinned_.data(), device_.data());
    return {pinned_.begin(), pinned_.end()};
  }

 private:
  void Copy(uint32_t* to, const uint32_t* from) const {
    if (!cuda_) return;
    Check(cudaMemcpy(to, from, sizeof(uint32_t) * static_cast<size_t>(pinned_.size()), cudaMemcpyDefault), "copying");
  }

  const bool cuda_;
  const ps::HostBuffer<uint32_t> pinned_;
  const ps::DeviceBuffer<uint32_t> device_;
};

}  // namespace bench
