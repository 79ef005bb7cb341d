// What the steps of a fuzzed program (algorithm_program.h) are told to do with numbers. Functors go to the library, as
// a user's would. The interpreter, which judges it, has loops of its own and shares Wrapped only.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/view.h"

namespace penstock::fuzz {

// Arithmetic modulo 2^32.
inline int32_t Wrapped(uint64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// A sum that wraps: associative, and unknown to the library, which keeps its order.
struct WrappingSum {
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
  template <class T>
  static constexpr T Identity() {
    return T{0};
  }
};
// The last odd one: does not commute, and has no identity.
struct LastOdd {
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const { return b % 2 != 0 ? b : a; }
};
// Bins from -1 to one past the last.
struct BinOf {
  int32_t by;
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t x) const {
    return static_cast<int32_t>((static_cast<uint32_t>(x) ^ static_cast<uint32_t>(by)) % 9) - 1;
  }
};
struct IsKept {
  int32_t by;
  PENSTOCK_HOST_DEVICE bool operator()(int32_t x) const { return ((x ^ by) & 6) != 0; }
};
struct WriteNumbered {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from, int32_t by) const {
    to(i) = from(i) ^ by ^ static_cast<int32_t>(i);
  }
};
struct ChangeSome {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> from, int32_t by) const {
    to(i) ^= from(i) & by;
  }
};
struct SetNumber {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> to, int32_t number) const { to(0) = number; }
};

}  // namespace penstock::fuzz
