// ReplicatedState: one State on each of several devices, under one name: weights, tables, or sums that are
// combined now and then.
//
//   PS_ASSIGN_OR_RETURN(auto weights, runtime.MakeReplicatedState<float>("weights", n, initial));
//   graph.ParallelFor("apply", n, Apply{}, ps::Read(weights), ps::ReadWrite(x));   // the executable's device's replica
//
// An executable uses the replica of the device it is compiled for; plans and messages call the one on device 1 "weights
// 1". Nothing keeps replicas equal automatically: Broadcast and Reduce add nodes that do so to a graph. Compile and
// launch that graph like any other; the shared States order its runs with all others.
//
//   ps::Graph sync("sync");
//   ps::Reduce(sync, "sum", gradient, Plus{}, 0);     // gradient on device 0 becomes the sum over all devices
//   ps::Broadcast(sync, "spread", gradient, 0);       // and is copied to all others
//
// Ownership: a counted handle, as State.
// Threads:   thread-safe.
// Errors:    as State. Compile: InvalidArgument for a device without a replica.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/state.h"

namespace penstock {

// Options of Runtime::MakeReplicatedState.
struct ReplicatedStateOptions {
  std::vector<int> devices{};  // indices in the runtime's list; empty: all of them
};

template <class T>
class ReplicatedState {
 public:
  using value_type = T;
  ReplicatedState() = default;

  // Sets every replica to the same contents, one after another.
  absl::Status Set(std::span<const T> contents, Deadline deadline = {}) {
    return OnEach([&](State<T>& replica) { return replica.Set(contents, deadline); });
  }
  // Sets every byte of every replica to zero, one replica after another.
  absl::Status Reset(Deadline deadline = {}) {
    return OnEach([&](State<T>& replica) { return replica.Reset(deadline); });
  }
  // The replica on a device, or an empty State if there is none.
  State<T> On(int device) const {
    for (const auto& replica : Replicas()) {
      if (replica->device == device) return State<T>(replica);
    }
    return State<T>();
  }
  // The devices that have a replica, as indices of the runtime's list.
  std::vector<int> devices() const {
    std::vector<int> all;
    for (const auto& replica : Replicas()) all.push_back(replica->device);
    return all;
  }
  std::string_view name() const& { return record_ == nullptr ? std::string_view() : record_->name.view(); }
  std::string_view name() const&& = delete;
  // The shape of each replica.
  Extent extent() const { return record_ == nullptr ? Extent() : record_->extent; }
  // For the library: the record that graphs keep.
  std::shared_ptr<const StateRecord> record() const { return record_; }

 private:
  friend class Runtime;
  explicit ReplicatedState(std::shared_ptr<const StateRecord> record) : record_(std::move(record)) {}
  std::span<const std::shared_ptr<const StateRecord>> Replicas() const {
    if (record_ == nullptr) return {};
    return record_->replicas;
  }
  template <class F>
  absl::Status OnEach(F f) {
    if (record_ == nullptr) return State<T>().status();
    for (const int device : devices()) {
      State<T> replica = On(device);
      if (absl::Status status = f(replica); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  std::shared_ptr<const StateRecord> record_;
};

// The whole replica on the executable's device, or a box of it.
template <class T>
AccessOf<T, AccessMode::kRead> Read(const ReplicatedState<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}
template <class T>
AccessOf<T, AccessMode::kWrite> Write(const ReplicatedState<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}
template <class T>
AccessOf<T, AccessMode::kReadWrite> ReadWrite(const ReplicatedState<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}
template <class T>
AccessOf<T, AccessMode::kWriteSome> WriteSome(const ReplicatedState<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}

namespace detail {
// Over the elements of a State of any rank: they are contiguous.
template <class T, class Op>
struct ReduceInto {
  Op op;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const T> other, View<T> into) const {
    into.data[i] = op(into.data[i], other.data[i]);
  }
};
inline int64_t ElementsOf(const Extent& extent) {
  int64_t elements = extent.rank > 0 ? 1 : 0;
  for (int i = 0; i < extent.rank; ++i) elements *= extent.dims[static_cast<size_t>(i)].value;
  return elements;
}
}  // namespace detail

// Adds a copy of the replica on `from` to each of the others, as nodes called "name 1" after the device.
template <class T>
PENSTOCK_HIDDEN void Broadcast(Graph& graph, const Name& name, const ReplicatedState<T>& state, int from) {
  for (const int device : state.devices()) {
    if (device == from) continue;
    graph.Copy(detail::NumberedName(name, device), Read(state.On(from)), Write(state.On(device))).On(device);
  }
}

// Adds nodes that set each element of the replica on `into` to op(op(its own, that of the first other device), that of
// the next) and so on, in the order of devices(), so the result is the same on every machine. `op` is a trivially
// copyable functor T(T, T) with a const PENSTOCK_HOST_DEVICE operator(). The other replicas do not change.
template <class T, class Op, bool kNvcc = PENSTOCK_COMPILED_BY_NVCC>
PENSTOCK_HIDDEN void Reduce(Graph& graph, const Name& name, const ReplicatedState<T>& state, Op op, int into) {
  for (const int device : state.devices()) {
    if (device == into) continue;
    graph
        .ParallelFor(detail::NumberedName(name, device), detail::ElementsOf(state.extent()),
                     detail::ReduceInto<T, Op>{op}, Read(state.On(device)), ReadWrite(state.On(into)))
        .On(into);
  }
}

}  // namespace penstock
