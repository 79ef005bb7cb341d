// Run: a counted handle on one execution of an executable.
//
// Ownership: copies share the execution; dropping every handle leaves it going.
// Threads:   thread-safe.
// Ordering:  once a run has ended, its bound outputs are visible to whoever saw it end (Wait, done, OnDone), and
//            nothing of it touches bound memory any more, unless it was abandoned at its deadline: then its status
//            says so.
// Errors:    the run's own first error, in the form graph 'g' node 'n' (file:line) on device: what; why; what to do.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "penstock/deadline.h"
#include "penstock/export.h"

namespace penstock {

namespace runtime {
class RunCore;
class ExecutableCore;
class LaunchBinder;
class PipelineCore;
}  // namespace runtime

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

  // Waits until the run has ended and returns its status. FailedPrecondition inside a host node or callback, where it
  // could wait for the very worker it runs on.
  absl::Status Wait() const { return Wait(Deadline()); }
  // The same, but returns DeadlineExceeded at the deadline and leaves the run going.
  absl::Status Wait(Deadline deadline) const;
  // Whether it has ended. Looks at the device; never blocks.
  bool done() const;
  // The status it ended with; Unavailable while it has not.
  absl::Status status() const;
  // Calls `callback` once with the run's status, on a worker thread, when the run has ended (also if it has already).
  // The callback must not wait or launch; TryLaunch is allowed.
  void OnDone(std::function<void(const absl::Status&)> callback) const;

  // Stops what has not been submitted, drains the rest and ends the run with Cancelled, unless it has ended or failed
  // before: the first failure wins. A host node that is running runs to its end. Returns at once; may be called by any
  // thread, anywhere, any number of times. The run ends soon after, seen by Wait, done and OnDone.
  void Cancel() const;

 private:
  friend class runtime::ExecutableCore;
  friend class runtime::LaunchBinder;
  friend class runtime::PipelineCore;
  friend class Bindings;
  bool drained() const;  // its work too
  explicit Run(runtime::RunCore* state);  // takes over one count
  runtime::RunCore* state_ = nullptr;
};

}  // namespace penstock
