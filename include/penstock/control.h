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
//            runs on the device: for If and Switch once, for While before each iteration. It only reads.
// Outside    a construct is one node that accesses all that its bodies and its condition do, so nodes before and after
//            it are ordered by that. A Write in a body may not happen: elements that it would have written keep
//            what they had.
// Iterations follow each other: one begins when all nodes of the one before have ended, unless it is unrolled; then
//            nodes follow each other by their accesses. What one leaves in a buffer the next one finds there.
// Errors     in a body end the construct and the run, and name the node. Cancel, a deadline and Shutdown end a loop
//            before its next iteration.
// Lowering   The device decides what a construct runs if all that is in it runs there; otherwise the host does. A
//            Repeat of few nodes and a constant number of rounds is unrolled. Export refuses other constructs, and
//            steps that are declared again (graph_cache.h) refuse all.
//
// Threads: as Graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <tuple>

#include "penstock/export.h"

namespace penstock {

// What a construct decides by: see When.
template <class F, class... A>
struct Condition {
  F functor;
  std::tuple<A...> args;
};

// f(args...): a bool for If and While; for Switch the number of the body that runs, from 0. A number without a body
// runs none.
template <class F, class... A>
PENSTOCK_HIDDEN Condition<F, A...> When(F f, A... args) {
  return {f, {args...}};
}

// The ways in which a construct is decided.
//   kDevice  by the device, by conditional nodes of a CUDA graph, without the host: all that is in the construct must
//   be
//            kernels, fills, copies and constructs on one device
//   kHost    by the host: it waits for each condition, then submits a body, which may hold anything
//   kAuto    by the device where it can
enum class Lowering : uint8_t { kAuto, kHost, kDevice };

// Options of Graph::While.
struct WhileOptions {
  int64_t max =
      1'000'000'000;  // the most iterations, at least 0: after them the loop ends, whatever the condition says
};

}  // namespace penstock
