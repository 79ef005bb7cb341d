// How Scan declares its nodes: a node for each level up, one for each level down, and the buffers between them
// (scan_tree.h); or, if the order does not matter, the two nodes of one pass (scan_pass.h).
//
// Each is declared as a user would declare it, so plans, edges, memory, checks and steps that are declared again know
// nothing of a Scan but the level of a node.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/scan_leaf.h"
#include "penstock/detail/scan_pass.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"
#include "penstock/scan_options.h"

namespace penstock::detail {

// In place of an initial value.
struct NoValue {};

// Keeps the mistake that a Scan begins with no value that anybody has named.
PENSTOCK_EXPORT void RefuseNoInitial(const DeclarationSink& sink, const Name& node);
// The most rows and the most elements of a row that an extent can have.
struct MostRows {
  int64_t rows, width;
};
PENSTOCK_EXPORT MostRows MostRowsOf(const Model& model, const Extent& extent);

// The buffers and nodes after the first have the name and the line of the first, and more.
inline Name LevelName(const Name& of, const char* what, int level) {
  const SourceLine& at = of.source();
  return (level == 1 ? Name(what, at.file, at.line) : Name(what, level, at.file, at.line)).In(of);
}

// The levels of one Scan of values of type V, after the nodes of its elements.
template <bool kNvcc, class Op, class V, class G, class Count>
class ScanLevels {
 public:
  static constexpr bool kHasCount = !std::is_same_v<Count, NoCount>;

  PENSTOCK_HIDDEN ScanLevels(G& graph, const Name& name, const Extent& extent, const Count& count, const Op& op,
                             const V& initial, bool has_initial)
      : graph_(graph),
        name_(name),
        extent_(extent),
        most_(MostRowsOf(graph.model(), extent)),
        count_(count),
        op_(op),
        initial_(initial),
        has_initial_(has_initial) {}

  // Whether a row has several leaves in some run.
  bool has_several() const { return most_.width > kLeaf; }

  PENSTOCK_HIDDEN BufferHandle<V> Values(const char* what, int level) {
    return graph_.template Buffer<V>(LevelName(name_, what, level),
                                     Extent(most_.rows * ValuesAfter(most_.width, level)));
  }
  // The states of the tiles of a pass, of which there are at most as many as leaves, and how many have been taken.
  PENSTOCK_HIDDEN BufferHandle<TileState<V>> States() {
    return graph_.template Buffer<TileState<V>>(LevelName(name_, "tiles", 1),
                                                Extent(most_.rows * ValuesAfter(most_.width, 1) + 1));
  }
  template <class F, class... A>
  PENSTOCK_HIDDEN NodeRef Add(const Name& name, F f, A... args) {
    if constexpr (kHasCount) {
      return AlgorithmDeclaration::AddParallelFor<kNvcc, 3>(graph_, name, extent_, f, count_.count, args...);
    } else {
      return AlgorithmDeclaration::AddParallelFor<kNvcc, 3>(graph_, name, extent_, f, args...);
    }
  }
  // What comes before each leaf of the elements, of which `totals` has what they give.
  PENSTOCK_HIDDEN BufferHandle<V> Before(BufferHandle<V> totals, int level = 2) {
    BufferHandle<V> before = Values("before", level - 1);
    const LeafPrefixes<Op, V, false, kHasCount, false> in_leaf(level, op_, initial_, has_initial_, false, true);
    if (ValuesAfter(most_.width, level - 1) <= kLeaf) {
      Add(LevelName(name_, "scan", level), in_leaf, Read(totals), WriteSome(before));
      return before;
    }
    const BufferHandle<V> above = Values("partials", level);
    Add(LevelName(name_, "level", level), LeafTotals<Op, V, false, kHasCount>(level, op_, initial_), Read(totals),
        WriteSome(above));
    const BufferHandle<V> carried = Before(above, level + 1);
    Add(LevelName(name_, "scan", level),
        LeafPrefixes<Op, V, false, kHasCount, true>(level, op_, initial_, has_initial_, false, true), Read(carried),
        Read(totals), WriteSome(before));
    return before;
  }

 private:
  G& graph_;
  const Name& name_;
  const Extent& extent_;
  const MostRows most_;
  const Count& count_;
  const Op& op_;
  const V& initial_;
  const bool has_initial_;
};

class ScanDeclaration {
 public:
  template <bool kNvcc, class G, class Count, class T, class V, class Op, class Initial>
  PENSTOCK_HIDDEN static NodeSequence Declare(G& graph, const Name& name, const Count& count,
                                              const AccessOf<T, AccessMode::kRead>& from,
                                              const AccessOf<V, AccessMode::kWrite>& to, const Op& op,
                                              const Initial& initial, const ScanOptions& options) {
    constexpr bool kFits = Check<T, V, Op>();
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    if (IsNull(op)) AlgorithmDeclaration::RefuseNull(graph, name, "operation");
    CheckSameShape(sink, node, "a Scan", from, to);
    CheckInPlace(sink, node, from, to, true);
    CheckCountOf(sink, node, count, from, to);
    const bool exclusive = options.kind == ScanKind::kExclusive;
    if constexpr (!kFits) {
      __builtin_unreachable();  // does not compile
    } else if constexpr (std::is_same_v<Initial, NoValue>) {
      constexpr bool kHasIdentity = requires { Op::template Identity<V>(); };
      if (exclusive && !kHasIdentity) RefuseNoInitial(sink, node);
      return InOrder<Op, V>(options,
                            Nodes<kNvcc>(graph, name, count, from, to, op, InitialOf<Op, V>(), exclusive, options));
    } else {
      return InOrder<Op, V>(options, Nodes<kNvcc>(graph, name, count, from, to, op, initial, true, options));
    }
  }

 private:
  // Marks nodes for which any order will do.
  template <class Op, class V>
  PENSTOCK_HIDDEN static NodeSequence InOrder(const ScanOptions& options, const NodeSequence& nodes) {
    return options.order == CombineOrder::kAny ? AlgorithmDeclaration::InAnyOrder<Op, V>(nodes) : nodes;
  }
  // An inclusive Scan has none, but has to put something where there are no values.
  template <class Op, class V>
  PENSTOCK_HIDDEN static constexpr V InitialOf() {
    if constexpr (requires { Op::template Identity<V>(); }) {
      return Op::template Identity<V>();
    } else {
      static_assert(std::is_default_constructible_v<V>,
                    "penstock: name the initial value of the Scan after its operation");
      return V{};
    }
  }
  template <class T, class V, class Op>
  PENSTOCK_HIDDEN static constexpr bool Check() {
    static_assert(sizeof(V) <= 64, "penstock: the result of a Scan has at most 64 bytes for each element");
    static_assert(!kIsDeviceLambda<Op>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(
        std::is_trivially_copyable_v<Op>,
        "penstock: the operation of a Scan is trivially copyable; nvcc's lambdas that capture are not: make it "
        "a struct");
    constexpr bool kConverts = std::is_convertible_v<T, V>;
    static_assert(kConverts, "penstock: the elements of a Scan do not convert to the type of the result");
    constexpr bool kCombines = std::is_invocable_r_v<V, const Op&, V, V>;
    static_assert(kCombines,
                  "penstock: the operation of a Scan takes two values of the result's type and returns one; its "
                  "operator() is const");
    return kConverts && kCombines;
  }

  template <bool kNvcc, class G, class Count, class T, class V, class Op>
  PENSTOCK_HIDDEN static NodeSequence Nodes(G& graph, const Name& name, const Count& count,
                                            const AccessOf<T, AccessMode::kRead>& from,
                                            const AccessOf<V, AccessMode::kWrite>& to, const Op& op, const V& initial,
                                            bool has_initial, const ScanOptions& options) {
    const Extent extent = FindAccessed(graph.model(), from).extent;
    ScanLevels<kNvcc, Op, V, G, Count> levels(graph, name, extent, count, op, initial, has_initial);
    constexpr bool kHasCount = ScanLevels<kNvcc, Op, V, G, Count>::kHasCount;
    const bool inclusive = options.kind == ScanKind::kInclusive;
    const auto written = [&] {
      if constexpr (kHasCount) return SomeOf(to);
      else return to;
    }();
    const LeafTotals<Op, V, true, kHasCount> leaf_totals(1, op, initial);
    if (!levels.has_several()) {
      const LeafPrefixes<Op, V, true, kHasCount, false> leaf(1, op, initial, has_initial, inclusive, false);
      const NodeRef only = levels.Add(name, leaf, from, written);
      return {only, only};
    }
    if constexpr (kFitsOnePass<V>) {
      if (!kOrderMatters<Op, V> || options.order == CombineOrder::kAny) {
        const BufferHandle<TileState<V>> states = levels.States();
        const PassBegin<LeafTotals<Op, V, true, kHasCount>, kHasCount> begin(leaf_totals);
        const NodeRef first = levels.Add(name, begin, from, WriteSome(states));
        const ScanPass<Op, V, kHasCount> pass(op, initial, has_initial, inclusive);
        return {first, levels.Add(LevelName(name, "scan", 1), pass, ReadWrite(states), from, written)};
      }
    }
    if constexpr (kFitsOnePass<V> && !kOrderMatters<Op, V>) {
      __builtin_unreachable();  // it took one pass
    } else {
      const BufferHandle<V> totals = levels.Values("partials", 1);
      const NodeRef first = levels.Add(name, leaf_totals, from, WriteSome(totals));
      const BufferHandle<V> before = levels.Before(totals);
      const LeafPrefixes<Op, V, true, kHasCount, true> leaf(1, op, initial, has_initial, inclusive, true);
      return {first, levels.Add(LevelName(name, "scan", 1), leaf, Read(before), from, written)};
    }
  }
};

}  // namespace penstock::detail
