// Scan: for each element of a buffer what the operation makes of those before it, with it or without it.
//
//   ps::Scan(graph, "sums", ps::Read(x), ps::Write(y));                                        // 1 2 3 -> 1 3 6
//   ps::Scan(graph, "offsets", ps::Read(counts), ps::Write(offsets), ps::Plus(), ps::kExclusive);  // 1 2 3 -> 0 1 3
//   ps::Scan(graph, "paths", ps::Read(steps), ps::Write(paths), Compose{}, Map{1, 0});         // begins with Map{1, 0}
//
// Rows      of a buffer or a box of two or three dimensions are scanned each alone.
// Values    are those that are read, each converted to the type V of the result, which may be another: int32_t to
//           int64_t, half to float. y may be x, with the same box. A CountOf before them scans the first of them only;
//           the other elements of y are unspecified in a Buffer, and keep their values in memory that outlives the run.
// Result    has at most 64 bytes. An exclusive Scan gives the first element of a row the initial value: the one that
//           the call names, or the identity of the operation. An inclusive one has none unless the call names it.
// Operation is as that of a Reduce (reduce.h): associative, as far as rounding allows; it need not commute.
// Order     is fixed. What comes before element i is combined so: elements 0 to i - 1 of the row are cut into blocks as
//           the binary digits of i say, the largest first: 11 elements are blocks of 8, 2 and 1. Each block is combined
//           pairwise: neighbours, then the results of neighbours, and so on. Then the blocks are combined from left to
//           right, beginning with the initial value, if there is one. An inclusive Scan combines that with element i.
//           So the result has the same bits on host devices and GPUs, however many threads there are, and does not
//           change when elements are appended. Errors of sums grow with the logarithm of i (detail/scan_tree.h names
//           the source). Each result of the operation is rounded before the operation takes it. Within one call the
//           operation is the user's own, as for a Reduce.
// Any order CombineOrder::kAny gives up that order for speed where a result has at most 16 bytes: sums of floats then
//           differ from run to run. Sums of integers, and Min and Max of numbers, have the same bits in any order, and
//           always take the fastest.
// Nodes     are one of the given name for rows of up to 2048 elements. Longer rows are read twice in the fixed order:
//           for each further factor of 2048 there are two more nodes, "name/level 2" and so on up, and "name/scan 2"
//           and so on down to "name/scan", which writes the result, with internal buffers of a value for 2048 between
//           them. In any order they are read once on a GPU (detail/look_back.h): there are two nodes, the given name
//           and "name/scan", and an internal buffer, "name/tiles".
// Errors    of the elements, the arguments and the device are those of a ParallelFor. Shapes of x and y that differ, a
//           result in other elements of the buffer that is read, a count in the result, a CountOf of another maximum
//           than the elements have, and an exclusive Scan without an initial value or an identity are InvalidArgument
//           at Compile. A float that its integer type does not hold converts to another number on each device.
//
// Threads: as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_scan.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/node_sequence.h"
#include "penstock/reduce.h"

namespace penstock {

using ScanNode = NodeSequence;  // the nodes of a Scan: the last of them writes the result

// Declares a Scan, which begins with the identity of the operation if it is exclusive.
template <class T, class V, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ScanNode Scan(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& x,
                              const AccessOf<V, AccessMode::kWrite>& y, Op op = {}, ScanOptions options = {}) {
  return detail::ScanDeclaration::Declare<kNvcc>(graph, name, detail::NoCount(), x, y, op, detail::NoValue(), options);
}
// Declares a Scan that begins with `initial`.
template <class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ScanNode Scan(Graph& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& x,
                              const AccessOf<V, AccessMode::kWrite>& y, Op op, std::type_identity_t<V> initial,
                              ScanOptions options = {}) {
  return detail::ScanDeclaration::Declare<kNvcc>(graph, name, detail::NoCount(), x, y, op, initial, options);
}
// The same of the first elements of one dimension, as many as a count says that only the device knows.
template <class C, class T, class V, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ScanNode Scan(Graph& graph, const Name& name, const CountedExtent<C>& count,
                              const AccessOf<T, AccessMode::kRead>& x, const AccessOf<V, AccessMode::kWrite>& y,
                              Op op = {}, ScanOptions options = {}) {
  return detail::ScanDeclaration::Declare<kNvcc>(graph, name, count, x, y, op, detail::NoValue(), options);
}
template <class C, class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN ScanNode Scan(Graph& graph, const Name& name, const CountedExtent<C>& count,
                              const AccessOf<T, AccessMode::kRead>& x, const AccessOf<V, AccessMode::kWrite>& y, Op op,
                              std::type_identity_t<V> initial, ScanOptions options = {}) {
  return detail::ScanDeclaration::Declare<kNvcc>(graph, name, count, x, y, op, initial, options);
}

}  // namespace penstock
