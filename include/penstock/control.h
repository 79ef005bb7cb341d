// Control: what decides while a graph runs which of its nodes run, and how often: If, Switch, While and Repeat.
//
//   graph.While("solve", ps::When(IsLarge{}, tolerance, ps::Read(residual)), {.max = 500}, [&](ps::Graph& body) {
//     body.ParallelFor("spmv", n, Spmv{}, ps::Read(a), ps::Read(p), ps::Write(q));   // "solve/spmv"
//     ...
//     body.Reduce("norm", ps::Read(r), ps::Write(residual));
//   });
//   graph.If("refit", ps::When(NeedsRefit{}, ps::Read(stat)), [&](ps::Graph& then) { ... });
//
// Bodies     are functions that are called once, while declaring, with the graph itself. What they declare belongs to
//            the construct and has its name before its own: "solve/spmv", "refit/then/fit", "refit/else/keep",
//            "phase/case 0/step". Everything that a graph can say can stand in a body, other constructs too, up to 64
//            levels deep. A buffer that is declared in a body is like any other, but no node outside may access it.
// Condition  is a functor over accesses and parameters, like that of a ParallelFor over one index that is left out. It
//            runs on the device: for If and Switch once, for While before each iteration. It only reads. That of a
//            While can tell how many iterations there were: Count.
// Outside    a construct is one node that accesses all that its bodies and its condition do, so nodes before and after
//            it are ordered by that. A Write in a body may not happen: elements that it would have written keep
//            what they had.
// Iterations follow each other: one begins when all nodes of the one before have ended, unless it is unrolled; then
//            nodes follow each other by their accesses. What one leaves in a buffer the next one finds there.
// Errors     in a body end the construct and the run, and name the node. Cancel, a deadline and Shutdown end a loop
//            before its next iteration. A loop that the device decides may run up to 16 short iterations more.
// Lowering   The device decides a construct if it holds nothing except kernels, fills, copies, Infallible or Inline
//            Host nodes, Launch nodes whose arguments no launch decides, and such constructs; otherwise the host
//            does. A Repeat of few nodes and a constant number of rounds is unrolled. Export refuses other constructs,
//            and steps that are declared again (graph_cache.h) refuse all.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <tuple>
#include <utility>

#include "penstock/access.h"
#include "penstock/detail/telling.h"
#include "penstock/export.h"

namespace penstock {

// What a construct decides by: see When.
template <class F, class... A>
struct Condition {
  F functor;
  std::tuple<A...> args;

  // The same condition of a While; each evaluation also writes into one element how many iterations have ended. So a
  // node in the body reads there which iteration it is in, from 0; a node after the loop reads how many there were; and
  // the condition itself may read it too. T is an integer of 32 bits, which stays at its greatest value, or of 64. What
  // a body writes there, the next evaluation overwrites. `to` names a buffer of one element, or an element of a buffer
  // or a State, as in Write(counts, Slice({i}, {1})).
  template <class T>
  PENSTOCK_HIDDEN auto Count(AccessOf<T, AccessMode::kWrite> to) const {
    return Told(detail::AlsoTelling(functor, detail::ToldCount<T>{std::move(to)}));
  }
  template <class T>
  PENSTOCK_HIDDEN auto Count(BufferHandle<T> to) const {
    return Count(Write(to));
  }
  // In the same way, whether the condition holds though WhileOptions::max ends the loop: 1, else 0. T is an integer, or
  // bool.
  template <class T>
  PENSTOCK_HIDDEN auto Capped(AccessOf<T, AccessMode::kWrite> to) const {
    return Told(detail::AlsoTelling(functor, detail::ToldCap<T>{std::move(to)}));
  }
  template <class T>
  PENSTOCK_HIDDEN auto Capped(BufferHandle<T> to) const {
    return Capped(Write(to));
  }

 private:
  template <class Tells>
  PENSTOCK_HIDDEN Condition<Tells, A...> Told(Tells tells) const {
    return {std::move(tells), args};
  }
};

// f(args...): a bool for If and While; for Switch the number of the body that runs, from 0. A number without a body
// runs none.
template <class F, class... A>
PENSTOCK_HIDDEN Condition<F, A...> When(F f, A... args) {
  return {f, {args...}};
}

// The ways in which a construct is decided.
//   kDevice  by the device, by conditional nodes of a CUDA graph: all that is in the construct must be as said above
//            under Lowering, and on one device
//   kHost    by the host: it waits for each condition, then submits a body, which may hold anything
//   kAuto    by the device where it can
enum class Lowering : uint8_t { kAuto, kHost, kDevice };

// Options of Graph::While.
struct WhileOptions {
  int64_t max =
      1'000'000'000;  // the most iterations, at least 0: after them the loop ends, whatever the condition says
  // About how many there will be, at least 0; no more than `max` count. What else can run is submitted after the loop
  // unless it takes longer. A Repeat counts as many as it has, or 10 if a parameter or a buffer says it.
  int64_t expected = 10;
};

}  // namespace penstock
