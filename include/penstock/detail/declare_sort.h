// How Sort and SortPairs are declared: a Launch node that calls CUB, whose host code is a radix sort, and a Buffer of
// scratch for either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/detail/algorithm_code.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/detail/radix_sort.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/launch_context.h"

#if defined(__CUDACC__)
#include "penstock/detail/sort_on_cuda.h"
#endif

namespace penstock {

// Options of Sort and SortPairs.
struct SortOptions {
  bool descending = false;  // the greatest key first
};

namespace detail {

// Room for a row of `n` keys, and values, between passes, and for what CUB counts: 1 KiB for each tile of some thousand
// keys, and 16 KiB for all.
PENSTOCK_EXPORT int64_t SortScratchBytes(int64_t n, int64_t bytes_of_pair);
// The most elements that a row can have.
PENSTOCK_EXPORT int64_t MostInRow(const Model& model, const Extent& extent);

// Calls f for one row of the keys, and of the values if there are any, after the other.
template <class K, class V, class F, class... Values>
PENSTOCK_HIDDEN absl::Status ForEachSortedRow(F f, View<const K> from, View<K> to, Values... values) {
  for (int64_t z = 0; z < from.depth; ++z) {
    for (int64_t y = 0; y < from.height; ++y) {
      const auto at = [&](const auto& view) { return view.data + z * view.slice + y * view.pitch; };
      SortedRow<K, V> row{from.width, at(from), at(to), nullptr, nullptr, nullptr, nullptr};
      if constexpr (sizeof...(Values) == 2) std::tie(row.values_from, row.values_to) = std::tuple(at(values)...);
      absl::Status status = f(row);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// Spare values, and then spare keys, at the beginning of the scratch.
template <class K, class V>
struct SpareIn {
  V* values;
  K* keys;
  PENSTOCK_HIDDEN SpareIn(std::byte* scratch, int64_t n) : values(nullptr), keys(reinterpret_cast<K*>(scratch)) {
    if constexpr (!std::is_same_v<V, KeysAlone>) {
      constexpr auto kKeyAlign = static_cast<int64_t>(alignof(K));
      const int64_t bytes = (n * int64_t{sizeof(V)} + kKeyAlign - 1) / kKeyAlign * kKeyAlign;
      values = reinterpret_cast<V*>(scratch);
      keys = reinterpret_cast<K*>(scratch + bytes);
    }
  }
};

// The node's callable on CUDA devices.
template <bool kNvcc, class K, class V>
struct CallOfSort {
  bool descending;

  template <class... Values>
  PENSTOCK_HIDDEN absl::Status operator()([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] View<const K> from,
                                          [[maybe_unused]] View<K> to, [[maybe_unused]] View<std::byte> scratch,
                                          [[maybe_unused]] Values... values) const {
#if defined(__CUDACC__)
    const auto sort = [&](const SortedRow<K, V>& row) {
      return SortOnCuda<K, V>::Sort(launch, scratch, row, descending);
    };
    return ForEachSortedRow<K, V>(sort, from, to, values...);
#else
    return CompiledWithoutCuda()(launch);
#endif
  }
};

class SortDeclaration {
 public:
  template <bool kNvcc, class K>
  PENSTOCK_HIDDEN static NodeRef Keys(Graph& graph, Name&& name, AccessOf<K, AccessMode::kRead>& from,
                                      AccessOf<K, AccessMode::kWrite>& to, SortOptions options) {
    CheckShape(graph, name, from, to);
    CheckMemory(graph, name, from, to);
    const Extent extent = FindAccessed(graph.model(), from).extent;
    auto scratch = ScratchOf(graph, name, extent, sizeof(K));
    return Node<kNvcc, K, KeysAlone>(graph, std::move(name), options, from, to, scratch);
  }

  template <bool kNvcc, class K, class V>
  PENSTOCK_HIDDEN static NodeRef Pairs(Graph& graph, Name&& name, AccessOf<K, AccessMode::kRead>& keys,
                                       AccessOf<K, AccessMode::kWrite>& sorted_keys,
                                       AccessOf<V, AccessMode::kRead>& values,
                                       AccessOf<V, AccessMode::kWrite>& sorted_values, SortOptions options) {
    static_assert(sizeof(V) <= 64, "penstock: the values of a SortPairs have at most 64 bytes; sort their indices");
    CheckShape(graph, name, keys, sorted_keys);
    CheckShape(graph, name, keys, sorted_values);
    CheckShape(graph, name, values, sorted_values);
    for (const AccessTo& from : {AccessTo(keys), AccessTo(values)}) {
      for (const AccessTo& to : {AccessTo(sorted_keys), AccessTo(sorted_values)}) CheckMemory(graph, name, from, to);
    }
    CheckApart(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), sorted_keys,
               sorted_values);
    const Extent extent = FindAccessed(graph.model(), keys).extent;
    auto scratch = ScratchOf(graph, name, extent, sizeof(K) + sizeof(V));
    return Node<kNvcc, K, V>(graph, std::move(name), options, keys, sorted_keys, scratch, values, sorted_values);
  }

 private:
  PENSTOCK_HIDDEN static void CheckShape(const Graph& graph, const Name& name, const AccessTo& from,
                                         const AccessTo& to) {
    CheckSameShape(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), "a sort", from, to);
  }
  PENSTOCK_HIDDEN static void CheckMemory(const Graph& graph, const Name& name, const AccessTo& from,
                                          const AccessTo& to) {
    CheckInPlace(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), from, to, false);
  }
  PENSTOCK_HIDDEN static AccessOf<std::byte, AccessMode::kScratch> ScratchOf(Graph& graph, const Name& name,
                                                                             const Extent& extent, size_t pair) {
    const SourceLine& at = name.source();
    const int64_t bytes = SortScratchBytes(MostInRow(graph.model(), extent), static_cast<int64_t>(pair));
    return Scratch(graph.Buffer<std::byte>(Name("scratch", at.file, at.line).In(name), bytes));
  }

  template <bool kNvcc, class K, class V, class... A>
  PENSTOCK_HIDDEN static NodeRef Node(Graph& graph, Name&& name, SortOptions options, A&... args) {
    static_assert(kIsSortKey<K>, "penstock: the keys of a sort are numbers of at most 8 bytes");
    CallOfSort<kNvcc, K, V> call{options.descending};
    FallbackNode<ViewStoredT<A>...> node =
        AlgorithmDeclaration::Declare(graph, std::move(name), NodeKind::kLaunch, [&](auto& to) {
          to.Code(CodeOfLaunch<kNvcc, AlgorithmOf<SortDeclaration, K, V>>(
              &CallLaunch<CallOfSort<kNvcc, K, V>, ViewStoredT<A>...>));
          to.template Arguments<ViewStoredT<A>...>(args...);
          to.Callable(call);
        });
    return node.HostFallback([options](View<const K> from, View<K> to, View<std::byte> scratch, auto... values) {
      const auto sort = [&](SortedRow<K, V>& row) {
        const SpareIn<K, V> spare(scratch.data, row.n);
        row.spare = spare.keys;
        row.values_spare = spare.values;
        SortOnHost(row, options.descending);
        return absl::OkStatus();
      };
      return ForEachSortedRow<K, V>(sort, from, to, values...);
    });
  }
};

}  // namespace detail
}  // namespace penstock
