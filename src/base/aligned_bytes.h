// AlignedBytes: bytes aligned to a power of two, for argument types that need more alignment than a vector gives.
//
// Ownership: owns its memory, whose address does not change when the object is moved.
// Threads:   thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace penstock::base {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // `size` zeros.
  AlignedBytes(size_t size, size_t align) : memory_(Allocate(size, align)), size_(size) {
    std::fill_n(memory_.get(), size, std::byte{0});
  }
  // A copy.
  AlignedBytes(std::span<const std::byte> bytes, size_t align) : AlignedBytes(bytes.size(), align) {
    if (!bytes.empty()) std::memcpy(memory_.get(), bytes.data(), bytes.size());
  }

  std::byte* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data(), size_}; }

 private:
  struct Free {
    Free() : align(std::align_val_t(1)) {}
    explicit Free(std::align_val_t a) : align(a) {}
    std::align_val_t align;
    void operator()(std::byte* memory) const { ::operator delete(memory, align); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;
  static Memory Allocate(size_t size, size_t align) {
    const std::align_val_t at{std::max(align, alignof(std::max_align_t))};
    return Memory(static_cast<std::byte*>(::operator new(size, at)), Free(at));
  }

  Memory memory_;
  size_t size_ = 0;
};

}  // namespace penstock::base
