// A whole number beside a value of any type, in parts that need no greater alignment than the value: so a struct of
// both has no padding, and its bytes are the same wherever it was made.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock::detail {

// A number of kBytes, 4 or 8, beside a value whose alignment is kAlign.
template <size_t kBytes, size_t kAlign>
struct PackedNumber {
  using Part =
      std::conditional_t<kAlign >= 8, uint64_t,
                         std::conditional_t<kAlign == 4, uint32_t, std::conditional_t<kAlign == 2, uint16_t, uint8_t>>>;
  static constexpr size_t kSize = kBytes > kAlign ? kBytes : kAlign, kParts = kSize / sizeof(Part);
  static constexpr int kBits = 8 * int{sizeof(Part)};
  Part parts[kParts];  // the lowest first

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static constexpr PackedNumber Of(uint64_t number) {
    PackedNumber packed{};
    for (size_t i = 0; i < kParts && i * sizeof(Part) < sizeof(number); ++i) {
      packed.parts[i] = static_cast<Part>(number >> (static_cast<int>(i) * kBits));
    }
    return packed;
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE constexpr uint64_t Get() const {
    uint64_t number = 0;
    for (size_t i = 0; i < kParts && i * sizeof(Part) < sizeof(number); ++i) {
      number |= static_cast<uint64_t>(parts[i]) << (static_cast<int>(i) * kBits);
    }
    return number;
  }
};

}  // namespace penstock::detail
