// Histogram: how many elements fall into each bin.
//
//   ps::Histogram(graph, "levels", ps::Read(image), ps::Write(counts), ps::OwnBin());        // 256 counts of bytes
//   ps::Histogram(graph, "ages", ps::Read(ages), ps::Write(counts), ps::EvenBins(0.f, 100.f, 50));
//
// Elements  are those of a buffer, a State or a box of one to three dimensions, each counted once.
//           With ps::CountOf(count, n) before them, they are the first of one dimension.
// Bins      are numbered from 0, as many as there are counts. The functor is trivially copyable, with a const
//           PENSTOCK_HOST_DEVICE operator() that makes the number of a bin, of any integer type, of an element; an
//           element of no bin is not counted.
// Counts    are integers of 4 or 8 bytes, in a buffer or a box of one dimension, in other memory than the elements.
//           They hold the result of this run only, and have the same values on all devices, since whole numbers are
//           added, whatever the order.
// Nodes     are a Fill, "name/zero", and a Kernel of the given name. A block of threads counts in its shared memory and
//           adds up what it has found; with more than 4096 bins all add to the result at once, which is slower.
// Errors    are those of a Kernel, which a host device runs on one thread. Counts of several dimensions, or where
//           elements are read, are InvalidArgument at Compile.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_histogram.h"
#include "penstock/detail/host_device.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/node_sequence.h"

namespace penstock {

// Each number is its own bin.
struct OwnBin {
  // The number.
  template <class T>
    requires std::is_integral_v<T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE T operator()(T x) const {
    return x;
  }
};

// Bins of one width from `lower`, which counts, to `upper`, which does not. T is a number type; NaN is in no bin. Bin b
// begins at lower + b * (upper - lower) / bins: exactly for integers of at most 4 bytes; others are compared as rounded
// products, of floats for float and of doubles for all else, which gives the same bins on all devices.
template <class T>
class EvenBins {
 public:
  // There are at most 2^20 bins of floats. With more, with less than 1, or unless lower < upper and both
  // bins * (upper - lower) and bins / (upper - lower) are finite as floats or doubles, nothing is in any bin.
  EvenBins(T lower, T upper, int32_t bins) : lower_(lower), upper_(upper), last_(bins - (bins > INT32_MIN)) {
    width_ = static_cast<Real>(upper) - static_cast<Real>(lower);
    bins_ = static_cast<Real>(bins);
    scale_ = bins_ / width_;
    const Real product = bins_ * width_;
    const bool is_finite = product - product == 0 && scale_ - scale_ == 0;
    const bool is_good = bins >= 1 && is_finite && (sizeof(Real) == 8 || bins <= kMostFloats);
    if (!is_good) upper_ = lower_;
  }
  // The bin, -1 outside all of them.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int32_t operator()(T x) const {
    if (!(x >= lower_ && x < upper_)) return -1;
    const Real from_lower = static_cast<Real>(x) - static_cast<Real>(lower_);
    // Adding this rounds to a whole number, and leaves it in the lowest bits: converting a number takes a GPU longer
    // than all else here. It is the bin or the next one, however the product is rounded or contracted.
    constexpr Real kRound = sizeof(Real) == 8 ? Real{6755399441055744} : Real{12582912};  // 1.5 * 2^52, 1.5 * 2^23
    const Real rounded = from_lower * scale_ + kRound;
    const int32_t near = LowestBits(rounded) - LowestBits(kRound);
    const int32_t bin = near - static_cast<int32_t>(BeginsAfter(near, rounded - kRound, from_lower));
    return bin < last_ ? bin : last_;
  }

 private:
  using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
  static constexpr int32_t kMostFloats = 1 << 20;  // so that rounding moves no estimate by half a bin

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static int32_t LowestBits(Real x) {
    std::conditional_t<sizeof(Real) == 8, int64_t, int32_t> bits;
    memcpy(&bits, &x, sizeof(Real));
    return static_cast<int32_t>(bits);
  }
  // Whether a bin, given twice, begins after what lies so far from `lower`. Integers are compared exactly.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE bool BeginsAfter(int32_t bin, Real real_bin, Real from_lower) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4) {
      return bin * static_cast<int64_t>(width_) > static_cast<int64_t>(from_lower) * static_cast<int64_t>(bins_);
    } else {
      return real_bin * width_ > from_lower * bins_;
    }
  }

  T lower_, upper_;
  Real bins_, width_, scale_;
  int32_t last_;  // bin
};

// Declares the two nodes, as one.
template <class T, class C, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence Histogram(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                       const AccessOf<C, AccessMode::kWrite>& counts, F bin) {
  return detail::HistogramDeclaration::Declare<kNvcc>(graph, name, detail::NoCount(), from, counts, bin);
}
// The same of the first elements of one dimension, as many as a count says that only the device knows (count_of.h).
template <class N, class T, class C, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence Histogram(Graph& graph, const Name& name, const CountedExtent<N>& of,
                                       const AccessOf<T, AccessMode::kRead>& from,
                                       const AccessOf<C, AccessMode::kWrite>& counts, F bin) {
  return detail::HistogramDeclaration::Declare<kNvcc>(graph, name, of, from, counts, bin);
}

}  // namespace penstock
