// Histogram: how many elements fall into each bin.
//
//   ps::Histogram(graph, "levels", ps::Read(image), ps::Write(counts), ps::OwnBin());        // 256 counts of bytes
//   ps::Histogram(graph, "ages", ps::Read(ages), ps::Write(counts), ps::EvenBins(0.f, 100.f, 50));
//
// Elements  are those of a buffer, a State or a box of one to three dimensions, each counted once.
// Bins      are numbered from 0, as many as there are counts. The functor is trivially copyable, with a const
//           PENSTOCK_HOST_DEVICE operator() that makes the number of a bin, of any integer type, of an element; an
//           element of no bin is not counted.
// Counts    are integers of 4 or 8 bytes, in a buffer or a box of one dimension. They hold the result of this run only,
//           and have the same values on all devices, since whole numbers are added, whatever the order.
// Nodes     are a Fill, "name/zero", and a Kernel of the given name. A block of threads counts in its shared memory and
//           adds up what it has found; with more than 4096 bins all add to the result at once, which is slower.
// Errors    are those of a Kernel, which a host device runs on one thread.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/histogram_bins.h"
#include "penstock/export.h"
#include "penstock/graph.h"

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

// Bins of one width from `lower`, which counts, to `upper`, which does not. T is a number type; NaN is in no bin.
template <class T>
class EvenBins {
 public:
  // There are `bins` of them, 1 at least, and lower < upper; otherwise nothing is in any bin.
  EvenBins(T lower, T upper, int32_t bins)
      : lower_(lower), upper_(upper), last_(bins - 1), scale_(static_cast<Real>(bins) / (Real(upper) - Real(lower))) {}
  // The bin, -1 outside all of them.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int32_t operator()(T x) const {
    if (!(x >= lower_ && x < upper_)) return -1;
    const auto bin = static_cast<int32_t>((static_cast<Real>(x) - static_cast<Real>(lower_)) * scale_);
    return bin < last_ ? bin : last_;
  }

 private:
  using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
  T lower_, upper_;
  int32_t last_;
  Real scale_;
};

// Declares the two nodes; returns the one that counts.
template <class T, class C, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN FallbackNode<View<const T>, View<C>, F> Histogram(Graph& graph, const Name& name,
                                                                  const AccessOf<T, AccessMode::kRead>& from,
                                                                  const AccessOf<C, AccessMode::kWrite>& counts,
                                                                  F bin) {
  static_assert(std::is_integral_v<C> && (sizeof(C) == 4 || sizeof(C) == 8),
                "penstock: the counts of a Histogram are integers of 4 or 8 bytes");
  static_assert(std::is_trivially_copyable_v<F>, "penstock: the functor of a Histogram must be trivially copyable");
  constexpr bool kGivesBin = requires { static_cast<int64_t>(std::as_const(bin)(std::declval<const T&>())); };
  static_assert(kGivesBin, "penstock: the functor of a Histogram makes the number of a bin of an element");
  const SourceLine& at = name.source();
  graph.Fill(Name("zero", at.file, at.line).In(name), counts, C{0});
  const int64_t most = detail::MostElements(graph.model(), detail::FindAccessed(graph.model(), from).extent);
  AccessOf<C, AccessMode::kReadWrite> both{counts.buffer, counts.box};
  both.unordered = counts.unordered;
  both.state = counts.state;
  return graph.Kernel(name, &detail::CountBins<kNvcc, T, C, F>, detail::ShapeOfHistogram(most), from, both, bin)
      .HostFallback(&detail::CountBinsOnHost<T, C, F>);
}

}  // namespace penstock
