// HostBuffer: pinned host memory from a runtime's pool, for data that goes to and from devices at full speed.
//
// Ownership: owns its block and returns it to the pool when destroyed; a binding made from it keeps the block alive as
//            long as a run may use it. May outlive the Runtime handle.
// Threads:   thread-compatible; different buffers are independent.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace penstock {

template <class T>
class HostBuffer {
 public:
  HostBuffer() = default;
  // `block` owns memory for at least `size` elements. Only this buffer holds `owner`, which does nothing else: its end
  // tells the runtime that only bindings and runs still hold the block.
  HostBuffer(std::shared_ptr<void> block, int64_t size, std::shared_ptr<void> owner = nullptr)
      : block_(std::move(block)), owner_(std::move(owner)), size_(size) {}
  HostBuffer(HostBuffer&& other) noexcept
      : block_(std::move(other.block_)), owner_(std::move(other.owner_)), size_(std::exchange(other.size_, 0)) {}
  HostBuffer& operator=(HostBuffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(owner_, other.owner_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return static_cast<T*>(block_.get()); }
  int64_t size() const { return size_; }  // elements
  // Not available on a temporary buffer, whose memory the span would outlive.
  std::span<T> span() const& { return {data(), static_cast<size_t>(size_)}; }
  std::span<T> span() const&& = delete;
  std::span<T> first(int64_t n) const& { return span().first(static_cast<size_t>(n)); }
  std::span<T> first(int64_t n) const&& = delete;
  T& operator[](int64_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  // The owner of the memory; holding it keeps the memory alive.
  std::shared_ptr<void> block() const { return block_; }

 private:
  std::shared_ptr<void> block_;
  std::shared_ptr<void> owner_;
  int64_t size_ = 0;
};

}  // namespace penstock
