// Reduce: the operations of Graph::Reduce and Graph::TransformReduce (graph.h), which make one value of many, and the
// handle on their nodes.
//
//   graph.Reduce("sum", ps::Read(x), ps::Write(sum));
//   graph.Reduce("worst", ps::Read(x, interior), ps::Write(worst), ps::Max());
//   graph.TransformReduce("dot", n, Product{}, ps::Plus(), 0.0, ps::Read(p), ps::Read(q), ps::Write(dot));
//   graph.Reduce("of kept", ps::CountOf(count, n), ps::Read(kept), ps::Write(sum));
//
// Values    are those of the buffer or the box, each converted to the result's type, or what the functor returns for
//           each index. The functor is called once for each index. With a CountOf (count_of.h) they are the first ones
//           of one dimension, and the result has the bits that just these give; nodes and memory are those of the
//           maximum, and of what the functor writes it writes some.
// Result    is the one element of a buffer, State or Output, or a box of one element: Write(norms, Slice({k}, {1})).
//           It may have up to 256 bytes. Of no values it is the identity, which otherwise takes no part.
// Operation is a trivially copyable functor with a const PENSTOCK_HOST_DEVICE operator(), V(V, V), for results of type
//           V. It must be associative, as far as rounding allows; it need not be commutative: the value with the
//           smaller index is on the left.
// Order     is fixed: neighbours are combined pairwise, then the results of neighbours, and so on (pairwise summation:
//           detail/reduce_tree.h describes the tree and names the source). It depends only on the number of values, so
//           the result has the same bits on host devices and GPUs, however many slots, lanes and workers there are.
//           Nothing is added atomically. Each value and each result of the operation is rounded before the operation
//           takes it. Within one call, the functor and the operation are the user's own: there compilers may still
//           contract a multiplication and an addition (docs/explanation/host-nodes.md, "Floating point"). The sign and
//           the payload of a NaN are not specified.
// Nodes     are one of the given name for up to 4096 values, and otherwise others after it, "name/level 2" above 4096
//           values and "name/level 3" above 64 Mi. Between them lie internal buffers, "name/partials", of one value for
//           2048 or more.
// Errors    of the elements, the arguments and the device are those of a ParallelFor. A result of another number of
//           elements than one, a count that the node writes, and a CountOf of another maximum than the elements have
//           are InvalidArgument at Compile.
//
// Threads: plain values; handles as NodeRef.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <limits>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"

namespace penstock {

// The sum.
struct Plus {
  // Their sum.
  template <class T>
    requires requires(const T& a, const T& b) { static_cast<T>(a + b); }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
  // What it makes of no values.
  template <class T>
  PENSTOCK_HIDDEN static constexpr T Identity() {
    static_assert(std::is_default_constructible_v<T>, "there is no T{} to be the sum of no values; name the identity");
    return T{};
  }
};

namespace detail {
// Whether a value is a NaN, of a floating point type or of one that converts to float, such as CUDA's half.
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE constexpr bool IsNaN([[maybe_unused]] const T& value) {
  if constexpr (std::is_floating_point_v<T>) return !(value == value);
  else if constexpr (std::is_class_v<T> && std::is_convertible_v<T, float>) return IsNaN(static_cast<float>(value));
  else return false;
}
}  // namespace detail

// The least value. One NaN makes the result NaN, so that a test for convergence does not miss it.
// Equal values, such as 0 and -0, give the one with the smaller index.
struct Min {
  // The lesser of both.
  template <class T>
    requires requires(const T& a, const T& b) { a < b ? a : b; }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return b < a || detail::IsNaN(b) ? b : a;
  }
  // What it makes of no values: infinity, or the greatest number of an integer type.
  template <class T>
  PENSTOCK_HIDDEN static constexpr T Identity() {
    static_assert(std::numeric_limits<T>::is_specialized, "T has no greatest value; name the identity");
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
};
// The greatest value, as Min is the least.
struct Max {
  // The greater of both.
  template <class T>
    requires requires(const T& a, const T& b) { a < b ? a : b; }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a < b || detail::IsNaN(b) ? b : a;
  }
  // What it makes of no values: minus infinity, or the least number of an integer type.
  template <class T>
  PENSTOCK_HIDDEN static constexpr T Identity() {
    static_assert(std::numeric_limits<T>::is_specialized, "T has no least value; name the identity");
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::lowest();
  }
};

using ReduceNode = NodeSequence;  // the nodes of a Reduce: the last of them writes the result

}  // namespace penstock
