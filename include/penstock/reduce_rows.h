// ReduceRows: one value of each row of a buffer.
//
//   ps::ReduceRows(graph, "sums", ps::Read(matrix), ps::Write(sums));                         // {h, w} -> {h}
//   ps::ReduceRows(graph, "peaks", ps::Read(images, part), ps::Write(peaks), ps::Max());      // {d, h, w} -> {d, h}
//
// Rows      are those of a buffer, a State or a box of two or three dimensions, along the last of them.
// Result    has one element for each row: the extent of what is read without its last dimension, in other memory. An
//           element has at most 64 bytes. Of rows without elements it is the identity.
// Values    are those that are read, each converted to the type of the result.
// Operation is as that of a Reduce (reduce.h).
// Order     is that of a Reduce of each row alone, so the result has the same bits, on host devices and GPUs, however
//           many rows there are beside it.
// Nodes     are one of the given name for rows of up to 2048 elements, and otherwise others after it, "name/level 2"
// and
//           so on, one for each factor of 2048, for all rows together. Between them lie internal buffers,
//           "name/partials". Rows of less than 8 elements take the time of 8.
// Errors    of the elements, the arguments and the device are those of a ParallelFor. A result of another extent, and
//           one in memory that is read, is InvalidArgument at Compile.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <type_traits>

#include "penstock/access.h"
#include "penstock/detail/declare_rows.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/node_sequence.h"
#include "penstock/reduce.h"

namespace penstock {

// Declares a Reduce of each row. Plus, Min and Max know their identities.
template <class T, class V, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence ReduceRows(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                        const AccessOf<V, AccessMode::kWrite>& to, Op op = {}) {
  return detail::RowsDeclaration::Declare<kNvcc>(graph, name, from, to, op, detail::IdentityOf<Op, V>());
}
template <class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence ReduceRows(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                        const AccessOf<V, AccessMode::kWrite>& to, Op op,
                                        std::type_identity_t<V> identity) {
  return detail::RowsDeclaration::Declare<kNvcc>(graph, name, from, to, op, identity);
}

}  // namespace penstock
