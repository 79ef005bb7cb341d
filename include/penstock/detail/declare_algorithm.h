// How functions beside Graph declare nodes: what they may use of one, checks that they share, and those of them that
// are one node, a ParallelFor over a CountOf and a Transform.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/count_of.h"
#include "penstock/detail/counted.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/explain_arguments.h"
#include "penstock/detail/host_device.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/node.h"
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
};
// Keep a mistake for Compile unless the count is one element in every run, both have one shape in every run, or there
// is room for all that `from` has. `what` is "a CountOf reads" or "a Transform". What is no access of this graph is
// told with the node.
PENSTOCK_EXPORT void CheckCount(const DeclarationSink& sink, const Name& node, const char* what, const AccessTo& count);
PENSTOCK_EXPORT void CheckSameShape(const DeclarationSink& sink, const Name& node, const char* what,
                                    const AccessTo& from, const AccessTo& to);
PENSTOCK_EXPORT void CheckRoom(const DeclarationSink& sink, const Name& node, const AccessTo& from, const AccessTo& to);

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
  template <class G>
  PENSTOCK_HIDDEN static void RefuseNull(G& graph, const Name& name, const char* what) {
    graph.RefuseNull(name, what);
  }
};

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
    if constexpr (kFits) {
      Counted<F, C> counted{std::move(f)};
      return AlgorithmDeclaration::AddParallelFor<kNvcc, 1>(graph, std::move(name), extent.max, counted, extent.count,
                                                            args...);
    } else {
      __builtin_unreachable();  // does not compile
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
