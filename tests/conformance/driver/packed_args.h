// An argument block for a launch through the driver interface: values in order, aligned, with the offsets of device
// pointers noted.
//
//   PackedArgs args;
//   args.Add(data).Add(n);
//   KernelOp op = args.op();   // valid while `args` lives and nothing is added
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/driver/driver.h"

namespace penstock::driver::conformance {

class PackedArgs {
 public:
  PackedArgs() = default;
  PackedArgs(const PackedArgs&) = delete;
  PackedArgs& operator=(const PackedArgs&) = delete;

  template <class T>
  PackedArgs& Add(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    std::memcpy(block_ + size_, &value, sizeof(T));
    argv_[argc_++] = block_ + size_;
    if constexpr (std::is_pointer_v<T>) pointers_[pointer_count_++] = static_cast<uint32_t>(size_);
    size_ += sizeof(T);
    return *this;
  }

  KernelOp op() const {
    KernelOp op;
    op.argv = argv_;
    op.argc = argc_;
    op.args = block_;
    op.args_size = static_cast<uint32_t>(size_);
    op.pointer_offsets = pointers_;
    op.pointer_count = pointer_count_;
    return op;
  }

  // Makes every argument nonsense: a launch has read them already.
  void Scribble() { std::memset(block_, 0xee, sizeof(block_)); }

 private:
  static constexpr size_t kMost = 8;
  alignas(16) std::byte block_[kMost * 16] = {};
  void* argv_[kMost] = {};
  uint32_t pointers_[kMost] = {};
  size_t size_ = 0;
  uint32_t argc_ = 0, pointer_count_ = 0;
};

}  // namespace penstock::driver::conformance
