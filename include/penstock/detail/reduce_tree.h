// The tree of a Reduce: which two values the operation combines, and in which order. Host and device code, the runtime
// and the plan take it from here.
//
// Values are numbered from 0 in index order, rows after rows. At height 0 each value is a block of its own. Block j of
// the next height is op(block 2j, block 2j + 1), or block 2j alone if there is no block 2j + 1. The one block that is
// left is the result. So the tree depends on the number of values and on nothing else, neighbours are combined in their
// order, and values of a range [k * 2^h, (k + 1) * 2^h) meet before they meet others: any such range may be computed
// apart. This is pairwise summation (N. Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14(4),
// 1993, section 2), whose error grows with the logarithm of the number of values.
//
// A level of a Reduce is one node. It cuts its values into leaves and makes one of each, a partial: a block of threads
// does on a device, a host thread takes some of them. These are the values of the next level. Leaves have kLeaf values.
// A level of more than kLeaf * kLeaf values has longer leaves, and there is a single longer leaf where that saves a
// level: of up to twice kLeaf elements, whose functor may take long, and of up to kLongLeaf values of a later level. So
// one level takes 4096 elements, and two take 64 Mi.
//
// Threads: plain functions.
#pragma once

#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock::detail {

PENSTOCK_HIDDEN inline constexpr int64_t kLeaf = 2048, kLongLeaf = 8192;  // values; powers of two
PENSTOCK_HIDDEN inline constexpr uint32_t kLeafThreads = 256;  // of a device, for a leaf

// How many values are left of `elements` after so many levels of kLeaf, as a Scan has them; level 0 has the elements
// themselves. There is one leaf even of no elements: its value is the identity.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline int64_t ValuesAfter(int64_t elements, int levels) {
  for (int level = 0; level < levels; ++level) {
    elements = elements <= kLeaf ? 1 : (elements - 1) / kLeaf + 1;
  }
  return elements;
}

// How many values a leaf has at a level of a Reduce that has so many, and how many leaves there are.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline int64_t LeafOfReduce(int64_t values, int level) {
  return values > kLeaf * kLeaf || values <= (level > 1 ? kLongLeaf : 2 * kLeaf) ? kLongLeaf : kLeaf;
}
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline int64_t LeavesOfReduce(int64_t values, int level) {
  if (values <= 1) return 1;
  return (LeafOfReduce(values, level) == kLeaf ? (values - 1) / kLeaf : (values - 1) / kLongLeaf) + 1;
}
// How many values are left of `elements` after so many levels of a Reduce.
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline int64_t PartialsAfter(int64_t elements, int levels) {
  for (int level = 1; level <= levels; ++level) elements = LeavesOfReduce(elements, level);
  return elements;
}
// The most that are left of any number of elements up to `most`: fewer elements may leave more, in shorter leaves.
PENSTOCK_HIDDEN inline int64_t MostPartialsAfter(int64_t most, int levels) {
  for (int level = 1; level <= levels; ++level) {
    const int64_t leaves = LeavesOfReduce(most, level);
    most = most > kLeaf * kLeaf && leaves < kLeaf ? kLeaf : leaves;
  }
  return most;
}

// Makes host compilers put values into memory, so that they are rounded before something else is done with them: they
// must not contract a multiplication in one call of the user's code with an addition in another.
template <class V>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void RoundOnHost([[maybe_unused]] V* values) {
#if !defined(__CUDA_ARCH__)
  asm volatile("" : : "r"(values) : "memory");
#endif
}

// Reduces `n` > 0 adjacent values of one height, of which the first has an even number at each height up to the result,
// into values[0].
template <class V, class Op>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void Fold(V* values, int64_t n, const Op& op) {
  for (; n > 1; n = (n + 1) / 2) {
    RoundOnHost(values);
    for (int64_t j = 0; j < n / 2; ++j) values[j] = static_cast<V>(op(values[2 * j], values[2 * j + 1]));
    if (n % 2 == 1) values[n / 2] = values[n - 1];
  }
}

}  // namespace penstock::detail
