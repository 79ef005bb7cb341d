// State: device memory that lives across runs, for anything a program learns or remembers: weights, accumulators, a
// filter's history.
//
//   PS_ASSIGN_OR_RETURN(ps::State<float> sum, runtime.MakeState<float>("sum", n));
//   graph.ParallelFor("add", n, Add{}, ps::Read(x), ps::ReadWrite(sum));
//
// Several graphs may name one State (weights shared by two executables), and one graph several. Runs that share a
// State use it in launch order: a run that writes it comes after all earlier ones, a run that only reads it comes
// after the last writer. Only the part of a run between its first and last touch of the State is ordered; the rest of
// two runs overlaps.
//
// A run that fails, is cancelled or is abandoned after it may have written a State poisons it: later runs in the order
// fail too, and further launches are refused, until Set of all of it, or Reset. A run's status names the State.
//
// Ownership: a counted handle. Graphs, executables and runs that use a State keep it alive; they, the Runtime and the
//            State may be dropped in any order.
// Threads:   thread-safe.
// Ordering:  Set, Read and Reset take a place in the State's order like a run, and return when they are done. After
//            that, also if a deadline cut them short, the library no longer touches the caller's memory. StartSet and
//            StartRead take their place and return at once; the Transfer tells when they are done.
// Errors:    DeadlineExceeded: earlier runs were still using the State, and nothing was done; or the copy itself was
//            cut short: the contents set are unspecified, and the State is poisoned. FailedPrecondition: poisoned
//            (Read, and Set of a part), or called inside a host node or callback, for which it might wait (not StartSet
//            and StartRead). InvalidArgument: not exactly as many elements as are copied, or a box outside the State.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/access.h"
#include "penstock/deadline.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/transfer.h"

namespace penstock {

class Graph;

// Options of Runtime::MakeState and AdoptState.
struct StateOptions {
  int device = 0;  // the device it is on: index in the runtime's list
};

namespace detail {
PENSTOCK_EXPORT absl::Status SetState(const StateRecord* state, const void* contents, size_t elements, const Box& box,
                                      Deadline);
PENSTOCK_EXPORT absl::Status ReadState(const StateRecord* state, void* contents, size_t elements, const Box& box,
                                       Deadline);
PENSTOCK_EXPORT absl::StatusOr<Transfer> StartSetState(const std::shared_ptr<const StateRecord>& state,
                                                       const void* contents, size_t elements,
                                                       const TransferOptions& options);
PENSTOCK_EXPORT absl::StatusOr<Transfer> StartReadState(const std::shared_ptr<const StateRecord>& state, void* contents,
                                                        size_t elements, const TransferOptions& options);
PENSTOCK_EXPORT absl::Status ResetState(const StateRecord* state, Deadline);
PENSTOCK_EXPORT absl::Status StatusOfState(const StateRecord* state);
PENSTOCK_EXPORT void* MemoryOfState(const StateRecord* state);
}  // namespace detail

template <class T>
class State {
 public:
  using value_type = T;
  State() = default;  // no State, as after a move: calls return FailedPrecondition, it has no elements

  // Copies `contents`, all elements in C order, into the State. Clears poison.
  absl::Status Set(std::span<const T> contents, Deadline deadline = {}) { return Set(contents, Box(), deadline); }
  // Copies `contents`, the elements of a box (Slice) in C order, into the State. It is refused if the State is
  // poisoned, since the other elements would stay unspecified, unless the box is all of the State.
  absl::Status Set(std::span<const T> contents, const Box& box, Deadline deadline = {}) {
    return detail::SetState(record_.get(), contents.data(), contents.size(), box, deadline);
  }
  // Copies all elements out of the State.
  absl::Status Read(std::span<T> contents, Deadline deadline = {}) const { return Read(contents, Box(), deadline); }
  // Copies the elements of a box out of the State.
  absl::Status Read(std::span<T> contents, const Box& box, Deadline deadline = {}) const {
    return detail::ReadState(record_.get(), contents.data(), contents.size(), box, deadline);
  }
  // Set without waiting: takes its place in the State's order before it returns, so that later launches use the new
  // contents. `contents` must stay unchanged until the transfer has ended, and valid, which a keep-alive in the options
  // may see to. Errors as for Set; those found later become the transfer's status.
  absl::StatusOr<Transfer> StartSet(std::span<const T> contents, const TransferOptions& options = {}) {
    return detail::StartSetState(record_, contents.data(), contents.size(), options);
  }
  // Read without waiting, in the same way.
  absl::StatusOr<Transfer> StartRead(std::span<T> contents, const TransferOptions& options = {}) const {
    return detail::StartReadState(record_, contents.data(), contents.size(), options);
  }
  // Sets every byte to zero. Clears poison.
  absl::Status Reset(Deadline deadline = {}) { return detail::ResetState(record_.get(), deadline); }
  // OK, or the failed run that poisoned it.
  absl::Status status() const { return detail::StatusOfState(record_.get()); }

  std::string_view name() const& { return record_ == nullptr ? std::string_view() : record_->name.view(); }
  std::string_view name() const&& = delete;
  // The elements, in C order, for kernels and library calls of the application; null if there are none. A device
  // address, also on host devices: the host must not dereference it. Penstock does not see its use, which must begin
  // after the earlier runs and calls that conflict with it have ended, and end before later ones begin: wait, or order
  // it with launches by Bindings::On. Valid as long as this State, a copy, or a graph or executable that names it.
  T* data() const { return static_cast<T*>(detail::MemoryOfState(record_.get())); }
  // The shape.
  Extent extent() const { return record_ == nullptr ? Extent() : record_->extent; }
  // The index of its device in the runtime's list; -1 for an empty State.
  int device() const { return record_ == nullptr ? -1 : record_->device; }
  // For the library: the State with this record.
  explicit State(std::shared_ptr<const StateRecord> record) : record_(std::move(record)) {}
  // For the library: the record, which graphs keep.
  std::shared_ptr<const StateRecord> record() const { return record_; }

 private:
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
template <class T>
AccessOf<T, AccessMode::kWriteSome> WriteSome(const State<T>& state, const Box& box = {}) {
  return {{}, box, false, state.record()};
}

}  // namespace penstock
