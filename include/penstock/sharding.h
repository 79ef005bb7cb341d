// Sharding: how an array is cut along one of its dimensions into shards, each in the memory of a device.
//
//   ps::Blocked(0, runtime.all_devices())             // one range of rows a device
//   ps::Blocked(0, {{0, 2.0}, {1, 1.0}})              // device 0 has twice as many rows as device 1
//   ps::Blocked(0, {0, 0, 1, 1})                      // four shards on two devices
//   ps::Cyclic(1, 64, runtime.all_devices())          // 64 columns each in turn
//
// A shard of a Blocked array has one range of indices. If they do not divide evenly, or the weights differ, the cuts
// are where the exact ones would be, rounded down. A shard of a Cyclic array has many blocks: each next one goes to the
// shard that has the fewest for its weight, the first among equals. The last block may be shorter.
//
// With a halo each shard of a Blocked array also has room for copies of its neighbours' nearest elements, so many
// before its first index and as many after its last. The first shard has them before the whole array, and the last one
// after it: there the program puts its boundary values, or, if the halo is periodic, Exchange the elements from the
// other end.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/access.h"
#include "penstock/device_share.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/handle.h"
#include "penstock/name.h"

namespace penstock {

class Graph;

// The most shards of an array, and the most blocks of a Cyclic one.
inline constexpr int kMaxShards = 64, kMaxBlocks = 65536;

struct Sharding {
  int dim = 0;  // the dimension that is cut, 0 for the slowest
  int64_t block = 0;  // Cyclic: elements of that dimension in a block; 0: Blocked
  std::vector<DeviceShare> shares{};  // one for each shard; a device may have several
};
// A range for each share.
inline Sharding Blocked(int dim, std::vector<DeviceShare> shares) { return {dim, 0, std::move(shares)}; }
// Blocks of so many elements in turn.
inline Sharding Cyclic(int dim, int64_t block, std::vector<DeviceShare> shares) {
  return {dim, block > 0 ? block : -1, std::move(shares)};  // Compile reports it
}

// How many elements of the dimension that is cut a shard keeps of each neighbour.
struct Halo {
  // So many elements on each side, in the outer halos the program's own.
  explicit Halo(int64_t of = 0) : width(of) {}
  // The same, where the first shard and the last one are neighbours too.
  static Halo Periodic(int64_t of) {
    Halo halo(of);
    halo.periodic = true;
    return halo;
  }
  int64_t width;
  bool periodic = false;
};

// A range of the whole array that lies in one shard.
struct ShardPart {
  int shard = 0;  // its number
  int device = 0;  // of that shard
  int dim = 0;  // the dimension that is cut
  int64_t begin = 0, end = 0;  // indices of that dimension, in the whole array
  Extent extent{};  // of the part
};

// The part of an array that is on one device.
struct Shard {
  int index = 0;  // its number
  int device = 0;  // index in the runtime's list
  Extent extent{};  // of its elements without the halo: of all its blocks, one after the other, if there are several
  // The ranges that it has, in ascending order: one of a Blocked array, unless the shard is empty.
  std::vector<ShardPart> blocks{};
  // The same for a Blocked array with a halo, but what the neighbours need comes first and apart, so that it can be
  // computed and be on its way while the rest is computed.
  std::vector<ShardPart> parts{};
};

// The shards of one array. None if there was a mistake, which Compile reports.
struct ShardLayout {
  Name name{""};
  Extent extent{};  // of the whole array, without the halo outside of it
  int dim = 0;  // the dimension that is cut
  Halo halo{};  // of each shard
  std::vector<Shard> shards{};  // in order
};

namespace detail {

// Cuts an array. On a mistake there are no shards, and *mistake says what it is, and what to do.
PENSTOCK_EXPORT ShardLayout LayOut(const Name& name, const Extent& extent, const Sharding& sharding, const Halo& halo,
                                   std::string* mistake);
// What a shard's memory has: its elements and the halo.
PENSTOCK_EXPORT Extent ExtentWithHalo(const ShardLayout& layout, const Shard& shard);
// The elements of a part in the memory of its shard, or of a whole shard. A box before all elements if the shard does
// not have them.
PENSTOCK_EXPORT Box BoxOf(const ShardLayout& layout, const ShardPart& part);
PENSTOCK_EXPORT Box BoxOf(const ShardLayout& layout, const Shard& shard);
// Elements [begin + from_begin, end + from_end) instead, which may be those of the halo.
PENSTOCK_EXPORT Box BoxAround(const ShardLayout& layout, const ShardPart& part, int64_t from_begin, int64_t from_end);
// The part `by` indices after this one, if a neighbour has all of it; else the same part.
PENSTOCK_EXPORT ShardPart Shifted(const ShardLayout& layout, const ShardPart& part, int64_t by);
// That of an array without shards.
PENSTOCK_EXPORT const ShardLayout& NoLayout();

// A copy between boxes of two arrays; -1 stands for an array in one piece.
struct ShardCopy {
  int from = -1, to = -1;  // shards
  Box from_box{}, to_box{};
  bool is_after = false;  // of halos: that after the shard's own elements
};
// What sharded.h declares. Mistakes are kept in the graph; then there is nothing to copy.
class PENSTOCK_EXPORT ShardDeclaration {
 public:
  static std::shared_ptr<const ShardLayout> LayOut(Graph& graph, const Name& name, const Extent& extent,
                                                   const Sharding& sharding, const Halo& halo);
  // Whether there are shards. A handle that was never set is a mistake.
  static bool IsMade(Graph& graph, const Name& name, const ShardLayout& layout);
  // The copies that fill the halos.
  static std::vector<ShardCopy> Halos(Graph& graph, const Name& name, const ShardLayout& layout);
  // The copies that a Scatter from buffer `whole` makes, or a Gather to it.
  static std::vector<ShardCopy> Whole(Graph& graph, const Name& name, const ShardLayout& layout, uint32_t whole_graph,
                                      int32_t whole, bool is_gather);
  static std::vector<ShardCopy> Between(Graph& graph, const Name& name, const ShardLayout& from, const ShardLayout& to);

 private:
  static void Refuse(Graph& graph, const Name& name, const std::string& text);
};

}  // namespace detail

// An array of a graph that is cut into shards, each a buffer, or a State (sharded_state.h), of its own. Made by
// Graph::Sharded. A copyable value; sharded.h has what can be done with it.
template <class T>
class ShardedHandle {
 public:
  using value_type = T;
  ShardedHandle() = default;
  // For the library.
  ShardedHandle(std::shared_ptr<const ShardLayout> layout, std::vector<BufferHandle<T>> buffers)
      : layout_(std::move(layout)), buffers_(std::move(buffers)) {}

  // Where its elements are.
  const ShardLayout& layout() const { return layout_ != nullptr ? *layout_ : detail::NoLayout(); }
  // One after the other, in the order of their elements for a Blocked array.
  const std::vector<Shard>& shards() const { return layout().shards; }
  // The memory of a shard, or of that which has a part, with its halo. A handle on nothing if there is no such shard.
  BufferHandle<T> Of(const Shard& shard) const { return At(shard.index); }
  BufferHandle<T> Of(const ShardPart& part) const { return At(part.shard); }

 private:
  BufferHandle<T> At(int shard) const {
    const auto at = static_cast<size_t>(shard);
    return at < buffers_.size() ? buffers_[at] : BufferHandle<T>();
  }
  std::shared_ptr<const ShardLayout> layout_;
  std::vector<BufferHandle<T>> buffers_;  // one for each shard
};

// The elements of a part (ShardPart), or those of a whole shard (Shard), without the halo.
template <class T, class Part>
  requires requires(const ShardLayout& layout, const Part& part) { detail::BoxOf(layout, part); }
AccessOf<T, AccessMode::kRead> Read(const ShardedHandle<T>& array, const Part& part) {
  return {array.Of(part), detail::BoxOf(array.layout(), part)};
}
// The same.
template <class T, class Part>
  requires requires(const ShardLayout& layout, const Part& part) { detail::BoxOf(layout, part); }
AccessOf<T, AccessMode::kWrite> Write(const ShardedHandle<T>& array, const Part& part) {
  return {array.Of(part), detail::BoxOf(array.layout(), part)};
}
// The same.
template <class T, class Part>
  requires requires(const ShardLayout& layout, const Part& part) { detail::BoxOf(layout, part); }
AccessOf<T, AccessMode::kReadWrite> ReadWrite(const ShardedHandle<T>& array, const Part& part) {
  return {array.Of(part), detail::BoxOf(array.layout(), part)};
}
// The elements of a part and `width` more before and after it, in the dimension that is cut: of the same shard, or of
// its halo. By default as many as the halo is wide.
template <class T>
AccessOf<T, AccessMode::kRead> ReadWithHalo(const ShardedHandle<T>& array, const ShardPart& part, int64_t width = -1) {
  const int64_t wider = width < 0 ? array.layout().halo.width : width;
  return {array.Of(part), detail::BoxAround(array.layout(), part, -wider, wider)};
}
// The elements `by` indices after those of a part, or before if it is negative, in the dimension that is cut; `by` is
// at most the halo's width, and the array needs a halo.
//
// What a neighbour has all of is read in its memory (WithoutCopy in access.h), so that nothing need be exchanged. That
// is so for the parts at the cuts if `by` is the halo's width: they are at most so long. Elements that lie partly in
// one shard and partly in the next are read in the part's own shard and its halo, which Exchange has to have filled,
// and those outside the array in the outer halos.
template <class T>
AccessOf<T, AccessMode::kRead> ReadShifted(const ShardedHandle<T>& array, const ShardPart& part, int64_t by) {
  const ShardPart moved = detail::Shifted(array.layout(), part, by);
  if (moved.shard != part.shard || moved.begin != part.begin) return WithoutCopy(Read(array, moved));
  return {array.Of(part), detail::BoxAround(array.layout(), part, by, by)};
}

}  // namespace penstock
