// What a graph does with arrays in shards (sharding.h): nodes for each shard, copies between shards, and to and from an
// array in one piece. The same source runs on one device and on many.
//
//   const auto cut = ps::Blocked(0, runtime.all_devices());
//   auto u = graph.Sharded<float>("u", {h, w}, cut, ps::Halo(1));
//   auto v = graph.Sharded<float>("v", {h, w}, cut, ps::Halo(1));
//   ps::Scatter(graph, "set", in, u);
//   ps::Exchange(graph, "halo", u);
//   ps::ForEachPart(graph, v, [&](const ps::ShardPart& part) {
//     graph.ParallelFor("mean", part.extent, Mean{}, ps::ReadWithHalo(u, part), ps::Write(v, part));
//   });
//   ps::Gather(graph, "get", v, out);
//
// All of it is declared as Copy nodes and as the user's own: they are ordered by what they access, like any others, and
// a Scatter of bound memory brings each device its own elements and no others.
//
// Threads: as the graph.
// Errors:  a mistake is kept in the graph, which declares no node for it; Compile reports it with its line.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <algorithm>
#include <vector>

#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/name.h"
#include "penstock/sharding.h"

namespace penstock {

namespace detail {
// "name/before 1", declared where the name is.
inline Name NameOfPart(const Name& name, const char* what, int number) {
  return Name(what, number, name.source().file, name.source().line).In(name);
}
}  // namespace detail

// Calls f(const Shard&) for each shard that has elements. Nodes that it declares run on the shard's device, and their
// names begin with "shard 0/" and so on.
template <class T, class F>
PENSTOCK_HIDDEN void ForEachShard(Graph& graph, const ShardedHandle<T>& array, F f) {
  if (!detail::ShardDeclaration::IsMade(graph, "ForEachShard", array.layout())) return;
  for (const Shard& shard : array.shards()) {
    if (shard.blocks.empty()) continue;
    const auto scope = graph.Scope(Name("shard", shard.index));
    const auto device = graph.ScopeOn(shard.device);
    f(shard);
  }
}
// Calls f(const ShardPart&) for each of Shard::parts, so that a device computes what others wait for first. Names begin
// with "shard 0/part 0/" and so on.
template <class T, class F>
PENSTOCK_HIDDEN void ForEachPart(Graph& graph, const ShardedHandle<T>& array, F f) {
  ForEachShard(graph, array, [&](const Shard& shard) {
    int number = 0;
    for (const ShardPart& part : shard.parts) {
      const auto scope = graph.Scope(Name("part", number++));
      f(part);
    }
  });
}

// Fills the halos with the neighbours' elements: "name/before 1" is the copy to the halo before shard 1, and
// "name/after 0" that to the one after shard 0. Nothing for an array without a halo.
template <class T>
PENSTOCK_HIDDEN void Exchange(Graph& graph, const Name& name, const ShardedHandle<T>& array) {
  for (const detail::ShardCopy& copy : detail::ShardDeclaration::Halos(graph, name, array.layout())) {
    const Shard &from = array.shards()[static_cast<size_t>(copy.from)],
                &to = array.shards()[static_cast<size_t>(copy.to)];
    graph
        .Copy(detail::NameOfPart(name, copy.is_after ? "after" : "before", copy.to),
              Read(array.Of(from), copy.from_box), Write(array.Of(to), copy.to_box))
        .On(to.device);
  }
}
// Copies all elements of an array to another one of the same extent, however both are cut, such as from rows to
// columns. The halos of `to` are not filled.
template <class T>
PENSTOCK_HIDDEN void Exchange(Graph& graph, const Name& name, const ShardedHandle<T>& from,
                              const ShardedHandle<T>& to) {
  int number = 0;
  for (const detail::ShardCopy& copy : detail::ShardDeclaration::Between(graph, name, from.layout(), to.layout())) {
    const Shard& into = to.shards()[static_cast<size_t>(copy.to)];
    graph
        .Copy(detail::NameOfPart(name, "part", number++),
              Read(from.Of(from.shards()[static_cast<size_t>(copy.from)]), copy.from_box),
              Write(to.Of(into), copy.to_box))
        .On(into.device);
  }
}

// Copies an array in one piece to its shards, "name/part 0" and so on. `whole` has the extent of the array; or, along
// the dimension that is cut, the width of the halo more at both ends, and then all halos are filled too.
template <class T>
PENSTOCK_HIDDEN void Scatter(Graph& graph, const Name& name, BufferHandle<T> whole, const ShardedHandle<T>& array) {
  int number = 0;
  for (const detail::ShardCopy& copy :
       detail::ShardDeclaration::Whole(graph, name, array.layout(), whole.graph(), whole.index(), false)) {
    const Shard& to = array.shards()[static_cast<size_t>(copy.to)];
    graph.Copy(detail::NameOfPart(name, "part", number++), Read(whole, copy.from_box), Write(array.Of(to), copy.to_box))
        .On(to.device);
  }
}
// The reverse. A `whole` with room for the halo gets the outer halos of the first and the last shard too.
template <class T>
PENSTOCK_HIDDEN void Gather(Graph& graph, const Name& name, const ShardedHandle<T>& array, BufferHandle<T> whole) {
  int number = 0;
  for (const detail::ShardCopy& copy :
       detail::ShardDeclaration::Whole(graph, name, array.layout(), whole.graph(), whole.index(), true)) {
    const Shard& from = array.shards()[static_cast<size_t>(copy.from)];
    graph
        .Copy(detail::NameOfPart(name, "part", number++), Read(array.Of(from), copy.from_box),
              Write(whole, copy.to_box))
        .On(from.device);
  }
}

// Makes one value of all elements (reduce.h): first of each shard on its device, "name/shard 0" and so on, and then of
// these in the order of the shards. So the result has the same bits wherever the shards are, but floating-point sums
// may differ with their number: keep that, such as 8 shards on 1 to 8 devices, where bits count.
template <class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN void Reduce(Graph& graph, const Name& name, const ShardedHandle<T>& array,
                            AccessOf<V, AccessMode::kWrite> to, Op op, std::type_identity_t<V> identity) {
  if (!detail::ShardDeclaration::IsMade(graph, name, array.layout())) return;
  const auto has_elements = [](const Shard& shard) { return !shard.blocks.empty(); };
  const auto count = std::count_if(array.shards().begin(), array.shards().end(), has_elements);
  const SourceLine& line = name.source();
  const BufferHandle<V> values = graph.Buffer<V>(Name("shards", line.file, line.line).In(name), count);
  int64_t next = 0;
  for (const Shard& shard : array.shards()) {
    if (!has_elements(shard)) continue;
    graph
        .template Reduce<T, V, Op, kNvcc>(detail::NameOfPart(name, "shard", shard.index), Read(array, shard),
                                          Write(values, Slice({next++}, {1})), op, identity)
        .On(shard.device);
  }
  graph.template Reduce<V, V, Op, kNvcc>(name, Read(values), to, op, identity);
}
template <class T, class V, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN void Reduce(Graph& graph, const Name& name, const ShardedHandle<T>& array,
                            AccessOf<V, AccessMode::kWrite> to, Op op) {
  Reduce<T, V, Op, kNvcc>(graph, name, array, to, op, detail::IdentityOf<Op, V>());
}

}  // namespace penstock
