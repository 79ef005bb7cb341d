// How a Map is declared: its expression becomes a formula, and its node a ParallelFor whose code the library has.
//
// Threads: single-threaded.
#pragma once

#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/formula.h"
#include "penstock/detail/make_term.h"
#include "penstock/export.h"
#include "penstock/node.h"

namespace penstock::detail {

// Flattens an expression that is written to `to`, and keeps mistakes for Compile.
PENSTOCK_EXPORT FlatMap Flatten(const DeclarationSink& sink, const Name& node, const ErasedAccess& to,
                                const SharedTerm& value);

class MapDeclaration {
 public:
  template <class G, class V, class E>
  PENSTOCK_HIDDEN static NodeRef Declare(G& graph, Name name, const AccessOf<V, AccessMode::kWrite>& to,
                                         const E& expression) {
    static_assert(kIsScalar<V> && !std::is_same_v<V, bool>,
                  "penstock: a Map writes uint8_t, int32_t, int64_t, float or double");
    using Of = OperandOf<E>;
    static_assert(Of::kIs, "penstock: a Map writes an expression of penstock/expr.h, a Read, a parameter or a number");
    if constexpr (kIsScalar<V> && Of::kIs) {
      static_assert(!Of::kIsValue || std::is_same_v<typename Of::type, V>,
                    "penstock: the expression has another type than the elements that the Map writes; say "
                    "ps::expr::Cast<T>(...) of it");
      static_assert(Of::kIsValue || std::is_floating_point_v<V> || std::is_integral_v<typename Of::type>,
                    "penstock: a Map writes a number with a fraction to integers; write an integer");
      const FlatMap map = Flatten(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name),
                                  ErasedAccess::Of(to), As<V>(expression));
      return AlgorithmDeclaration::Declare(graph, std::move(name), NodeKind::kParallelFor,
                                           [&](auto& node) { node.Map(map); });
    } else {
      __builtin_unreachable();  // does not compile
    }
  }
};

}  // namespace penstock::detail
