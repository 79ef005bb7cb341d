// ShardedState: device memory that lives across runs, cut into shards (sharding.h): one State (state.h) each, "name 0",
// "name 1" and so on.
//
//   const ps::Sharding cut = ps::Blocked(0, runtime.all_devices());
//   PS_ASSIGN_OR_RETURN(auto grid, runtime.MakeShardedState<float>("grid", {h, w}, cut, first, ps::Halo(1)));
//   auto u = graph.Use(grid);                      // as what graph.Sharded returns
//
// Ownership: a counted handle, as State.
// Threads:   thread-safe.
// Ordering:  as State, for each shard by itself: Set, Read and Reset go from shard to shard.
// Errors:    as State. FailedPrecondition for an empty one.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/sharding.h"
#include "penstock/state.h"

namespace penstock {

namespace detail {

// Memory for elements, without any.
template <class T>
class Room {
 public:
  explicit Room(int64_t elements) : size_(static_cast<size_t>(elements)), data_(std::allocator<T>().allocate(size_)) {}
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { std::allocator<T>().deallocate(data_, size_); }
  std::span<T> all() const { return {data_, size_}; }

 private:
  size_t size_;
  T* data_;
};

// Where the elements of a part lie in the whole array in C order: `rows` ranges of `length` elements, the first of
// which begins at `first`, and each `pitch` elements after the one before.
struct PartRows {
  int64_t rows = 0, length = 0, first = 0, pitch = 0;
};
PENSTOCK_EXPORT PartRows RowsOf(const ShardLayout& layout, const ShardPart& part);
// InvalidArgument unless there are as many elements as the array has.
PENSTOCK_EXPORT absl::Status CheckElements(const ShardLayout& layout, size_t elements);

}  // namespace detail

template <class T>
class ShardedState {
 public:
  using value_type = T;
  ShardedState() = default;
  // For the library.
  ShardedState(std::shared_ptr<const ShardLayout> layout, std::vector<State<T>> shards)
      : layout_(std::move(layout)), shards_(std::move(shards)) {}

  // Copies `whole`, all elements in C order without halos, to the shards. The halos keep what they have.
  absl::Status Set(std::span<const T> whole, Deadline deadline = {}) {
    return OnEachPart(whole.size(), [&](State<T>& shard, const ShardPart& part, const detail::PartRows& rows) {
      if (rows.rows == 1) return shard.Set(Direct(whole, rows), detail::BoxOf(*layout_, part), deadline);
      const detail::Room<T> packed(rows.rows * rows.length);
      ForEachRow(rows, [&](int64_t in_whole, int64_t in_part, size_t bytes) {
        std::memcpy(packed.all().data() + in_part, whole.data() + in_whole, bytes);
      });
      return shard.Set(packed.all(), detail::BoxOf(*layout_, part), deadline);
    });
  }
  // Copies all elements out of the shards.
  absl::Status Read(std::span<T> whole, Deadline deadline = {}) const {
    return OnEachPart(whole.size(), [&](const State<T>& shard, const ShardPart& part, const detail::PartRows& rows) {
      if (rows.rows == 1) return shard.Read(Direct(whole, rows), detail::BoxOf(*layout_, part), deadline);
      const detail::Room<T> packed(rows.rows * rows.length);
      absl::Status status = shard.Read(packed.all(), detail::BoxOf(*layout_, part), deadline);
      if (!status.ok()) return status;
      ForEachRow(rows, [&](int64_t in_whole, int64_t in_part, size_t bytes) {
        std::memcpy(whole.data() + in_whole, packed.all().data() + in_part, bytes);
      });
      return status;
    });
  }
  // Sets every byte of every shard, with its halo, to zero.
  absl::Status Reset(Deadline deadline = {}) {
    if (shards_.empty()) return State<T>().status();
    for (State<T>& shard : shards_) {
      if (absl::Status status = shard.Reset(deadline); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Where its elements are.
  const ShardLayout& layout() const { return layout_ != nullptr ? *layout_ : detail::NoLayout(); }
  // The State of a shard, with its halo; an empty one if there is no such shard.
  State<T> Of(int shard) const {
    const auto at = static_cast<size_t>(shard);
    return at < shards_.size() ? shards_[at] : State<T>();
  }
  // The same as Graph::Use of it.
  ShardedHandle<T> In(Graph& graph) const {
    std::vector<BufferHandle<T>> buffers;
    for (const State<T>& shard : shards_) buffers.push_back(graph.Use(shard));
    return {layout_, std::move(buffers)};
  }

 private:
  template <class U>
  static std::span<U> Direct(std::span<U> whole, const detail::PartRows& rows) {
    return whole.subspan(static_cast<size_t>(rows.first), static_cast<size_t>(rows.length));
  }
  template <class F>
  static void ForEachRow(const detail::PartRows& rows, F f) {
    for (int64_t r = 0; r < rows.rows; ++r) {
      f(rows.first + r * rows.pitch, r * rows.length, static_cast<size_t>(rows.length) * sizeof(T));
    }
  }
  template <class F>
  absl::Status OnEachPart(size_t elements, F f) const {
    if (shards_.empty()) return State<T>().status();
    if (absl::Status status = detail::CheckElements(*layout_, elements); !status.ok()) return status;
    for (const Shard& shard : layout_->shards) {
      State<T> state = Of(shard.index);
      for (const ShardPart& part : shard.blocks) {
        if (absl::Status status = f(state, part, detail::RowsOf(*layout_, part)); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const ShardLayout> layout_;
  std::vector<State<T>> shards_;  // one for each of the layout's
};

}  // namespace penstock
