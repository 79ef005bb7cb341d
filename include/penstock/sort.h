// Sort and SortPairs: nodes that put keys in order, and values with them.
//
//   ps::Sort(graph, "sort", ps::Read(keys), ps::Write(sorted));
//   ps::SortPairs(graph, "by distance", ps::Read(distances), ps::Write(nearest), ps::Read(points), ps::Write(ordered));
//
// Keys      are of an arithmetic type of at most 8 bytes, and in ascending order unless SortOptions says otherwise. -0
//           equals 0; a NaN comes after infinity, or with its sign set before minus infinity.
// Values    are of any trivially copyable type of at most 64 bytes. Equal keys keep the order of their values: the sort
//           is stable, in both directions. So the result has the same bits on all devices and in every run.
// Shapes    All accesses have one extent. Of two and three dimensions each row is sorted by itself; on a CUDA device by
//           calls of its own, so for many short rows a Task is better.
// Memory    The keys are not sorted in place. Beside the results a Buffer, "name/scratch", holds keys and values
//           between passes and half a byte an element of CUB's counts; it has no contents outside the node.
// Method    CUB's DeviceRadixSort on CUDA devices, as a Launch node: nvcc compiles the file, or the node fails there.
//           On host devices a radix sort on one thread.
// Errors    Extents that differ, and results in memory that is read or of one another, are InvalidArgument at Compile;
//           others are those of a Launch.
//
// This header includes CUB where nvcc compiles the file, so ps.h does not include it.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <type_traits>
#include <utility>

#include "penstock/detail/declare_sort.h"
#include "penstock/export.h"
#include "penstock/graph.h"

namespace penstock {

// Sorts the keys. Returns the node.
template <class K, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeRef Sort(Graph& graph, Name name, AccessOf<K, AccessMode::kRead> from,
                             AccessOf<K, AccessMode::kWrite> to, SortOptions options = {}) {
  return detail::SortDeclaration::Keys<kNvcc>(graph, std::move(name), from, to, options);
}

// Sorts the keys, and puts each value where its key went. Returns the node.
template <class K, class V, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeRef SortPairs(Graph& graph, Name name, AccessOf<K, AccessMode::kRead> keys,
                                  AccessOf<K, AccessMode::kWrite> sorted_keys, AccessOf<V, AccessMode::kRead> values,
                                  AccessOf<V, AccessMode::kWrite> sorted_values, SortOptions options = {}) {
  return detail::SortDeclaration::Pairs<kNvcc>(graph, std::move(name), keys, sorted_keys, values, sorted_values,
                                               options);
}

}  // namespace penstock
