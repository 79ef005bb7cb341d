// What a graph that is declared again takes over from its declaration: bytes that may have changed, and callables that
// replace older ones.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "penstock/detail/arguments.h"
#include "penstock/export.h"

namespace penstock::detail {

// Zeroes a value's padding if the compiler supports that. If not, equal values may seem to differ, but never the
// other way round.
template <class T>
PENSTOCK_HIDDEN void ClearPadding([[maybe_unused]] T& value) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  if constexpr (!std::has_unique_object_representations_v<T>) __builtin_clear_padding(&value);
#endif
#endif
}

// Sets the bytes at `at` to those of `value` (floats bit by bit), and returns whether they were different.
template <class T>
PENSTOCK_HIDDEN bool SetBytes(void* at, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if constexpr (std::is_empty_v<T>) {
    return false;
  } else {
    ClearPadding(value);
    if (std::memcmp(at, &value, sizeof(T)) == 0) return false;  // NOLINT: bits count
    std::memcpy(at, &value, sizeof(T));
    return true;
  }
}

// Whether the bytes at `at` are those of a functor that owns data (kOwnsData), apart from where the data is. Padding
// counts, so equal values may seem to differ, but never the other way round.
template <class F>
PENSTOCK_HIDDEN bool IsSameApartFromData(const std::byte* at, const F& f) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&f);
  const auto data = static_cast<size_t>(reinterpret_cast<const std::byte*>(&f.data) - bytes);
  const size_t after = data + sizeof(f.data);
  return std::memcmp(at, bytes, data) == 0 && std::memcmp(at + after, bytes + after, sizeof(F) - after) == 0;
}

// A callable that newer ones replace, in the same memory if they have the same type. Types count as the same if one
// function destroys both, which then is in one shared object.
//
// Threads: single-threaded; nothing may call the callable meanwhile.
class Replaceable {
 public:
  Replaceable() = default;
  Replaceable(const Replaceable&) = delete;
  Replaceable& operator=(const Replaceable&) = delete;
  ~Replaceable() { Free(); }

  void* object() const { return object_; }

  // Takes over `f`. Returns false if the current callable is trivially copyable and has the same bytes.
  template <class F>
  PENSTOCK_HIDDEN bool Replace(F& f) {
    constexpr bool kBytes = std::is_trivially_copyable_v<F>;
    if (destroy_ != &Destroy<F> || size_ != sizeof(F) || align_ != alignof(F)) Allocate<F>();
    if constexpr (kBytes && std::is_empty_v<F>) {
      if (live_) return false;
    } else if constexpr (kBytes) {
      ClearPadding(f);
      if (live_ && std::memcmp(object_, &f, sizeof(F)) == 0) return false;
    }
    if (live_) destroy_(object_);
    live_ = false;  // in case the constructor throws
    ::new (object_) F(std::move(f));
    if constexpr (kBytes) std::memcpy(object_, &f, sizeof(F));  // NOLINT: copies the padding too
    live_ = true;
    return true;
  }

 private:
  template <class F>
  PENSTOCK_HIDDEN void Allocate() {
    Free();
    object_ = ::operator new(sizeof(F), std::align_val_t(alignof(F)));
    align_ = alignof(F);
    size_ = sizeof(F);
    destroy_ = &Destroy<F>;
  }
  template <class F>
  PENSTOCK_HIDDEN static void Destroy(void* object) {
    static_cast<F*>(object)->~F();
  }
  void Free() {
    if (live_) destroy_(object_);
    live_ = false;
    destroy_ = nullptr;
    if (object_ != nullptr) ::operator delete(std::exchange(object_, nullptr), std::align_val_t(align_));
  }

  void* object_ = nullptr;
  size_t size_ = 0, align_ = 0;
  void (*destroy_)(void*) = nullptr;  // null: no memory allocated
  bool live_ = false;
};

}  // namespace penstock::detail
