// How ArgMin and ArgMax are declared: as a Reduce of the elements with their indices.
//
// Threads: single-threaded.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "penstock/access.h"
#include "penstock/detail/declare_algorithm.h"
#include "penstock/detail/declare_counted_reduce.h"
#include "penstock/detail/declare_reduce.h"
#include "penstock/export.h"
#include "penstock/indexed.h"
#include "penstock/reduce.h"
#include "penstock/view.h"

namespace penstock::detail {

// An element with its index, by its number or by its place in a box, as ElementAt and ElementOfRows.
template <class T>
struct IndexedAt {
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Indexed<T> operator()(int64_t i, View<const T> from) const {
    return {from(i), i};
  }
};
template <class T>
struct IndexedOfRows {
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Indexed<T> operator()(Index3 i, View<const T> from) const {
    return {from(i.z, i.y, i.x), (i.z * from.height + i.y) * from.width + i.x};
  }
};
template <class T>
inline constexpr bool kTakesAnyExtent<IndexedAt<T>> = true;
template <class T>
inline constexpr bool kTakesAnyExtent<IndexedOfRows<T>> = true;

// The one that Min or Max chooses, and the left one of equals. What is on the left has the smaller index.
template <class Extreme>
struct FirstExtreme {
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Indexed<T> operator()(const Indexed<T>& a, const Indexed<T>& b) const {
    if (IsNaN(a.value)) return a;
    const bool is_beyond = std::is_same_v<Extreme, Min> ? b.value < a.value : a.value < b.value;
    return is_beyond || IsNaN(b.value) ? b : a;
  }
};
template <class Extreme, class T>
inline constexpr bool kIsRounded<FirstExtreme<Extreme>, Indexed<T>> = true;  // it chooses, and computes nothing

class ArgDeclaration {
 public:
  template <bool kNvcc, class Extreme, class G, class Count, class T, class R>
  PENSTOCK_HIDDEN static ReduceNode Declare(G& graph, const Name& name, const Count& count,
                                            AccessOf<T, AccessMode::kRead> from, AccessOf<R, AccessMode::kWrite> to) {
    static_assert(
        std::is_same_v<R, int32_t> || std::is_same_v<R, int64_t> || std::is_same_v<R, Indexed<T>>,
        "penstock: the result of an ArgMin or ArgMax is an int32_t, an int64_t or an Indexed of the elements");
    static_assert(sizeof(T) <= 64, "penstock: the elements of an ArgMin or ArgMax have at most 64 bytes");
    constexpr bool kFits = requires(const T& a, const T& b) { static_cast<bool>(a < b); };
    static_assert(kFits, "penstock: the elements of an ArgMin or ArgMax have an operator<");
    if constexpr (std::integral<R>) {
      CheckMost(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), "the type of its index",
                from, static_cast<uint64_t>(std::numeric_limits<R>::max()) + 1);
    }
    if constexpr (kFits) return Nodes<kNvcc, Extreme>(graph, name, count, from, to);
    else __builtin_unreachable();  // does not compile
  }

 private:
  template <bool kNvcc, class Extreme, class G, class Count, class T, class R>
  PENSTOCK_HIDDEN static ReduceNode Nodes(G& graph, const Name& name, const Count& count,
                                          AccessOf<T, AccessMode::kRead>& from, AccessOf<R, AccessMode::kWrite>& to) {
    const FirstExtreme<Extreme> op;
    const Indexed<T> none = NoneOf<Extreme, T>();
    IndexedAt<T> at;
    if constexpr (!std::is_same_v<Count, NoCount>) {
      CheckMaximum(AlgorithmDeclaration::Sink(graph), AlgorithmDeclaration::InScope(graph, name), count.max, from);
      return CountedReduceDeclaration::Declare<kNvcc>(graph, name, count, at, op, none, from, to);
    } else {
      const Accessed of = FindAccessed(graph.model(), from);
      if (of.dense) return ReduceDeclaration::Declare<kNvcc, 1>(graph, name, of.extent, at, op, none, from, to);
      IndexedOfRows<T> of_rows;
      return ReduceDeclaration::Declare<kNvcc, 3>(graph, name, of.extent, of_rows, op, none, from, to);
    }
  }
  template <class Extreme, class T>
  PENSTOCK_HIDDEN static Indexed<T> NoneOf() {
    if constexpr (std::numeric_limits<T>::is_specialized) return {Extreme::template Identity<T>(), -1};
    else return {T(), -1};
  }
};

}  // namespace penstock::detail
