// What a Reduce gives: the tree of reduce.h, written down here once more, from the top. And values to try it on.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace penstock::conformance::reduce_oracle {

// Splits before the greatest power of two that is smaller than the number of values.
template <class V, class Op>
V Tree(std::span<const V> values, const Op& op) {
  if (values.size() == 1) return values[0];
  size_t left = 1;
  while (2 * left < values.size()) left *= 2;
  const V a = Tree(values.first(left), op), b = Tree(values.subspan(left), op);
  return op(a, b);
}
template <class V, class Op>
V Expected(const std::vector<V>& values, const Op& op, V identity) {
  return values.empty() ? identity : Tree(std::span<const V>(values), op);
}
// Compares bits: 0 is not -0.
template <class V>
bool Same(const V& a, const V& b) {
  return std::memcmp(&a, &b, sizeof(V)) == 0;
}
template <class V>
bool SameAll(const std::vector<V>& a, const std::vector<V>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}
// Of many magnitudes, so that every order of additions gives another sum.
template <class T>
std::vector<T> AnyOf(std::mt19937& random, int64_t n) {
  std::vector<T> values(static_cast<size_t>(n));
  for (T& v : values) {
    v = static_cast<T>(std::ldexp(static_cast<double>(random()) - 0x1p31, static_cast<int>(random() % 24)));
  }
  return values;
}

}  // namespace penstock::conformance::reduce_oracle
