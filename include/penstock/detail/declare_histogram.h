// How Histogram declares its nodes: a Fill of zeros, and a Kernel that counts, with host code.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <type_traits>

#include "penstock/detail/algorithm_code.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/histogram_bins.h"
#include "penstock/export.h"
#include "penstock/node_sequence.h"

namespace penstock::detail {

// Keeps a mistake for Compile unless the counts have one dimension.
PENSTOCK_EXPORT void CheckCounts(const DeclarationSink& sink, const Name& node, const AccessTo& counts);

class HistogramDeclaration {
 public:
  // `count`: none, or a CountedExtent.
  template <bool kNvcc, class G, class Count, class T, class C, class F>
  PENSTOCK_HIDDEN static NodeSequence Declare(G& graph, const Name& name, const Count& count,
                                              const AccessOf<T, AccessMode::kRead>& from,
                                              const AccessOf<C, AccessMode::kWrite>& counts, const F& bin) {
    constexpr bool kFits = Check<T, C, F>();
    const DeclarationSink sink = AlgorithmDeclaration::Sink(graph);
    const Name node = AlgorithmDeclaration::InScope(graph, name);
    CheckCounts(sink, node, counts);
    CheckInPlace(sink, node, from, counts, false);
    CheckCountOf(sink, node, count, from, counts);
    if constexpr (!kFits) {
      __builtin_unreachable();  // does not compile
    } else if constexpr (std::is_same_v<Count, NoCount>) {
      return Nodes<kNvcc>(graph, name, bin, from, counts);
    } else {
      return Nodes<kNvcc>(graph, name, bin, from, counts, count.count);
    }
  }

 private:
  template <bool kNvcc, class G, class T, class C, class F, class... N>
  PENSTOCK_HIDDEN static NodeSequence Nodes(G& graph, const Name& name, const F& bin,
                                            const AccessOf<T, AccessMode::kRead>& from,
                                            const AccessOf<C, AccessMode::kWrite>& counts,
                                            const AccessOf<N, AccessMode::kRead>&... count) {
    const SourceLine& at = name.source();
    const NodeRef zero = graph.Fill(Name("zero", at.file, at.line).In(name), counts, C{0});
    const int64_t most = MostElements(graph.model(), FindAccessed(graph.model(), from).extent);
    const AccessOf<C, AccessMode::kReadWrite> both{counts.buffer, counts.box, counts.unordered, counts.state};
    FallbackNode<View<const T>, View<C>, F, View<const N>...> counted =
        AlgorithmDeclaration::Declare(graph, name, NodeKind::kKernel, [&](auto& to) {
          to.Code(
              CodeOfKernel<kNvcc, AlgorithmOf<HistogramDeclaration, T, C, F, N...>>(&CountBins<kNvcc, T, C, F, N...>));
          to.Shape(ShapeOfHistogram(most));
          to.template Arguments<View<const T>, View<C>, F, View<const N>...>(from, both, bin, count...);
        });
    // After the zeros, also where the counts are Unordered.
    return {zero, counted.HostFallback(&CountBinsOnHost<T, C, F, N...>).After(zero)};
  }
  template <class T, class C, class F>
  PENSTOCK_HIDDEN static constexpr bool Check() {
    static_assert(std::is_integral_v<C> && (sizeof(C) == 4 || sizeof(C) == 8),
                  "penstock: the counts of a Histogram are integers of 4 or 8 bytes");
    static_assert(std::is_trivially_copyable_v<F>, "penstock: the functor of a Histogram must be trivially copyable");
    constexpr bool kCalled = std::is_invocable_v<const F&, const T&>;
    static_assert(kCalled, "penstock: the functor of a Histogram takes an element; its operator() is const");
    if constexpr (kCalled) {
      constexpr bool kGivesBin = std::is_integral_v<std::decay_t<std::invoke_result_t<const F&, const T&>>>;
      static_assert(kGivesBin, "penstock: the functor of a Histogram returns the number of a bin, an integer");
      return kGivesBin;
    }
    return false;
  }
};

}  // namespace penstock::detail
