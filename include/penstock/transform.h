// Transform: one element of the result for each element of one or two buffers.
//
//   ps::Transform(graph, "roots", ps::Read(x), ps::Write(y), Root{});
//   ps::Transform(graph, "sum", ps::Read(x, inner), ps::Read(y, inner), ps::Write(z, inner), Add{});
//
// Values    z[i] = f(x[i]) or f(x[i], y[i]), for whole buffers, States and boxes of one to three dimensions and of one
//           shape. z may be x or y, with the same box: Transform(graph, "twice", Read(x), Write(x), Twice{}).
// Functor   is trivially copyable, with a const PENSTOCK_HOST_DEVICE operator() that returns what converts to the
//           result's element type. It is called once for each element, in any order and concurrently.
// Errors    are those of a ParallelFor. Shapes that differ are InvalidArgument at Compile.
//
// Threads: as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <type_traits>
#include <utility>

#include "penstock/detail/declare_algorithm.h"
#include "penstock/export.h"
#include "penstock/graph.h"

namespace penstock {

// Declares a node that writes f(x[i]) to z[i].
template <class T, class V, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeRef Transform(Graph& graph, Name name, AccessOf<T, AccessMode::kRead> x,
                                  AccessOf<V, AccessMode::kWrite> z, F f) {
  return detail::TransformDeclaration::Declare<kNvcc>(graph, std::move(name), f, z, x);
}
// Declares a node that writes f(x[i], y[i]) to z[i].
template <class T, class U, class V, class F, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN NodeRef Transform(Graph& graph, Name name, AccessOf<T, AccessMode::kRead> x,
                                  AccessOf<U, AccessMode::kRead> y, AccessOf<V, AccessMode::kWrite> z, F f) {
  return detail::TransformDeclaration::Declare<kNvcc>(graph, std::move(name), f, z, x, y);
}

}  // namespace penstock
