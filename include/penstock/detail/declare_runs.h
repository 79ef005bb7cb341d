// How ReduceByKey declares its nodes: one that combines the elements of each leaf, the levels of a Scan of these, and
// one that writes what each run gives; for one leaf the last of them only.
//
// Threads: single-threaded.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_scan.h"
#include "penstock/detail/runs_leaf.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"

namespace penstock::detail {

// Keeps a mistake for Compile unless there is a value for each key.
PENSTOCK_EXPORT void CheckPairs(const DeclarationSink& sink, const Name& node, const AccessTo& keys,
                                const AccessTo& values);

// The accesses of a ReduceByKey.
template <class K, class T, class U, class V, class C>
struct RunAccesses {
  const AccessOf<K, AccessMode::kRead>& keys;
  const AccessOf<T, AccessMode::kRead>& values;
  const AccessOf<U, AccessMode::kWrite>& unique;
  const AccessOf<V, AccessMode::kWrite>& totals;
  const AccessOf<C, AccessMode::kWrite>& runs;
};

class RunsDeclaration {
 public:
  template <bool kNvcc, class G, class Count, class K, class T, class U, class V, class C, class Op>
  PENSTOCK_HIDDEN static NodeSequence Declare(G& graph, const Name& name, const Count& of,
                                              const RunAccesses<K, T, U, V, C>& to, const Op& op) {
    constexpr bool kFits = Check<K, T, U, V, C, Op>();
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    if (IsNull(op)) AlgorithmDeclaration::RefuseNull(graph, name, "operation");
    CheckPairs(sink, node, to.keys, to.values);
    CheckRoom(sink, node, "each may be a run of its own", to.keys, to.unique);
    CheckRoom(sink, node, "each may be a run of its own", to.keys, to.totals);
    CheckCount(sink, node, "a ReduceByKey writes", to.runs);
    const AccessTo reads[] = {to.keys, to.values}, writes[] = {to.unique, to.totals, to.runs};
    for (const AccessTo& read : reads) {
      for (const AccessTo& written : writes) CheckInPlace(sink, node, read, written, false);
    }
    CheckApart(sink, node, to.unique, to.totals);
    CheckApart(sink, node, to.unique, to.runs);
    CheckApart(sink, node, to.totals, to.runs);
    CheckMost(sink, node, "the type of its count", to.keys, static_cast<uint64_t>(std::numeric_limits<C>::max()));
    CheckMost(sink, node, "a ReduceByKey", to.keys, static_cast<uint64_t>(kMostOfRuns));
    CheckCountOf(sink, node, of, to.keys, to.unique, to.totals, to.runs);
    if constexpr (kFits) return Nodes<kNvcc>(graph, name, of, to, op);
    else __builtin_unreachable();  // does not compile
  }

 private:
  template <class K, class T, class U, class V, class C, class Op>
  PENSTOCK_HIDDEN static constexpr bool Check() {
    static_assert(std::integral<C> && !std::is_same_v<C, bool>, "penstock: the count of a ReduceByKey is one integer");
    static_assert(sizeof(V) <= 48, "penstock: a total of a ReduceByKey has at most 48 bytes");
    static_assert(std::is_default_constructible_v<V>, "penstock: the totals of a ReduceByKey have a default value");
    static_assert(!kIsDeviceLambda<Op>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(
        std::is_trivially_copyable_v<Op>,
        "penstock: the operation of a ReduceByKey is trivially copyable; nvcc's lambdas that capture are not: "
        "make it a struct");
    constexpr bool kEqual = requires(const K& a, const K& b) { static_cast<bool>(a == b); };
    static_assert(kEqual, "penstock: the keys of a ReduceByKey have an operator==");
    constexpr bool kConverts = std::is_convertible_v<K, U> && std::is_convertible_v<T, V>;
    static_assert(kConverts, "penstock: the keys or the values of a ReduceByKey do not convert to the results' types");
    constexpr bool kCombines = std::is_invocable_r_v<V, const Op&, V, V>;
    static_assert(kCombines,
                  "penstock: the operation of a ReduceByKey takes two values of the totals' type and returns one; its "
                  "operator() is const");
    return kEqual && kConverts && kCombines;
  }

  template <bool kNvcc, class G, class Count, class K, class T, class U, class V, class C, class Op>
  PENSTOCK_HIDDEN static NodeSequence Nodes(G& graph, const Name& name, const Count& of,
                                            const RunAccesses<K, T, U, V, C>& to, const Op& op) {
    const Extent extent = FindAccessed(graph.model(), to.keys).extent;
    const RunOp<Op, V> run_op{op};
    const RunSum<V> none{};
    using Levels = ScanLevels<kNvcc, RunOp<Op, V>, RunSum<V>, G, Count>;
    constexpr bool kHasCount = Levels::kHasCount;
    Levels levels(graph, name, extent, of, run_op, none, false);
    const auto unique = SomeOf(to.unique);
    const auto totals = SomeOf(to.totals);
    if (!levels.has_several()) {
      const RunPrefixes<Op, V, kHasCount, false> leaf(run_op, none);
      const NodeRef only = levels.Add(name, leaf, to.keys, to.values, unique, totals, to.runs);
      return {only, only};
    }
    const BufferHandle<RunSum<V>> partials = levels.Values("partials", 1);
    const RunTotals<Op, V, kHasCount> up(run_op, none);
    const NodeRef first = levels.Add(name, up, to.keys, to.values, WriteSome(partials));
    const BufferHandle<RunSum<V>> before = levels.Before(partials);
    const RunPrefixes<Op, V, kHasCount, true> down(run_op, none);
    return {first,
            levels.Add(LevelName(name, "scan", 1), down, Read(before), to.keys, to.values, unique, totals, to.runs)};
  }
};

}  // namespace penstock::detail
