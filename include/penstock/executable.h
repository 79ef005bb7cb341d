// Executable: a planned graph bound to devices, ready to run, with N slots.
//
// Each slot has its own device arena, pinned memory, streams and events, so N runs of the same graph overlap.
//
// An executable compiled for several devices (CompileOptions::devices) has slots on each. A launch goes to the device
// that should be free first: among those with a free slot, the one with the smallest (runs in flight + 1) x recent mean
// run time / (slots x weight). A slow device thus gets fewer runs and delays none of the others. If the graph has
// KeyedStates, the launch goes to the device that holds the States of its key.
//
// Ownership: a handle; runs in flight keep what they need, so it may be dropped at any time.
// Threads:   thread-safe: any thread may launch.
// Errors:    see Launch. After a fatal device error every launch returns that error.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/detail/internals.h"
#include "penstock/export.h"
#include "penstock/exported_graph.h"
#include "penstock/key.h"
#include "penstock/lease.h"
#include "penstock/memory_report.h"
#include "penstock/mode.h"
#include "penstock/placement.h"
#include "penstock/run.h"
#include "penstock/state.h"
#include "penstock/submission_report.h"

namespace penstock {

namespace runtime {
class ExecutableSet;
}

class PENSTOCK_EXPORT Executable {
 public:
  Executable() = default;

  // Makes fresh bindings for this executable: flat, typed and reusable.
  Bindings bindings() const;

  // Starts a run with the current `bindings`, waiting for a free slot until the deadline. The deadline also applies to
  // the run: work that has not drained by then is abandoned. InvalidArgument or FailedPrecondition: a binding is
  // missing, too small, not pinned as required, or overlaps another; DeadlineExceeded: no slot became free, or
  // none would in time (CompileOptions::refuse_late); FailedPrecondition: called inside a host node or callback. Errors
  // found later become the run's status.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline = {});
  // The same with nothing set, for graphs that need no parameter and no bound memory.
  absl::StatusOr<Run> Launch(Deadline deadline = {});
  // The same without waiting: ResourceExhausted if every slot is taken. Allowed inside host nodes and callbacks.
  absl::StatusOr<Run> TryLaunch(const Bindings& bindings, Deadline deadline = {});
  absl::StatusOr<Run> TryLaunch(Deadline deadline = {});

  // Acquires a slot to fill and read in place (lease.h), waiting for a free one until the deadline. Graphs with kSlot
  // buffers must be launched through a lease; others may be. Errors as for Launch.
  absl::StatusOr<Lease> Acquire(Deadline deadline = {});
  // The same without waiting: ResourceExhausted if every slot is taken. Allowed inside host nodes and callbacks.
  absl::StatusOr<Lease> TryAcquire();

  // Makes a platform graph of what a launch with these bindings would do (exported_graph.h). It takes a slot:
  // ResourceExhausted if every one is taken. FailedPrecondition, with the node and the reason, for anything that needs
  // a run around it: large unpinned memory, States, nodes that cannot be in a graph, resident regions; also for plans
  // without graphs (mode.h), kSlot buffers, host devices, and several devices (use On). Otherwise errors as for Launch.
  absl::StatusOr<ExportedGraph> Export(const Bindings& bindings);

  int slots() const;  // on all devices together
  int64_t launches() const;  // runs started so far

  // The devices that its runs use, apart from those of nodes that are pinned or placed elsewhere, as indices of the
  // runtime's list.
  std::vector<int> devices() const;
  // The part of this executable on one device, with the same slots and States, for launches there. NotFound: it
  // has none there.
  absl::StatusOr<Executable> On(int device) const;

  // The State of `key` for a buffer declared by Graph::KeyedState, to be set, read and reset (state.h). The first use
  // of a key assigns it one, which it keeps until Forget. InvalidArgument: not such a buffer. ResourceExhausted:
  // max_keys keys have one.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> StateOf(BufferHandle<T> state, Key key) {
    auto record = FindState(state.graph(), state.index(), detail::TypeOf<T>(), key);
    if (!record.ok()) return record.status();
    return State<T>(*std::move(record));
  }
  // Takes all States from `key` once the runs that use them have drained, and zeroes them for another key. OK if it has
  // none. DeadlineExceeded: runs were still using one; the key keeps them all, but some may be zeroed already.
  // FailedPrecondition: called inside a host node or callback.
  absl::Status Forget(Key key, Deadline deadline = {});

  // The device and pinned memory that the slots take; constant before, during and after runs.
  MemoryReport memory() const;

  // Under Mode::kAuto, ends the trial now instead of after some dozen runs: all later runs are submitted in the mode
  // that has been faster so far or, before there are figures, in the one that should be. Returns the mode of later
  // runs, of the first device if there are several; each device decides for itself.
  Mode Decide();
  // How runs have been submitted so far, and why; totals over all devices, but mode and times of the first only.
  SubmissionReport submission_report() const;
  // The name of submission_report() before 0.1.0.
  [[deprecated("renamed submission_report")]] SubmissionReport ledger() const { return submission_report(); }

  // Where the nodes of the first device's plan are and, under Placement::kAutomatic, why (placement.h).
  PlacementReport placement_report() const;
  // The first device's plan for human readers: as text with one node a line, or as a Graphviz digraph.
  std::string PlanText() const;
  std::string PlanDot() const;

 private:
  friend class detail::Internals<Executable>;
  explicit Executable(std::shared_ptr<runtime::ExecutableSet> set) : set_(std::move(set)) {}
  absl::StatusOr<std::shared_ptr<const StateRecord>> FindState(uint32_t graph, int32_t index, TypeInfo type, Key key);
  std::shared_ptr<runtime::ExecutableSet> set_;
};

}  // namespace penstock
