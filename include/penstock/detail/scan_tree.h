// The order of a Scan, and how its levels cut rows into leaves. Host and device code, the runtime and the plan take
// them from here.
//
// What comes before value i of a row: values 0 to i - 1 are cut into blocks as the binary digits of i say, the largest
// first (11 = 8 + 2 + 1). A block is combined pairwise, as a Reduce combines its values (reduce_tree.h), and the blocks
// then from left to right, beginning with the initial value, if there is one. This is the down-sweep of a balanced tree
// (G. Blelloch, Prefix sums and their applications, CMU-CS-90-190, 1990, section 1.3), which hands to each right child
// what comes before its left brother, and the brother's sum. It depends on i and on nothing else: not on the length of
// the row, nor on where a leaf, a chunk or a warp ends, as long as these are aligned powers of two.
//
// An inclusive Scan combines what comes before value i with the value.
//
// A level is the values of a row, or one value for each kLeaf of the level before. Going up, a node makes the values of
// the next level; going down, a node takes what comes before each leaf, and gives what comes before each of its values.
// A leaf does not reach beyond a row, but may hold several rows, each of which then has a power of two of its slots.
//
// Threads: plain functions.
#pragma once

#include <cstdint>

#include "penstock/detail/arguments.h"
#include "penstock/detail/counted.h"
#include "penstock/detail/host_device.h"
#include "penstock/detail/reduce_tree.h"
#include "penstock/export.h"

namespace penstock::detail {

PENSTOCK_HIDDEN inline constexpr int kChunk = 8;  // adjacent values of a leaf that one thread has
PENSTOCK_HIDDEN inline constexpr int kChunkBits = 3, kLeafBits = 11;
static_assert(1 << kChunkBits == kChunk && 1 << kLeafBits == kLeaf);

// The values of one level in one run. There are no rows if there is no value.
struct ScanRows {
  int64_t rows, width;  // width: values of each row

  // `level` counts from 1, which has the elements.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static ScanRows Of(int64_t rows, int64_t elements, int level) {
    if (rows == 0 || elements == 0) return {0, 0};
    return {rows, ValuesAfter(elements, level - 1)};
  }
  // The leaves of a row, if it is longer than one.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t leaves_of_row() const { return (width - 1) / kLeaf + 1; }
  // Slots of a leaf that a row takes are 2^bits().
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int bits() const {
    int bits = kChunkBits;
    while (bits < kLeafBits && int64_t{1} << bits < width) ++bits;
    return bits;
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t leaves() const {
    if (rows == 0) return 0;
    return width > kLeaf ? rows * leaves_of_row() : ((rows - 1) >> (kLeafBits - bits())) + 1;
  }
};

// A leaf: where its first slot is, and how its slots are rows and columns.
struct ScanLeaf {
  int64_t row, column;  // of slot 0
  int bits;

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static ScanLeaf Of(const ScanRows& of, int64_t leaf) {
    const int bits = of.bits();
    if (of.width <= kLeaf) return {leaf << (kLeafBits - bits), 0, bits};
    const int64_t row = leaf / of.leaves_of_row();
    return {row, (leaf - row * of.leaves_of_row()) * kLeaf, bits};
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t RowOf(int slot) const { return row + (slot >> bits); }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t ColumnOf(int slot) const { return column + (slot & ((1 << bits) - 1)); }
};

// How many rows or leaves a device or the host code runs over at a level: by rows as a Scan does, or over all values as
// a Reduce does, enough for any count up to them. At least one.
PENSTOCK_HIDDEN inline int64_t LeavesOfLevel(const Range& range, int level, bool by_rows) {
  if (!by_rows) return MostPartialsAfter(range.depth * range.height * range.width, level);
  const int64_t leaves = ScanRows::Of(range.depth * range.height, range.width, level).leaves();
  return leaves > 1 ? leaves : 1;
}
// How many values each of these has, or most.
PENSTOCK_HIDDEN inline int64_t ValuesOfLeaf(const Range& range, int level, bool by_rows) {
  if (by_rows) return kLeaf;
  return LeafOfReduce(PartialsAfter(range.depth * range.height * range.width, level - 1), level);
}

}  // namespace penstock::detail
