// How functions beside Graph declare nodes: what they may use of one, checks that they share, and those of them that
// are one node, a ParallelFor over a CountOf and a Transform.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/counted.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/explain_arguments.h"
#include "penstock/detail/formula.h"
#include "penstock/detail/host_device.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/node.h"
#include "penstock/node_sequence.h"
#include "penstock/reduce.h"
#include "penstock/view.h"

namespace penstock::detail {

// What an access names, whatever its type and mode are.
struct AccessTo {
  int32_t buffer;
  uint32_t graph;
  const Box* box;
  const StateRecord* state;  // null: a buffer

  template <class T, AccessMode M>
  PENSTOCK_HIDDEN AccessTo(const AccessOf<T, M>& access)  // NOLINT: implicit
      : buffer(access.buffer.index()), graph(access.buffer.graph()), box(&access.box), state(access.state.get()) {}
  PENSTOCK_HIDDEN AccessTo(const ErasedAccess& access)  // NOLINT: implicit
      : buffer(access.buffer), graph(access.graph), box(&access.box), state(access.state.get()) {}
};
// Checks keep a mistake for Compile. What is no access of this graph is told with the node.
//
// The count is one element in every run; `what` is "a CountOf reads" or "a Select writes".
PENSTOCK_EXPORT void CheckCount(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& count);
// Both have one shape in every run; `what` is "a Transform".
PENSTOCK_EXPORT void CheckSameShape(const DeclarationSink& sink, const Name& node, const char* what,
                                    const AccessTo& from, const AccessTo& to);
// There is room in one dimension for all that `from` has; `why` is "a Select may keep all".
PENSTOCK_EXPORT void CheckRoom(const DeclarationSink& sink, const Name& node, const char* why, const AccessTo& from,
                               const AccessTo& to);
// `from` has at most so many elements; `what`, "the type of its count", is for no more.
PENSTOCK_EXPORT void CheckMost(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& from,
                               uint64_t most);
// Nothing that is written can be an element that is read, except, if it `may_be_same`, all of them in place.
PENSTOCK_EXPORT void CheckInPlace(const DeclarationSink& sink, const Name& node, const AccessTo& from,
                                  const AccessTo& to, bool may_be_same);
// A count's maximum is what the elements have.
PENSTOCK_EXPORT void CheckMaximum(const DeclarationSink& sink, const Name& node, const Dim& max, const AccessTo& from);
// No element is written by way of both.
PENSTOCK_EXPORT void CheckApart(const DeclarationSink& sink, const Name& node, const AccessTo& a, const AccessTo& b);

// Sets what tells how many elements of the Output count, and keeps a mistake for Compile unless that is one integer of
// this graph. A State gets the buffer that stands for it.
PENSTOCK_EXPORT void DeclareCount(const DeclarationSink& sink, const Name& output, BufferHandle<void> count,
                                  const Box& box, const std::shared_ptr<const StateRecord>& state, CountDecl& decl);
template <class C>
PENSTOCK_HIDDEN void DeclareCount(const DeclarationSink& sink, const Name& output,
                                  const AccessOf<C, AccessMode::kRead>& count, CountDecl& decl) {
  DeclareCount(sink, output, {count.buffer.graph(), count.buffer.index()}, count.box, count.state, decl);
}

// In place of a CountedExtent.
struct NoCount {};

// An access of a node that may end before its elements do: it writes some of those that it would write all of.
template <class A>
PENSTOCK_HIDDEN A SomeOf(const A& argument) {
  return argument;
}
template <class V>
PENSTOCK_HIDDEN AccessOf<V, AccessMode::kWriteSome> SomeOf(const AccessOf<V, AccessMode::kWrite>& to) {
  return {to.buffer, to.box, to.unordered, to.state, to.uncopied};
}
template <class A>
inline constexpr bool kWrites = false;
template <class T, AccessMode M>
inline constexpr bool kWrites<AccessOf<T, M>> = M != AccessMode::kRead;

// Whether the order in which an operation combines values can change the result's bits: not the order of sums of
// integers, which wrap, and not that of the least and the greatest of numbers.
template <class Op, class V>
inline constexpr bool kOrderMatters =
    !(std::is_same_v<Op, Plus> && std::is_integral_v<V>) &&
    !((std::is_same_v<Op, Min> || std::is_same_v<Op, Max>) && std::is_arithmetic_v<V>);

// What they use of a Graph.
class AlgorithmDeclaration {
 public:
  template <bool kNvcc, int kExtentRank, class G, class F, class... A>
  PENSTOCK_HIDDEN static NodeRef AddParallelFor(G& graph, Name name, const Extent& extent, F& f, A&... args) {
    return graph.template AddParallelFor<kNvcc, kExtentRank>(std::move(name), extent, f, args...);
  }
  template <class G, class Describe>
  PENSTOCK_HIDDEN static NodeRef Declare(G& graph, Name name, NodeKind kind, Describe describe) {
    return graph.Declare(std::move(name), kind, describe);
  }
  template <class G>
  PENSTOCK_HIDDEN static DeclarationSink Sink(const G& graph) {
    return graph.sink();
  }
  template <class G>
  PENSTOCK_HIDDEN static Name InScope(const G& graph, const Name& name) {
    return graph.InScope(name);
  }
  // Of nodes that may combine values with `Op` in any order, where another order may give other bits.
  template <class Op, class V>
  PENSTOCK_HIDDEN static NodeSequence InAnyOrder(NodeSequence nodes) {
    return kOrderMatters<Op, V> ? nodes.InAnyOrder() : nodes;
  }
  template <class G>
  PENSTOCK_HIDDEN static void RefuseNull(G& graph, const Name& name, const char* what) {
    graph.RefuseNull(name, what);
  }
};

// Checks the count of an algorithm that takes the first elements of `from` and writes to each of `to`.
template <class Count, class... To>
PENSTOCK_HIDDEN void CheckCountOf([[maybe_unused]] const DeclarationSink& sink, [[maybe_unused]] const Name& node,
                                  [[maybe_unused]] const Count& of, [[maybe_unused]] const AccessTo& from,
                                  [[maybe_unused]] const To&... to) {
  if constexpr (!std::is_same_v<Count, NoCount>) {
    CheckCount(sink, node, "a CountOf reads", of.count);
    (CheckInPlace(sink, node, of.count, to, false), ...);
    CheckMaximum(sink, node, of.max, from);
  }
}

class CountedDeclaration {
 public:
  template <bool kNvcc, class G, class C, class F, class... A>
  PENSTOCK_HIDDEN static NodeRef Declare(G& graph, Name name, CountedExtent<C>& extent, F& f, A&... args) {
    constexpr bool kFits = std::is_invocable_v<const F&, int64_t, ViewStoredT<A>...>;
    if constexpr (!kFits) Explain<AsFunctor<F>, A...>();
    static_assert(!kIsDeviceLambda<F>, "a __device__ lambda has no host code; make it __host__ __device__");
    if (IsNull(f)) AlgorithmDeclaration::RefuseNull(graph, name, "functor");
    CheckCount(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), "a CountOf reads",
               extent.count);
    (CheckCountIsApart(graph, name, extent.count, args), ...);
    if constexpr (kFits) {
      Counted<F, C> counted{std::move(f)};
      auto some = std::tuple(SomeOf(args)...);
      return std::apply(
          [&](auto&... given) {
            return AlgorithmDeclaration::AddParallelFor<kNvcc, 1>(graph, std::move(name), extent.max, counted,
                                                                  extent.count, given...);
          },
          some);
    } else {
      __builtin_unreachable();  // does not compile
    }
  }

 private:
  template <class G, class C, class A>
  PENSTOCK_HIDDEN static void CheckCountIsApart([[maybe_unused]] const G& graph, [[maybe_unused]] const Name& name,
                                                [[maybe_unused]] const AccessOf<C, AccessMode::kRead>& count,
                                                [[maybe_unused]] const A& argument) {
    if constexpr (kWrites<A>) {
      CheckInPlace(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), count, argument,
                   false);
    }
  }
};

// f of the elements with one index.
template <class F>
struct TransformElements {
  F f;

  template <class V, class... T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<V> to, View<const T>... from) const {
    to(i) = static_cast<V>(f(from(i)...));
  }
  template <class V, class... T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<V> to, View<const T>... from) const {
    to(i.y, i.x) = static_cast<V>(f(from(i.y, i.x)...));
  }
  template <class V, class... T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<V> to, View<const T>... from) const {
    to(i.z, i.y, i.x) = static_cast<V>(f(from(i.z, i.y, i.x)...));
  }
};
template <class F>
inline constexpr bool kOwnsData<TransformElements<F>> = kOwnsData<F>;

class TransformDeclaration {
 public:
  template <bool kNvcc, class G, class F, class V, class... T>
  PENSTOCK_HIDDEN static NodeRef Declare(G& graph, Name name, F& f, AccessOf<V, AccessMode::kWrite>& to,
                                         AccessOf<T, AccessMode::kRead>&... from) {
    static_assert(!kIsDeviceLambda<F>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(std::is_trivially_copyable_v<F> || kOwnsData<F>,
                  "penstock: the functor of a Transform goes to the device as bytes: it must be trivially copyable");
    constexpr bool kFits = std::is_invocable_r_v<V, const F&, const T&...>;
    static_assert(kFits,
                  "penstock: the functor of a Transform takes one element of each buffer that is read, and returns "
                  "what converts to the type of the result; its operator() is const");
    if (IsNull(f)) AlgorithmDeclaration::RefuseNull(graph, name, "functor");
    (CheckSameShape(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), "a Transform", from,
                    to),
     ...);
    (CheckInPlace(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), from, to, true), ...);
    if constexpr (kFits) {
      TransformElements<F> elements{std::move(f)};
      return AlgorithmDeclaration::AddParallelFor<kNvcc, kAnyRank>(
          graph, std::move(name), FindAccessed(graph.model(), to).extent, elements, to, from...);
    } else {
      __builtin_unreachable();  // does not compile
    }
  }
};

}  // namespace penstock::detail
