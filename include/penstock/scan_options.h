// ScanOptions: which elements a Scan (scan.h) combines for each, and in which order.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

namespace penstock {

// Whether the result for an element has the element in it.
enum class ScanKind : uint8_t { kInclusive, kExclusive };

// In which order an algorithm combines values.
enum class CombineOrder : uint8_t {
  kFixed,  // the one that its header describes: the same bits everywhere
  kAny,  // whichever is fastest, which may be another in each run
};

struct ScanOptions {
  ScanKind kind = ScanKind::kInclusive;  // whether the result for an element has the element in it
  CombineOrder order = CombineOrder::kFixed;  // in which order elements are combined
};
// The options of an exclusive Scan.
inline constexpr ScanOptions kExclusive{.kind = ScanKind::kExclusive};
// The options of an inclusive Scan.
inline constexpr ScanOptions kInclusive{.kind = ScanKind::kInclusive};

}  // namespace penstock
