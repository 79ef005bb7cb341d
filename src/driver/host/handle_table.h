// Objects identified by 64-bit handles that are never reused: the handle of a removed object finds nothing, even if its
// place has been taken again.
//
// A handle is a generation above 24 bits of place; 0 is never a handle.
//
// Threads:   not thread-safe; the owner locks.
// Errors:    NotAlive is the Status for a handle that finds nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::driver::host {

// `what`: "stream", "event".
inline absl::Status NotAlive(const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("this ", what, " is not alive; it was destroyed, or made by another driver"));
}

template <typename T>
class HandleTable {
 public:
  // Returns 0 if the table is full (16 million live handles).
  uint64_t Add(T value) {
    if (free_.empty()) {
      if (slots_.size() > kPlaceMask) return 0;
      slots_.emplace_back();
      free_.push_back(slots_.size() - 1);
    }
    const uint64_t place = free_.back();
    free_.pop_back();
    Slot& slot = slots_[place];
    slot.value.emplace(std::move(value));
    return (slot.generation << kPlaceBits) | place;
  }

  // Null if the handle was removed or never given out. Valid until the next Add or Remove.
  T* Find(uint64_t bits) {
    const uint64_t place = bits & kPlaceMask;
    if (place >= slots_.size()) return nullptr;
    Slot& slot = slots_[place];
    return slot.value && slot.generation == bits >> kPlaceBits ? &*slot.value : nullptr;
  }

  bool Remove(uint64_t bits) {
    if (!Find(bits)) return false;
    Slot& slot = slots_[bits & kPlaceMask];
    slot.value.reset();
    ++slot.generation;
    free_.push_back(bits & kPlaceMask);
    return true;
  }

 private:
  static constexpr int kPlaceBits = 24;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;
  struct Slot {
    uint64_t generation = 1;
    std::optional<T> value;
  };
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
};

}  // namespace penstock::driver::host
