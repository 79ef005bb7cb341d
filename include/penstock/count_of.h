// CountOf: an extent whose length only the device knows, such as the number of elements that a Select kept.
//
//   ps::Select(graph, "keep", ps::Read(x), ps::Write(kept), ps::Write(count), IsHot{});
//   graph.ParallelFor("use", ps::CountOf(count, n), Use{}, ps::Read(kept), ps::Write(y));
//
// Count     is one integer in a buffer or a State, or one element of a larger one: CountOf(Read(counts, Slice({k},
//           {1})), n). The node reads it where it runs, and nothing is copied to the host for it. A count above the
//           maximum counts as the maximum, and one below 0 as 0.
// Maximum   is a constant or a parameter. Memory, boxes and the grid of a kernel follow it: what lies beyond the count
//           costs the start of a thread on a device, and nothing on a host device.
// Functor   is called for the indices below the count, as over an extent of one dimension. Of what the node says that
// it
//           writes, it writes some (WriteSome): elements that the functor does not reach stay as they are.
// Order     is by the access, like that of any other: the node runs after what writes the count.
// Errors    of the elements, the arguments and the device are those of a ParallelFor. A count of another number of
//           elements than one, or that the node itself writes, is InvalidArgument at Compile.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <concepts>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/handle.h"

namespace penstock {

// The first `count` indices of `max`. Made by CountOf.
template <class C>
struct CountedExtent {
  AccessOf<C, AccessMode::kRead> count;  // one integer
  Dim max;  // the most that it counts as
};

// What an access reads, one integer, is the extent, which is at most `max`.
template <class C>
PENSTOCK_HIDDEN CountedExtent<C> CountOf(AccessOf<C, AccessMode::kRead> count, Dim max) {
  static_assert(std::integral<C> && !std::is_same_v<C, bool>, "penstock: the count of a CountOf is one integer");
  return {count, max};
}
// The same of a buffer of one element.
template <class C>
PENSTOCK_HIDDEN CountedExtent<C> CountOf(BufferHandle<C> count, Dim max) {
  return CountOf(Read(count), max);
}

}  // namespace penstock
