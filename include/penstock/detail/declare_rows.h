// How ReduceRows declares its nodes: one for each level of the longest row that there may be, and a buffer between two.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/declare_scan.h"
#include "penstock/detail/rows_leaf.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"

namespace penstock::detail {

// Keeps a mistake for Compile unless what is read has rows, and what is written an element for each of them.
PENSTOCK_EXPORT void CheckRows(const DeclarationSink& sink, const Name& node, const AccessTo& from, const AccessTo& to);

class RowsDeclaration {
 public:
  template <bool kNvcc, class G, class T, class V, class Op>
  PENSTOCK_HIDDEN static NodeSequence Declare(G& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                              const AccessOf<V, AccessMode::kWrite>& to, const Op& op,
                                              const V& identity) {
    constexpr bool kFits = Check<T, V, Op>();
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    if (IsNull(op)) AlgorithmDeclaration::RefuseNull(graph, name, "operation");
    CheckRows(sink, node, from, to);
    CheckInPlace(sink, node, from, to, false);
    if constexpr (kFits) return Levels<kNvcc>(graph, name, from, to, op, identity);
    else __builtin_unreachable();  // does not compile
  }

 private:
  template <class T, class V, class Op>
  PENSTOCK_HIDDEN static constexpr bool Check() {
    static_assert(sizeof(V) <= 64, "penstock: the result of a ReduceRows has at most 64 bytes for each row");
    static_assert(!kIsDeviceLambda<Op>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(std::is_trivially_copyable_v<Op>,
                  "penstock: the operation of a ReduceRows is trivially copyable; nvcc's lambdas that capture are not: "
                  "make it a struct");
    constexpr bool kConverts = std::is_convertible_v<T, V>;
    static_assert(kConverts, "penstock: the elements of a ReduceRows do not convert to the type of the result");
    constexpr bool kCombines = std::is_invocable_r_v<V, const Op&, V, V>;
    static_assert(kCombines,
                  "penstock: the operation of a ReduceRows takes two values of the result's type and returns one; its "
                  "operator() is const");
    return kConverts && kCombines;
  }

  template <bool kNvcc, class G, class T, class V, class Op>
  PENSTOCK_HIDDEN static NodeSequence Levels(G& graph, const Name& name, const AccessOf<T, AccessMode::kRead>& from,
                                             const AccessOf<V, AccessMode::kWrite>& to, const Op& op,
                                             const V& identity) {
    const Extent extent = FindAccessed(graph.model(), from).extent;
    const MostRows most = MostRowsOf(graph.model(), extent);
    const auto add = [&](const Name& level, auto leaf, auto read, auto written) {
      return AlgorithmDeclaration::AddParallelFor<kNvcc, 3>(graph, level, extent, leaf, read, written);
    };
    if constexpr (sizeof(T) >= 2 && sizeof(T) <= 8) {
      constexpr int64_t kLeast = 8, kMost = 256;  // of the rows that are loaded as packs (RowsLeaf::PutPacks)
      if (most.width >= kLeast && most.width <= kMost && (most.width & (most.width - 1)) == 0) {
        const NodeRef only = add(name, RowsLeaf<Op, V, true, true, true>(op, identity, 1), from, to);
        return {only, only};
      }
    }
    if (most.width <= kLeaf) {
      const NodeRef only = add(name, RowsLeaf<Op, V, true, true>(op, identity, 1), from, to);
      return {only, only};
    }
    const auto values_after = [&](int level) {
      return graph.template Buffer<V>(LevelName(name, "partials", level),
                                      Extent(most.rows * ValuesAfter(most.width, level)));
    };
    BufferHandle<V> values = values_after(1);
    const NodeRef first = add(name, RowsLeaf<Op, V, true, false>(op, identity, 1), from, WriteSome(values));
    for (int level = 2;; ++level) {
      const Name part = LevelName(name, "level", level);
      if (ValuesAfter(most.width, level) == 1) {
        return {first, add(part, RowsLeaf<Op, V, false, true>(op, identity, level), Read(values), to)};
      }
      const BufferHandle<V> next = values_after(level);
      add(part, RowsLeaf<Op, V, false, false>(op, identity, level), Read(values), WriteSome(next));
      values = next;
    }
  }
};

}  // namespace penstock::detail
