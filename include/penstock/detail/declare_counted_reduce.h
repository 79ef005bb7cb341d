// How Graph declares a Reduce over a CountOf: as any other (declare_reduce.h), with the count as the first argument of
// each level. Memory and grids are those of the maximum.
//
// Threads: single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/export.h"
#include "penstock/reduce.h"

namespace penstock::detail {

class CountedReduceDeclaration {
 public:
  // `args` are those of the functor and then the result, a Write.
  template <bool kNvcc, class G, class C, class F, class Op, class V, class... A>
  PENSTOCK_HIDDEN static ReduceNode Declare(G& graph, const Name& name, const CountedExtent<C>& extent, F& f,
                                            const Op& op, const V& identity, A&... args) {
    constexpr bool kFits = ReduceDeclaration::Check<1, F, Op, V, A...>(std::make_index_sequence<sizeof...(A) - 1>());
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    if (IsNull(f)) AlgorithmDeclaration::RefuseNull(graph, name, "functor");
    if (IsNull(op)) AlgorithmDeclaration::RefuseNull(graph, name, "operation");
    CheckCount(sink, node, "a CountOf reads", extent.count);
    (CheckCountIsApart(sink, node, extent.count, args), ...);
    if constexpr (kFits) {
      WithoutCount<F> counted{std::move(f)};
      return Nodes<kNvcc>(graph, name, extent, counted, op, identity, std::make_index_sequence<sizeof...(A) - 1>(),
                          std::tie(args...));
    } else {
      __builtin_unreachable();  // does not compile
    }
  }

  // The same for the elements of an access.
  template <bool kNvcc, class G, class C, class Op, class T, class V>
  PENSTOCK_HIDDEN static ReduceNode OfElements(G& graph, const Name& name, const CountedExtent<C>& count, const Op& op,
                                               const V& identity, AccessOf<T, AccessMode::kRead>& from,
                                               AccessOf<V, AccessMode::kWrite>& to) {
    static_assert(std::is_convertible_v<T, V>, "penstock: the elements do not convert to the type of the result");
    CheckMaximum(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), count.max, from);
    ElementAt<V> element;
    return Declare<kNvcc>(graph, name, count, element, op, identity, from, to);
  }

 private:
  template <class C, class A>
  PENSTOCK_HIDDEN static void CheckCountIsApart([[maybe_unused]] const DeclarationSink& sink,
                                                [[maybe_unused]] const Name& node,
                                                [[maybe_unused]] const AccessOf<C, AccessMode::kRead>& count,
                                                [[maybe_unused]] const A& argument) {
    if constexpr (kWrites<A>) CheckInPlace(sink, node, count, argument, false);
  }
  // Of what the functor writes all of, it writes some; the result is written always.
  template <bool kNvcc, class G, class C, class F, class Op, class V, size_t... I, class Args>
  PENSTOCK_HIDDEN static ReduceNode Nodes(G& graph, const Name& name, const CountedExtent<C>& extent, F& f,
                                          const Op& op, const V& identity, std::index_sequence<I...>,
                                          const Args& args) {
    std::tuple given(extent.count, SomeOf(std::get<I>(args))..., std::get<sizeof...(I)>(args));
    return std::apply(
        [&](auto&... all) {
          return ReduceDeclaration::Levels<kNvcc, 1, true>(graph, name, Extent(extent.max), f, op, identity,
                                                           std::tie(all...),
                                                           std::make_index_sequence<sizeof...(I) + 1>());
        },
        given);
  }
};

}  // namespace penstock::detail
