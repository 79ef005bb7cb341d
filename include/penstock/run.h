// Run: a counted handle on one execution of an executable.
//
// Ownership: copies share the execution, which continues when every handle is gone.
// Threads:   thread-safe.
// Ordering:  once a run has ended, any thread that saw it end (Wait, done, OnDone) sees its bound outputs, and the run
//            no longer touches bound memory, unless it was abandoned at its deadline; its status then says so.
// Errors:    the run's first error, in the form graph 'g' node 'n' (file:line) on device: what; why; what to do.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/deadline.h"
#include "penstock/detail/internals.h"
#include "penstock/export.h"
#include "penstock/handle.h"

namespace penstock {

namespace runtime {
class RunCore;
}

class PENSTOCK_EXPORT Run {
 public:
  Run() = default;  // no execution: done, with FailedPrecondition
  Run(const Run& other);
  Run(Run&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Run& operator=(Run other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Run();

  // Whether there is an execution: not if default-constructed or moved from.
  explicit operator bool() const { return state_ != nullptr; }

  // Waits until the run has ended, and returns its status. FailedPrecondition inside a host node or callback, where it
  // could wait for its own worker.
  absl::Status Wait() const { return Wait(Deadline()); }
  // The same, but returns DeadlineExceeded at the deadline and lets the run continue.
  absl::Status Wait(Deadline deadline) const;
  // Whether the run has ended. Polls the device; never blocks.
  bool done() const;
  // The final status; Unavailable until the run has ended.
  absl::Status status() const;
  // How many elements of an Output with a CountOf (graph.h) count: the value of its count at the end of the run, at
  // least 0 and at most the maximum of this run. Stays known while a handle is there. Unavailable until the run has
  // ended, afterwards its status unless that is OK; InvalidArgument: no such Output of its graph.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<int64_t> count(BufferHandle<T> output) const {
    return Count(output.graph(), output.index());
  }
  // Calls `callback` once with the run's status, on a worker thread, when the run has ended (also if it already has).
  // The callback must not wait or launch; TryLaunch is allowed.
  void OnDone(std::function<void(const absl::Status&)> callback) const;

  // Submits nothing more, drains the rest and ends the run with Cancelled, unless it has already ended or failed: the
  // first failure wins. A running host node finishes. Returns immediately; any thread may call it, anywhere and any
  // number of times. The run ends soon after, as Wait, done and OnDone then show.
  void Cancel() const;

 private:
  friend class detail::Internals<Run>;
  explicit Run(runtime::RunCore* state);  // takes over one reference
  absl::StatusOr<int64_t> Count(uint32_t graph, int32_t output) const;
  runtime::RunCore* state_ = nullptr;
};

}  // namespace penstock
