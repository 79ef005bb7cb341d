#!/usr/bin/env bash
# Holds scripts/doxygen_filter.py to its rules: a header with one of each, and what Doxygen is to see of it, line for
# line.
#
#   doxygen_filter_test.sh ROOT      ROOT: the project
set -euo pipefail

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

cat >"$tree/two_words.h" <<'TEXT'
// TwoWords: what it <is>.
//
//   two.Call();  // an example
//
// Threads:   none,
//            really.
#pragma once
#include <vector>
#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__
#else
// Marks a function.
#define PENSTOCK_HOST_DEVICE
#endif
#define PENSTOCK_CONCAT(a, b) a##b
namespace penstock {
class Elsewhere;
namespace detail {
// Not for users.
struct Hidden {};
}  // namespace detail

class TwoWords {
 public:
  TwoWords() = default;  // of nothing
  TwoWords(TwoWords&& other) noexcept : a_{std::move(other.a_)} {}
  explicit TwoWords(int a);  // NOLINT: implicit
  // Gives it out.
  std::vector<int> Take() & { return {1}; }
  std::vector<int> Take() && { return std::move(Take()); }
  template <class T>
    requires std::is_same_v<T, int>
  std::vector<int> Bring(T t) {
    if (t) {
      return {t};
    }
    return {};
  }
  int count() const;

  // Mean.
  double mean = 0, median = 0;

 private:
  // Never seen.
  int a_ = 0;
};

// In what order.
enum class Order : uint8_t {
  kFirst,  // as they came
  // as they like
  kLast
};
inline constexpr Order kFirst = Order::kFirst;

int Alone();
}  // namespace penstock
TEXT

cat >"$tree/expected" <<'TEXT'
/// What it \<is\>.
/// @code{.cpp}
///   two.Call();  // an example @endcode
/// @file two_words.h
/// - **Threads:** none,
///   really.
#pragma once
#include <vector>



/// Marks a function.
#define PENSTOCK_HOST_DEVICE


namespace penstock {






/** @copydoc two_words.h */ class TwoWords {
 public:
  /** of nothing */ TwoWords() = default;  // of nothing

  explicit TwoWords(int a);  // NOLINT: implicit
/// Gives it out.
  std::vector<int> Take() & { return {1}; }

  /** Gives it out. */ template <class T>
    requires std::is_same_v<T, int>
  std::vector<int> Bring(T t) {
    if (t) {
      return {t};
    }
    return {};
  }
  int count() const;


  /** Mean. */ double mean = 0; /** Mean. */ double median = 0;

 private:


};

/// In what order.
enum class Order : uint8_t {
  /** as they came */ kFirst,  // as they came
/// as they like
  kLast
};
/** In what order. */ inline constexpr Order kFirst = Order::kFirst;

int Alone();
}  // namespace penstock
TEXT

python3 "$1/scripts/doxygen_filter.py" "$tree/two_words.h" | diff "$tree/expected" -
