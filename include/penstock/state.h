// State: device memory that lives across runs, for what a program learns or remembers: weights, accumulators, a
// filter's history.
//
//   PS_ASSIGN_OR_RETURN(ps::State<float> sum, runtime.MakeState<float>("sum", n));
//   graph.ParallelFor("add", n, Add{}, ps::Read(x), ps::ReadWrite(sum));
//
// Several graphs may name one State (weights shared by two executables), and a graph several. Runs that share a State
// are ordered in it as they were launched: a run that writes it comes behind all earlier ones, one that only reads it
// behind the last that writes. Only what lies between a run's first and last touch of the State is ordered so; the rest
// of two runs overlaps.
//
// A run that fails, is cancelled or is abandoned after it may have written a State poisons it: the runs behind it in
// the order fail too, and further launches are refused, until Set or Reset. A run's status names the State.
//
// Ownership: a counted handle. Graphs, executables and runs that use a State keep it alive; it may be dropped in any
//            order with them and with the Runtime.
// Threads:   thread-safe.
// Ordering:  Set, Read and Reset take their place in the State's order like a run, and return when they are done. Then,
//            also where a deadline has cut them short, nobody touches the caller's memory any more.
// Errors:    DeadlineExceeded: runs ahead were still using the State, nothing was done (or, while copying: what was set
//            is unspecified, and the State poisoned). FailedPrecondition: poisoned (Read), or called inside a host node
//            or callback, which could be what it waits for. InvalidArgument: not exactly the State's elements.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "penstock/access.h"
#include "penstock/deadline.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"

namespace penstock {

class Executable;
class Graph;
class Runtime;
template <class T>
class ReplicatedState;

// Options of Runtime::MakeState.
struct StateOptions {
  int device = 0;  // where it lives: index in the runtime's device list
};

namespace detail {
PENSTOCK_EXPORT absl::Status SetState(const StateRecord* state, const void* contents, size_t elements, Deadline);
PENSTOCK_EXPORT absl::Status ReadState(const StateRecord* state, void* contents, size_t elements, Deadline);
PENSTOCK_EXPORT absl::Status ResetState(const StateRecord* state, Deadline);
PENSTOCK_EXPORT absl::Status StatusOfState(const StateRecord* state);
}  // namespace detail

template <class T>
class State {
 public:
  using value_type = T;
  State() = default;  // no State, as when moved from: its calls return FailedPrecondition, it has no elements

  // Copies `contents`, all of its elements in C order, in. Ends a poisoning.
  absl::Status Set(std::span<const T> contents, Deadline deadline = {}) {
    return detail::SetState(record_.get(), contents.data(), contents.size(), deadline);
  }
  // Copies all of its elements out.
  absl::Status Read(std::span<T> contents, Deadline deadline = {}) const {
    return detail::ReadState(record_.get(), contents.data(), contents.size(), deadline);
  }
  // Every byte becomes zero. Ends a poisoning.
  absl::Status Reset(Deadline deadline = {}) { return detail::ResetState(record_.get(), deadline); }
  // OK, or which failed run has poisoned it.
  absl::Status status() const { return detail::StatusOfState(record_.get()); }

  std::string_view name() const& { return record_ == nullptr ? std::string_view() : record_->name.view(); }
  std::string_view name() const&& = delete;
  // The shape.
  Extent extent() const { return record_ == nullptr ? Extent() : record_->extent; }
  // The index of its device in the runtime's list; -1 for an empty State.
  int device() const { return record_ == nullptr ? -1 : record_->device; }
  // For the library: what graphs hold on to.
  std::shared_ptr<const StateRecord> record() const { return record_; }

 private:
  friend class Executable;
  friend class ReplicatedState<T>;
  friend class Runtime;
  explicit State(std::shared_ptr<const StateRecord> record) : record_(std::move(record)) {}
  std::shared_ptr<const StateRecord> record_;
};

// All of the State, or a box of it.
template <class T>
AccessOf<T, AccessMode::kRead> Read(const State<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}
template <class T>
AccessOf<T, AccessMode::kWrite> Write(const State<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}
template <class T>
AccessOf<T, AccessMode::kReadWrite> ReadWrite(const State<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}

}  // namespace penstock
