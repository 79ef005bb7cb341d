// Select: the elements of a buffer that a predicate holds of, in their order, and how many they are.
//
//   auto kept = graph.Buffer<float>("kept", n);
//   auto count = graph.Buffer<int32_t>("count", 1);
//   ps::Select(graph, "hot", ps::Read(x), ps::Write(kept), ps::Write(count), IsHot{});
//   graph.ParallelFor("use", ps::CountOf(count, n), Use{}, ps::Read(kept), ps::Write(y));
//
// Values    are those of a buffer, a State or a box of one dimension, each converted to the type of the result; with a
//           CountOf before them the first of them only.
// Result    is y[0] to y[count - 1], in the order of the values. y has one dimension, at least as long as that of x,
//           and is other memory. Elements from y[count] on are unspecified in a Buffer, and keep their values in memory
//           that outlives the run (access.h, WriteSome).
// Count     is one element of an integer type that the number of values fits into: a buffer of one element, a State, or
//           one element of a larger buffer.
// Predicate is a trivially copyable functor with a const PENSTOCK_HOST_DEVICE operator() that takes an element and
//           returns what converts to bool. It is called once or twice for each element, and gives the same both times.
// Order     is that of the values, on every device. Nothing is counted atomically.
// Nodes     are one of the given name for up to 2048 values. More are read once on a GPU (detail/look_back.h): there
// are
//           two nodes, the given name and "name/scan", which writes the result, and an internal buffer, "name/tiles".
// Errors    of the elements, the arguments and the device are those of a ParallelFor. A count of another number of
//           elements than one, or of a type that ends before the elements do, a result without room, and results in the
//           memory of another access are InvalidArgument at Compile.
//
// Threads: as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_select.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/node_sequence.h"

namespace penstock {

// Declares a Select of x into y, which puts how many it has kept into `count`.
template <class T, class V, class C, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence Select(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& x,
                                    const AccessOf<V, AccessMode::kWrite>& y,
                                    const AccessOf<C, AccessMode::kWrite>& count, F predicate) {
  return detail::SelectDeclaration::Declare<kNvcc>(graph, name, detail::NoCount(), x, y, count, predicate);
}
// The same of the first elements of x, as many as another count says that only the device knows.
template <class N, class T, class V, class C, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence Select(Graph& graph, const Name& name, const CountedExtent<N>& of,
                                    const AccessOf<T, AccessMode::kRead>& x, const AccessOf<V, AccessMode::kWrite>& y,
                                    const AccessOf<C, AccessMode::kWrite>& count, F predicate) {
  return detail::SelectDeclaration::Declare<kNvcc>(graph, name, of, x, y, count, predicate);
}

}  // namespace penstock
