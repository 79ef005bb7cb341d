// How Graph declares a Reduce: a node for each level of its tree (reduce_tree.h) and a buffer between two levels.
//
// Each is declared as a user would declare it, so plans, edges, memory, checks and steps that are declared again know
// nothing of a Reduce but the level of a node.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/explain_arguments.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/export.h"
#include "penstock/reduce.h"

namespace penstock::detail {

// What is accessed: its extent, and whether its elements surely lie side by side.
struct Accessed {
  Extent extent;
  bool dense;
};
// One element if the access names nothing of this graph, which Compile reports. `state` may be null.
PENSTOCK_EXPORT Accessed FindAccessed(const Model& model, uint32_t graph, int32_t buffer, const Box& box,
                                      const StateRecord* state);
template <class T, AccessMode M>
PENSTOCK_HIDDEN Accessed FindAccessed(const Model& model, const AccessOf<T, M>& access) {
  return FindAccessed(model, access.buffer.graph(), access.buffer.index(), access.box, access.state.get());
}
// The most elements that an extent can have, by the maxima of its parameters; 1 if it is a mistake.
PENSTOCK_EXPORT int64_t MostElements(const Model& model, const Extent& extent);
// Keeps a mistake for Compile unless the extent of the result is one element in every run.
PENSTOCK_EXPORT void CheckResult(const DeclarationSink& sink, const Name& node, const Extent& extent);

// The element type of the last argument, where the result goes.
template <class Last>
struct ResultIn {
  using type = int;
  static constexpr bool kIs = false;
};
template <class V>
struct ResultIn<AccessOf<V, AccessMode::kWrite>> {
  using type = V;
  static constexpr bool kIs = true;
};
template <class... A>
struct ResultOf {
  using in = ResultIn<std::decay_t<std::tuple_element_t<sizeof...(A), std::tuple<void, A...>>>>;
  static_assert(in::kIs, "penstock: the last argument of a TransformReduce is where its result goes: ps::Write(sum)");
  using type = typename in::type;
};

// The identity of an operation that the call does not name.
template <class Op, class V>
PENSTOCK_HIDDEN constexpr V IdentityOf() {
  constexpr bool kKnown = requires { Op::template Identity<V>(); };
  static_assert(kKnown, "penstock: name the identity of the operation, its result for no elements, after it");
  if constexpr (kKnown) return Op::template Identity<V>();
}

class ReduceDeclaration {
 public:
  // `args` are those of the functor and then the result, a Write.
  template <bool kNvcc, int kExtentRank, class G, class F, class Op, class V, class... A>
  PENSTOCK_HIDDEN static ReduceNode Declare(G& graph, const Name& name, const Extent& extent, F& f, const Op& op,
                                            const V& identity, A&... args) {
    constexpr bool kFits = Check<kExtentRank, F, Op, V, A...>(std::make_index_sequence<sizeof...(A) - 1>());
    if (IsNull(f)) graph.RefuseNull(name, "functor");
    if (IsNull(op)) graph.RefuseNull(name, "operation");
    if constexpr (kFits) {
      return Levels<kNvcc, kExtentRank, false>(graph, name, extent, f, op, identity, std::tie(args...),
                                               std::make_index_sequence<sizeof...(A) - 1>());
    } else {
      __builtin_unreachable();  // does not compile
    }
  }

  // The same for the elements of an access.
  template <bool kNvcc, class G, class Op, class T, class V>
  PENSTOCK_HIDDEN static ReduceNode OfElements(G& graph, const Name& name, const Op& op, const V& identity,
                                               AccessOf<T, AccessMode::kRead>& from,
                                               AccessOf<V, AccessMode::kWrite>& to) {
    static_assert(std::is_convertible_v<T, V>, "penstock: the elements do not convert to the type of the result");
    const Accessed of = FindAccessed(graph.model(), from);
    ElementAt<V> element;
    if (of.dense) return Declare<kNvcc, 1>(graph, name, of.extent, element, op, identity, from, to);
    ElementOfRows<V> of_rows;
    return Declare<kNvcc, 3>(graph, name, of.extent, of_rows, op, identity, from, to);
  }

  // Whether all fits together; the compiler says what does not.
  template <int kExtentRank, class F, class Op, class V, class... A, size_t... I>
  PENSTOCK_HIDDEN static constexpr bool Check(std::index_sequence<I...>) {
    static_assert(sizeof(V) <= 256, "penstock: the result of a Reduce has at most 256 bytes");
    static_assert(!kIsDeviceLambda<F>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_copyable_v<Op>,
                  "penstock: the functor and the operation of a Reduce are trivially copyable; nvcc's lambdas that "
                  "capture are not: make it a struct");
    constexpr bool kCombines = std::is_invocable_r_v<V, const Op&, V, V>;
    static_assert(kCombines,
                  "penstock: the operation of a Reduce takes two values of the result's type and returns one; its "
                  "operator() is const");
    using Args = std::tuple<A...>;
    constexpr bool kCalled =
        FunctorRank<kExtentRank, F, ViewStoredT<std::tuple_element_t<I, Args>>...>(kExtentRank) > 0;
    if constexpr (!kCalled) Explain<AsFunctor<F>, std::tuple_element_t<I, Args>...>();
    constexpr bool kGives = !kCalled || FunctorRank<kExtentRank, Leaf<F, Op, V>, ViewStoredT<A>...>(kExtentRank) > 0;
    static_assert(kGives,
                  "penstock: what the functor of a TransformReduce returns does not convert to the result's type");
    return kCombines && kCalled && kGives;
  }

  // The nodes. `args` are as those of Declare, after a count that all levels read if kHasCount.
  template <bool kNvcc, int kExtentRank, bool kHasCount, class G, class F, class Op, class V, class Args, size_t... I>
  PENSTOCK_HIDDEN static ReduceNode Levels(G& graph, const Name& name, const Extent& extent, F& f, const Op& op,
                                           const V& identity, const Args& args, std::index_sequence<I...>) {
    const int64_t most = MostElements(graph.model(), extent);
    auto& result = std::get<sizeof...(I)>(args);
    Leaf<F, Op, V, kHasCount> leaf{f, op, identity, 1};
    CheckResult(graph.sink(), graph.InScope(name), FindAccessed(graph.model(), result).extent);
    const auto first = [&](auto to) {
      return graph.template AddParallelFor<kNvcc, kExtentRank>(name, extent, leaf, std::get<I>(args)..., to);
    };
    if (MostPartialsAfter(most, 1) == 1) {
      const NodeRef only = first(result);
      return {only, only};
    }
    BufferHandle<V> values = Partials<V>(graph, name, most, 1);
    const NodeRef begin = first(WriteSome(values));
    for (int level = 2;; ++level) {
      auto from = Read(values);
      const auto add = [&](auto to) {
        Name part = Part(name, "level", level);
        if constexpr (kHasCount) {
          Leaf<WithoutCount<ElementAt<V>>, Op, V, true> next{{}, op, identity, level};
          return graph.template AddParallelFor<kNvcc, 1>(std::move(part), extent, next, std::get<0>(args), from, to);
        } else {
          Leaf<ElementAt<V>, Op, V> next{{}, op, identity, level};
          return graph.template AddParallelFor<kNvcc, 1>(std::move(part), extent, next, from, to);
        }
      };
      if (MostPartialsAfter(most, level) == 1) return {begin, add(result)};
      values = Partials<V>(graph, name, most, level);
      add(WriteSome(values));
    }
  }

 private:
  // The buffers and nodes after the first have the name and the line of the Reduce, and more.
  PENSTOCK_HIDDEN static Name Part(const Name& of, const char* what, int level) {
    const SourceLine& at = of.source();
    return (level == 1 ? Name(what, at.file, at.line) : Name(what, level, at.file, at.line)).In(of);
  }
  template <class V, class G>
  PENSTOCK_HIDDEN static BufferHandle<V> Partials(G& graph, const Name& name, int64_t most, int level) {
    return graph.template Buffer<V>(Part(name, "partials", level), Extent(MostPartialsAfter(most, level)));
  }
};

}  // namespace penstock::detail
