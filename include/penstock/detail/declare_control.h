// How Graph declares a construct: its condition as a ParallelFor over one index, and its bodies by calling their
// functions while the model has them open.
//
// Threads: single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/control.h"
#include "penstock/detail/decision.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/host_device.h"
#include "penstock/detail/model.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/detail/telling.h"
#include "penstock/export.h"
#include "penstock/extent.h"

namespace penstock::detail {

// The code of a condition has its decision at its beginning, which is written when a graph is made in which a
// conditional node, or a resident region, obeys it. Evaluate does what one thread of a kernel does, By DecideByGraph;
// all threads may then switch nodes.
template <class F>
struct ConditionCode {
  Decision decision;
  F functor;

  template <class... A>
    requires std::is_convertible_v<std::invoke_result_t<const F&, const A&...>, int32_t>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> word, const A&... args) const {
    Switch(decision, Evaluate<DecideByGraph>(word, args...));
  }
  template <class By, class... A>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Switching Evaluate(View<int32_t> word, const A&... args) const {
    const Progress progress = By::ProgressOf(decision);
    const auto value = static_cast<int32_t>(functor(args...));
    word(0) = value;
    return By::Decide(decision, progress, static_cast<uint32_t>(value));
  }
};

// The same of a condition that tells, and may read what it has counted.
template <class F, class... Told>
struct TellingCode {
  Decision decision;
  F functor;

  template <class... A>
    requires std::is_convertible_v<std::invoke_result_t<const F&, const A&...>, int32_t>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> word,
                                                       View<typename Told::value_type>... to, const A&... args) const {
    Switch(decision, Evaluate<DecideByGraph>(word, to..., args...));
  }
  template <class By, class... A>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Switching Evaluate(View<int32_t> word, View<typename Told::value_type>... to,
                                                          const A&... args) const {
    const Progress progress = By::ProgressOf(decision);
    const Evaluation at = EvaluationOf(decision, progress);
    (Told::Before(*to.data, at), ...);
    const auto value = static_cast<int32_t>(functor(args...));
    word(0) = value;
    (Told::After(*to.data, at, value != 0), ...);
    return By::Decide(decision, progress, static_cast<uint32_t>(value));
  }
};

// What decides a Repeat whose number of iterations is in a buffer. The word is that number, for the host.
template <class T>
struct TripsCode {
  static constexpr int32_t kMost = 1'000'000'000;
  Decision decision;

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> word, View<const T> trips) const {
    Switch(decision, Evaluate<DecideByGraph>(word, trips));
  }
  template <class By>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Switching Evaluate(View<int32_t> word, View<const T> trips) const {
    const T count = *trips.data;
    int32_t most = 0;
    if (count > 0) most = static_cast<uint64_t>(count) < uint64_t{kMost} ? static_cast<int32_t>(count) : kMost;
    word(0) = most;
    Decision enter = decision;
    enter.most = most;
    return By::Decide(enter, Progress(), 1);
  }
};

template <class F>
inline constexpr bool kTakesBlock<ConditionCode<F>> = true;
template <class F, class... Told>
inline constexpr bool kTakesBlock<TellingCode<F, Told...>> = true;
template <class T>
inline constexpr bool kTakesBlock<TripsCode<T>> = true;

#if defined(__CUDACC__)
template <class Code, class... A>
PENSTOCK_HIDDEN __device__ __forceinline__ void RunByBlock(const Code& code, const A&... args) {
  if (code.decision.switches == nullptr) {
    if (threadIdx.x == 0) (void)code.template Evaluate<DecideByGraph>(args...);
    return;
  }
  __shared__ Switching switching;
  if (threadIdx.x == 0) switching = code.template Evaluate<DecideByGraph>(args...);
  __syncthreads();
  if (switching.begin < switching.end) Switch(code.decision, switching, threadIdx.x, blockDim.x);
}
#endif

// The code of a condition, and the accesses of what it tells.
template <class F>
PENSTOCK_HIDDEN ConditionCode<F> CodeOf(const F& functor) {
  return {{}, functor};
}
template <class F, class... Told>
PENSTOCK_HIDDEN TellingCode<F, Told...> CodeOf(const Telling<F, Told...>& tells) {
  return {{}, tells.functor};
}
template <class F>
PENSTOCK_HIDDEN std::tuple<> ToldBy(const F& /*functor*/) {
  return {};
}
template <class F, class... Told>
PENSTOCK_HIDDEN auto ToldBy(const Telling<F, Told...>& tells) {
  return std::apply([](const auto&... told) { return std::tuple(told.to...); }, tells.told);
}

// The body that is open while this lives. A construct that is nested too deeply has no body, which is then not called.
class PENSTOCK_EXPORT OpenBody {
 public:
  OpenBody(const DeclarationSink& sink, ControlId of);
  OpenBody(const OpenBody&) = delete;
  OpenBody& operator=(const OpenBody&) = delete;
  ~OpenBody();
  bool is_open() const { return is_open_; }

 private:
  Model& model_;
  const BodyId outer_;
  bool is_open_ = false;
};

// Keeps a mistake for Compile unless what a construct counts by, or tells by, is one element in every run.
PENSTOCK_EXPORT void CheckOneElement(const DeclarationSink& sink, const Name& construct, const Extent& extent);

// Begins a construct. `condition`: the number of its node, or -1.
PENSTOCK_EXPORT ControlId AddControl(const DeclarationSink& sink, ControlDecl decl, int32_t condition, int32_t word);

// Whether an argument of a condition leaves memory as it is.
template <class A>
inline constexpr bool kOnlyReads = true;
template <class T, AccessMode M>
inline constexpr bool kOnlyReads<AccessOf<T, M>> = M == AccessMode::kRead;
template <class T, AccessMode M>
inline constexpr bool kOnlyReads<AllOf<T, M>> = M == AccessMode::kRead;

class ControlDeclaration {
 public:
  template <bool kNvcc, ControlKind kKind, class G, class F, class... A>
  PENSTOCK_HIDDEN static ControlId WithCondition(G& graph, const Name& name, const Condition<F, A...>& when,
                                                 const WhileOptions& options = {.max = 0}) {
    static_assert((kOnlyReads<A> && ...),
                  "penstock: a condition only reads; compute what it reads in a node before it");
    static_assert(kKind == ControlKind::kWhile || !kTells<F>,
                  "penstock: only the condition of a While tells its iterations, by Count and Capped");
    const auto told = ToldBy(when.functor);
    std::apply([&](const auto&... to) { (CheckAccess(graph, name, to), ...); }, told);
    ControlDecl decl{.name = graph.InScope(name), .kind = kKind};
    decl.max = options.max;
    decl.expected = options.expected;
    decl.tells = kTells<F>;
    return Decided<kNvcc>(graph, name, std::move(decl), CodeOf(when.functor), std::tuple_cat(told, when.args));
  }

  template <class G>
  PENSTOCK_HIDDEN static ControlId Repeated(G& graph, const Name& name, const Dim& trips) {
    ControlDecl decl{.name = graph.InScope(name), .kind = ControlKind::kRepeat};
    decl.trips = trips;
    return AddControl(graph.sink(), std::move(decl), -1, -1);
  }
  template <bool kNvcc, class G, class T>
  PENSTOCK_HIDDEN static ControlId Repeated(G& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& trips) {
    static_assert(std::is_integral_v<T>, "penstock: the number of iterations of a Repeat is an integer");
    CheckAccess(graph, name, trips);
    ControlDecl decl{.name = graph.InScope(name), .kind = ControlKind::kRepeat};
    return Decided<kNvcc>(graph, name, std::move(decl), TripsCode<T>{}, std::tuple(trips));
  }

  // `scope`: what the names in the body begin with.
  template <class G, class B>
  PENSTOCK_HIDDEN static void Body(G& graph, ControlId of, const Name& scope, B& body) {
    static_assert(std::is_invocable_v<B&, G&>, "penstock: a body is a function of a ps::Graph&");
    const OpenBody open(graph.sink(), of);
    if (!open.is_open()) return;
    const auto names = graph.Scope(scope);
    body(graph);
  }

 private:
  template <class G, class T, AccessMode M>
  PENSTOCK_HIDDEN static void CheckAccess(G& graph, const Name& name, const AccessOf<T, M>& access) {
    CheckOneElement(graph.sink(), graph.InScope(name), FindAccessed(graph.model(), access).extent);
  }

  // A construct with the node of its condition. `given`: to the code, after the word.
  template <bool kNvcc, class G, class Code, class... A>
  PENSTOCK_HIDDEN static ControlId Decided(G& graph, const Name& name, ControlDecl decl, Code code,
                                           const std::tuple<A...>& given) {
    const SourceLine& at = name.source();
    const auto part = [&](const char* what) { return Name(what, at.file, at.line).In(name); };
    const auto word = graph.template Buffer<int32_t>(part("word"), Extent(1));
    const auto condition = std::apply(
        [&](auto... args) {
          auto to = Write(word);
          return graph.template AddParallelFor<kNvcc, 1>(part("condition"), Extent(1), code, to, args...);
        },
        given);
    return AddControl(graph.sink(), std::move(decl), condition.index(), word.index());
  }
};

}  // namespace penstock::detail
