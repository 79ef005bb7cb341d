// How Select declares its nodes: one that begins the pass and one that writes what is kept (select_pass.h); for one
// leaf the last of them only.
//
// Threads: single-threaded.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_scan.h"
#include "penstock/detail/select_pass.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"

namespace penstock::detail {

class SelectDeclaration {
 public:
  template <bool kNvcc, class G, class Count, class T, class V, class C, class F>
  PENSTOCK_HIDDEN static NodeSequence Declare(G& graph, const Name& name, const Count& of,
                                              const AccessOf<T, AccessMode::kRead>& from,
                                              const AccessOf<V, AccessMode::kWrite>& to,
                                              const AccessOf<C, AccessMode::kWrite>& count, const F& keep) {
    constexpr bool kFits = Check<T, V, C, F>();
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    if (IsNull(keep)) AlgorithmDeclaration::RefuseNull(graph, name, "predicate");
    CheckRoom(sink, node, "a Select may keep all", from, to);
    CheckInPlace(sink, node, from, to, false);
    CheckCount(sink, node, "a Select writes", count);
    CheckInPlace(sink, node, from, count, false);
    CheckApart(sink, node, to, count);
    CheckMost(sink, node, "the type of its count", from, static_cast<uint64_t>(std::numeric_limits<C>::max()));
    CheckCountOf(sink, node, of, from, to, count);
    if constexpr (kFits) return Nodes<kNvcc>(graph, name, of, from, to, count, keep);
    else __builtin_unreachable();  // does not compile
  }

 private:
  template <class T, class V, class C, class F>
  PENSTOCK_HIDDEN static constexpr bool Check() {
    static_assert(std::integral<C> && !std::is_same_v<C, bool>, "penstock: the count of a Select is one integer");
    static_assert(!kIsDeviceLambda<F>, "a __device__ lambda has no host code; make it __host__ __device__");
    static_assert(
        std::is_trivially_copyable_v<F>,
        "penstock: the predicate of a Select is trivially copyable; nvcc's lambdas that capture are not: make "
        "it a struct");
    constexpr bool kConverts = std::is_convertible_v<T, V>;
    static_assert(kConverts, "penstock: the elements of a Select do not convert to the type of the result");
    constexpr bool kDecides = std::is_invocable_r_v<bool, const F&, const T&>;
    static_assert(kDecides,
                  "penstock: the predicate of a Select takes one element and returns a bool; its operator() is const");
    return kConverts && kDecides;
  }

  template <bool kNvcc, class G, class Count, class T, class V, class C, class F>
  PENSTOCK_HIDDEN static NodeSequence Nodes(G& graph, const Name& name, const Count& of,
                                            const AccessOf<T, AccessMode::kRead>& from,
                                            const AccessOf<V, AccessMode::kWrite>& to,
                                            const AccessOf<C, AccessMode::kWrite>& count, const F& keep) {
    const Extent extent = FindAccessed(graph.model(), from).extent;
    constexpr bool kHasCount = !std::is_same_v<Count, NoCount>;
    const AddCounts add;
    const TileCount none{0};
    ScanLevels<kNvcc, AddCounts, TileCount, G, Count> levels(graph, name, extent, of, add, none, true);
    const auto some = SomeOf(to);
    if (!levels.has_several()) {
      const NodeRef only = levels.Add(name, SelectPass<F, T, V, kHasCount, false>(keep), from, some, count);
      return {only, only};
    }
    const BufferHandle<TileState<TileCount>> states = levels.States();
    const NodeRef first = levels.Add(
        name, PassBegin<LeafCounts<F, kHasCount>, kHasCount>(LeafCounts<F, kHasCount>(keep)), from, WriteSome(states));
    const NodeRef last = levels.Add(LevelName(name, "scan", 1), SelectPass<F, T, V, kHasCount, true>(keep),
                                    ReadWrite(states), from, some, count);
    return {first, last};
  }
};

}  // namespace penstock::detail
