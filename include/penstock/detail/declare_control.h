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
#include "penstock/detail/host_device.h"
#include "penstock/detail/model.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/export.h"
#include "penstock/extent.h"

namespace penstock::detail {

// The code of a condition. `decision` is written when a graph is made in which a conditional node obeys it.
template <class F>
struct ConditionCode {
  Decision decision;
  F functor;

  template <class... A>
    requires std::is_convertible_v<std::invoke_result_t<const F&, const A&...>, int32_t>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> word, const A&... args) const {
    const auto value = static_cast<int32_t>(functor(args...));
    word(0) = value;
    Decide(decision, static_cast<uint32_t>(value));
  }
};

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
  template <bool kNvcc, class G, class F, class... A>
  PENSTOCK_HIDDEN static ControlId WithCondition(G& graph, const Name& name, ControlKind kind,
                                                 const Condition<F, A...>& when, int64_t max) {
    static_assert((kOnlyReads<A> && ...),
                  "penstock: a condition only reads; compute what it reads in a node before it");
    const SourceLine& at = name.source();
    const auto part = [&](const char* what) { return Name(what, at.file, at.line).In(name); };
    auto word = graph.template Buffer<int32_t>(part("word"), Extent(1));
    ConditionCode<F> code{.decision = {}, .functor = when.functor};
    const auto condition = std::apply(
        [&](auto... args) {
          auto to = Write(word);
          return graph.template AddParallelFor<kNvcc, 1>(part("condition"), Extent(1), code, to, args...);
        },
        when.args);
    ControlDecl decl{.name = graph.InScope(name), .kind = kind};
    decl.max = max;
    return AddControl(graph.sink(), std::move(decl), condition.index(), word.index());
  }

  template <class G>
  PENSTOCK_HIDDEN static ControlId Repeated(G& graph, const Name& name, const Dim& trips) {
    ControlDecl decl{.name = graph.InScope(name), .kind = ControlKind::kRepeat};
    decl.trips = trips;
    return AddControl(graph.sink(), std::move(decl), -1, -1);
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
};

}  // namespace penstock::detail
