// ArgMin and ArgMax: where the least or the greatest element is, or the element and where it is.
//
//   ps::ArgMax(graph, "pivot", ps::Read(column), ps::Write(row));                 // row: one int32_t or int64_t
//   ps::ArgMin(graph, "nearest", ps::Read(distances), ps::Write(nearest));        // nearest: one ps::Indexed<float>
//   ps::ArgMax(graph, "best", ps::CountOf(count, n), ps::Read(kept), ps::Write(best));
//
// Elements  are those of a buffer, a State or a box of one to three dimensions, of any type with operator<; with a
//           CountOf before them the first of one dimension only.
// Result    is one element: of a buffer, a State or an Output, or a box of one element. The index counts the elements
//           that are read, from 0, rows after rows: in a box of a buffer from the box's corner on. Of equal elements,
//           such as 0 and -0, it is the smallest index. It is -1 if there are none; the element then is what Min or Max
//           gives of no values.
// NaN       counts as less than all and as greater than all: if there is one, the result is the first, as the result of
//           Min and Max is NaN.
// Nodes     are those of a Reduce (reduce.h) of elements with their indices, in its order.
// Errors    are those of a Reduce. An int32_t for more than 2^31 elements is InvalidArgument at Compile.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_arg_max.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/indexed.h"
#include "penstock/reduce.h"

namespace penstock {

// Declares a search for the first of the least elements. R is int32_t, int64_t or Indexed<T>.
template <class T, class R, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ReduceNode ArgMin(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                  const AccessOf<R, AccessMode::kWrite>& to) {
  return detail::ArgDeclaration::Declare<kNvcc, Min>(graph, name, detail::NoCount(), from, to);
}
template <class C, class T, class R, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ReduceNode ArgMin(Graph& graph, const Name& name, const CountedExtent<C>& count,
                                  const AccessOf<T, AccessMode::kRead>& from,
                                  const AccessOf<R, AccessMode::kWrite>& to) {
  return detail::ArgDeclaration::Declare<kNvcc, Min>(graph, name, count, from, to);
}
// Declares a search for the first of the greatest elements.
template <class T, class R, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ReduceNode ArgMax(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                  const AccessOf<R, AccessMode::kWrite>& to) {
  return detail::ArgDeclaration::Declare<kNvcc, Max>(graph, name, detail::NoCount(), from, to);
}
template <class C, class T, class R, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ReduceNode ArgMax(Graph& graph, const Name& name, const CountedExtent<C>& count,
                                  const AccessOf<T, AccessMode::kRead>& from,
                                  const AccessOf<R, AccessMode::kWrite>& to) {
  return detail::ArgDeclaration::Declare<kNvcc, Max>(graph, name, count, from, to);
}

}  // namespace penstock
