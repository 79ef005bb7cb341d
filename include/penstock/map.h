// Map: one element of the result for each element of the buffers that an expression reads (expr.h). No nvcc is needed.
//
//   const auto x = ps::expr::Of(a), y = ps::expr::Of(b);
//   ps::Map(graph, "axpy", ps::Write(t), 2.0f * x + y);
//   ps::Map(graph, "exp", ps::Write(e), ps::expr::Exp(ps::expr::Of(t)));
//
// Values    z[i] = what the expression gives for index i, for whole buffers, States and boxes of one to three
// dimensions
//           and of one shape. z may be read, with the same box. expr.h says how values are computed.
// Fusion    Maps of one shape become one kernel where a Buffer between them is then not needed: it is written as a
//           whole by one and read as a whole by others, all fused, and nothing else uses what it holds. So `t` above
//           has no memory if nothing else reads it. Results and errors are as without. CompileOptions::fuse_maps turns
//           it off, SubmissionReport::fused tells of it, and docs/howto/expressions.md says what prevents it.
// Errors    are those of a ParallelFor and of a Source. Shapes that differ are InvalidArgument at Compile.
//
// Numbers of an expression are part of the code: a step that is declared again with another one is another graph. What
// changes from run to run is a parameter.
//
// Threads: as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <type_traits>
#include <utility>

#include "penstock/detail/declare_map.h"
#include "penstock/export.h"
#include "penstock/expr.h"
#include "penstock/graph.h"

namespace penstock {

// Declares a node that writes the value of the expression for index i to z[i]. The expression is an expr::Value of the
// elements' type, or a Read, a parameter, or a number.
template <class V, class E>
PENSTOCK_HIDDEN NodeRef Map(Graph& graph, Name name, const AccessOf<V, AccessMode::kWrite>& z, const E& expression) {
  return detail::MapDeclaration::Declare(graph, std::move(name), z, expression);
}

}  // namespace penstock
