// ReduceByKey: one value of each run of equal keys that lie side by side.
//
//   ps::SortPairs(graph, "sort", ps::Read(ids), ps::Write(keys), ps::Read(amounts), ps::Write(values));
//   ps::ReduceByKey(graph, "totals", ps::Read(keys), ps::Read(values), ps::Write(unique), ps::Write(totals),
//                   ps::Write(count));                               // keys 3 3 7, values 1 2 5 -> 3 7, 3 5, count 2
//
// Keys      are of any type with operator==, in a buffer, a State or a box of one dimension; with a CountOf before them
//           the first of them only. A run is of neighbours that are equal. NaNs equal nothing: each is a run.
// Values    are as many as the keys, each converted to the type of the totals.
// Results   are the first key of each run and its total, in the order of the runs, and how many runs there are: one
//           element of an integer type that the number of keys fits into. Results have one dimension, at least as long
//           as the keys', and are other memory. Elements from the count on are unspecified in a Buffer, and keep their
//           values in memory that outlives the run (access.h, WriteSome). A total has at most 48 bytes.
// Operation is as that of a Reduce (reduce.h), and combines values of one run only. It needs no identity.
// Order     is fixed by where a run begins and ends. The total is what an inclusive Scan (scan.h) of all values has at
//           the last element of the run, if in its blocks all is left out that comes before the run. So the result has
//           the same bits on host devices and GPUs, and does not change when elements are appended.
// Nodes     are those of a Scan: one of the given name for up to 2048 elements, otherwise further ones after it.
// Errors    of the elements, the arguments and the device are those of a ParallelFor. Keys and values of other extents,
//           results without room or in the memory of another access, a count of other than one element or of a type
//           that ends before the keys do, and more than 2^32 - 1 keys are InvalidArgument at Compile.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_runs.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/node_sequence.h"
#include "penstock/reduce.h"

namespace penstock {

// Declares a Reduce of the values of each run, which puts how many runs there are into `count`.
template <class K, class T, class U, class V, class C, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence ReduceByKey(Graph& graph, const Name& name, const AccessOf<K, AccessMode::kRead>& keys,
                                         const AccessOf<T, AccessMode::kRead>& values,
                                         const AccessOf<U, AccessMode::kWrite>& unique,
                                         const AccessOf<V, AccessMode::kWrite>& totals,
                                         const AccessOf<C, AccessMode::kWrite>& count, Op op = {}) {
  const detail::RunAccesses<K, T, U, V, C> to{keys, values, unique, totals, count};
  return detail::RunsDeclaration::Declare<kNvcc>(graph, name, detail::NoCount(), to, op);
}
// The same of the first elements, as many as another count says that only the device knows.
template <class N, class K, class T, class U, class V, class C, class Op = Plus, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeSequence ReduceByKey(Graph& graph, const Name& name, const CountedExtent<N>& of,
                                         const AccessOf<K, AccessMode::kRead>& keys,
                                         const AccessOf<T, AccessMode::kRead>& values,
                                         const AccessOf<U, AccessMode::kWrite>& unique,
                                         const AccessOf<V, AccessMode::kWrite>& totals,
                                         const AccessOf<C, AccessMode::kWrite>& count, Op op = {}) {
  const detail::RunAccesses<K, T, U, V, C> to{keys, values, unique, totals, count};
  return detail::RunsDeclaration::Declare<kNvcc>(graph, name, of, to, op);
}

}  // namespace penstock
