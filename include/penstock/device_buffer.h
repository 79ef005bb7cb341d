// DeviceBuffer: memory of one device, for data that stays there between the runs of several executables.
//
//   PS_ASSIGN_OR_RETURN(ps::DeviceBuffer<float> middle, runtime.MakeDeviceBuffer<float>(n));
//   PS_ASSIGN_OR_RETURN(ps::Run first, a.Launch(ia.Set(out, middle)));
//   PS_ASSIGN_OR_RETURN(ps::Run second, b.Launch(ib.Set(in, middle).After(in, first)));
//
// It is bound to buffers declared kDevice. Only Bindings::After orders runs that use the same DeviceBuffer; use a State
// (state.h) for memory whose order Penstock should keep.
//
// Ownership: counted; bindings made from it, and runs, keep the memory alive. May outlive the Runtime handle.
// Threads:   thread-compatible; different buffers are independent.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {

template <class T>
class DeviceBuffer {
 public:
  using value_type = T;
  DeviceBuffer() = default;
  // `block` owns memory for at least `size` elements on the device with index `device` in the runtime's list.
  DeviceBuffer(std::shared_ptr<void> block, int64_t size, int device)
      : block_(std::move(block)), size_(size), device_(device) {}

  T* data() const { return static_cast<T*>(block_.get()); }  // a device address: the host must not dereference it
  int64_t size() const { return size_; }  // elements
  int device() const { return device_; }  // index in the runtime's list; -1 if there is no memory
  // The owner of the memory; holding it keeps the memory alive.
  std::shared_ptr<void> block() const { return block_; }

 private:
  std::shared_ptr<void> block_;
  int64_t size_ = 0;
  int device_ = -1;
};

}  // namespace penstock
