// The order of keys and a stable sort for host devices: least significant digit first, a byte a pass (Knuth, The Art of
// Computer Programming, volume 3, 5.2.5, algorithm R). It gives what CUB's DeviceRadixSort gives.
//
// Threads: plain functions.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "penstock/export.h"

namespace penstock::detail {

// Arithmetic types of 1 to 8 bytes that are no characters of Unicode, for which CUB has no order.
template <class K>
inline constexpr bool kIsSortKey =
    std::is_arithmetic_v<K> && sizeof(K) <= 8 && !std::is_same_v<K, char8_t> && !std::is_same_v<K, char16_t> &&
    !std::is_same_v<K, char32_t> && !std::is_same_v<K, wchar_t>;

// Stands for the values of a sort of keys alone.
struct KeysAlone {};

// Bits whose order as an unsigned number is that of the keys. -0 equals 0; a NaN comes behind infinity, or with its
// sign set before minus infinity.
template <class K>
PENSTOCK_HIDDEN uint64_t OrderOf(K key, bool descending) {
  uint64_t bits = 0;
  std::memcpy(&bits, &key, sizeof(K));
  constexpr uint64_t kAll = ~uint64_t{0} >> (64 - 8 * sizeof(K)), kSign = kAll ^ (kAll >> 1);
  if constexpr (std::is_floating_point_v<K>) {
    if (bits == kSign) bits = 0;
    bits ^= (bits & kSign) != 0 ? kAll : kSign;
  } else if constexpr (std::is_signed_v<K>) {
    bits ^= kSign;
  }
  return descending ? bits ^ kAll : bits;
}

// What one sort goes through: n keys from `from` to `to`, with `spare` between passes; and their values likewise.
template <class K, class V>
struct SortedRow {
  int64_t n;
  const K* from;
  K *to, *spare;
  const V* values_from;
  V *values_to, *values_spare;
};

// Sorts one row. Neither `to` nor `spare` overlaps `from`.
template <class K, class V>
PENSTOCK_HIDDEN void SortOnHost(const SortedRow<K, V>& row, bool descending) {
  constexpr bool kPairs = !std::is_same_v<V, KeysAlone>;
  constexpr int kDigits = 256;
  std::array<std::array<int64_t, kDigits>, sizeof(K)> counts{};
  for (int64_t i = 0; i < row.n; ++i) {
    uint64_t bits = OrderOf(row.from[i], descending);
    for (size_t p = 0; p < sizeof(K); ++p, bits >>= 8) ++counts[p][bits % kDigits];
  }
  // A pass over a digit that all keys share would change nothing.
  std::array<size_t, sizeof(K)> passes{};
  size_t used = 0;
  for (size_t p = 0; p < sizeof(K) && row.n > 0; ++p) {
    if (counts[p][(OrderOf(row.from[0], descending) >> (8 * p)) % kDigits] < row.n) passes[used++] = p;
  }
  if (used == 0) {
    for (int64_t i = 0; i < row.n; ++i) row.to[i] = row.from[i];
    if constexpr (kPairs) {
      for (int64_t i = 0; i < row.n; ++i) row.values_to[i] = row.values_from[i];
    }
    return;
  }
  const K* from = row.from;
  const V* values_from = row.values_from;
  for (size_t k = 0; k < used; ++k) {
    const bool ends_in_to = (used - k) % 2 == 1;
    K* const to = ends_in_to ? row.to : row.spare;
    V* const values_to = ends_in_to ? row.values_to : row.values_spare;
    std::array<int64_t, kDigits>& next = counts[passes[k]];
    int64_t before = 0;
    for (int64_t& count : next) before += std::exchange(count, before);
    for (int64_t i = 0; i < row.n; ++i) {
      const uint64_t digit = (OrderOf(from[i], descending) >> (8 * passes[k])) % kDigits;
      const int64_t at = next[digit]++;
      to[at] = from[i];
      if constexpr (kPairs) values_to[at] = values_from[i];
    }
    from = to;
    values_from = values_to;
  }
}

}  // namespace penstock::detail
