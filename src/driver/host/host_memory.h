// Memory of host devices: device memory that the host cannot touch by accident, and pinned memory.
//
// A DeviceHeap reserves two address ranges of equal size. Addresses handed out lie in the first, which is inaccessible:
// a host dereference crashes as it would with a GPU's memory. The second, a constant distance away, is the real memory;
// the driver translates to it for copies, fills and kernels. Debug builds fill new memory with kFresh and freed memory
// with kFreed (the first 64 MiB of a block, the first 64 KiB of pinned ones, whose pool fills what it hands out), which
// exposes code that relies on zeros or on freed data.
//
// Ownership: the driver owns both; blocks not freed go with the heap.
// Threads:   thread-safe. Each has one mutex, held for bookkeeping only, with no other lock taken inside.
// Errors:    InvalidArgument names the range that is not allocated; ResourceExhausted names the bytes
//            requested and free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"

namespace penstock::driver::host {

inline constexpr unsigned char kFresh = 0xCD, kFreed = 0xDD;
inline constexpr size_t kDeviceAlignment = 256;

// The bytes requested for a block.
struct AddressRange {
  uintptr_t begin = 0, end = 0;
};

class DeviceHeap {
 public:
  // Reserves `bytes`, or the largest half, quarter and so on that the system grants. Physical memory is taken page by
  // page on first touch.
  DeviceHeap(std::string device_name, int64_t bytes);
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  int64_t capacity() const { return static_cast<int64_t>(capacity_); }

  // First fit, 256-byte aligned. Zero bytes get an address of their own.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // The bytes asked for by all blocks.
  int64_t allocated() const;
  // Returns false if `memory` is not the start of a block. Pages of freed blocks return to the system.
  bool Free(void* memory);

  // Whether an address lies in this heap's range, allocated or not.
  bool Holds(const void* memory) const;
  // The block that holds the bytes [memory, memory + bytes). With `bytes` 0 the end of a block counts too.
  absl::StatusOr<AddressRange> BlockOf(const void* memory, size_t bytes) const;
  // The real location of these bytes.
  absl::StatusOr<std::byte*> Access(const void* memory, size_t bytes) const;

 private:
  struct Block {
    size_t held = 0;  // bytes taken from the heap
    size_t asked = 0;  // bytes that the caller may use
  };
  absl::Status NoRoom(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBack(size_t offset, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Reserve(size_t bytes);

  // Constant after construction.
  std::string device_name_;
  size_t capacity_ = 0;
  size_t reserved_ = 0;
  std::byte* handed_out_ = nullptr;  // inaccessible
  std::byte* real_ = nullptr;

  mutable base::Mutex mu_;
  std::map<size_t, size_t> free_ ABSL_GUARDED_BY(mu_);  // offset -> bytes; neighbours are merged
  std::map<size_t, Block> live_ ABSL_GUARDED_BY(mu_);  // by offset
  size_t asked_ ABSL_GUARDED_BY(mu_) = 0;  // by all of these
};

// Page-aligned host memory that counts as pinned, and the record of which addresses are.
class PinnedMemory {
 public:
  // At most `most` bytes at a time: what the process may use.
  explicit PinnedMemory(size_t most) : most_(most) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  absl::StatusOr<void*> Allocate(size_t bytes);
  // Returns false if `memory` is not the start of a block.
  bool Free(void* memory);
  // Whether [memory, memory + bytes) lies in one block. If `bytes` is 0: whether the address does.
  bool Contains(const void* memory, size_t bytes) const;
  // The block that contains an address, or an empty range.
  AddressRange BlockOf(const void* memory) const;

 private:
  const size_t most_;
  mutable base::Mutex mu_;
  std::map<uintptr_t, size_t> live_ ABSL_GUARDED_BY(mu_);  // start -> bytes
};

}  // namespace penstock::driver::host
