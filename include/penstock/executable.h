// Executable: a planned graph bound to devices, ready to run, with N slots.
//
// Each slot has its own device arena, pinned memory, streams and events, so N runs of the same graph overlap.
//
// One compiled for several devices (CompileOptions::devices) has slots on each. A launch goes to the device that will
// be free first: of those with a free slot the one with the least of (runs in flight + 1) x mean time of its runs of
// late / (slots x weight); so a slow device gets less, and nobody waits for it. Where the graph has KeyedStates, it
// goes to the device that has those of its key.
//
// Ownership: a handle; runs in flight keep what they need, so it may be dropped at any time.
// Threads:   thread-safe: any thread may launch.
// Errors:    see Launch. After a fatal device error every launch returns that error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/exported_graph.h"
#include "penstock/key.h"
#include "penstock/lease.h"
#include "penstock/memory_report.h"
#include "penstock/run.h"
#include "penstock/state.h"
#include "penstock/submission_report.h"

namespace penstock {

class PENSTOCK_EXPORT Executable {
 public:
  Executable() = default;

  // Fresh bindings for this executable: flat, typed, to be reused.
  Bindings bindings() const;

  // Starts a run with what `bindings` names now, waiting for a free slot until the deadline. The deadline is the run's
  // too: work that has not drained by then is abandoned. InvalidArgument or FailedPrecondition: a binding is missing,
  // too small, not pinned where it must be, or overlaps another; DeadlineExceeded: no slot came free;
  // FailedPrecondition inside a host node or callback. Errors found later are the run's status.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline = {});
  // The same without waiting: ResourceExhausted when every slot is taken. Allowed inside host nodes and callbacks.
  absl::StatusOr<Run> TryLaunch(const Bindings& bindings, Deadline deadline = {});

  // A slot to fill and read in place (lease.h), waiting for a free one until the deadline. Graphs with kSlot buffers
  // are launched by a lease only; others may be. Errors as for Launch.
  absl::StatusOr<Lease> Acquire(Deadline deadline = {});
  // The same without waiting: ResourceExhausted when every slot is taken. Allowed inside host nodes and callbacks.
  absl::StatusOr<Lease> TryAcquire();

  // What a launch with these bindings would do, as a graph of the platform's own (exported_graph.h). It takes a slot:
  // ResourceExhausted when every one is taken. FailedPrecondition, with the node and the reason, for what needs a run
  // around it: large memory that is not pinned, States, nodes that are in no graph; for plans without graphs
  // (mode.h), kSlot buffers, host devices, and several devices (use On). Else as for Launch.
  absl::StatusOr<ExportedGraph> Export(const Bindings& bindings);

  int slots() const;  // of all devices
  int64_t launches() const;  // runs started so far

  // The devices of its runs but for nodes with pins, as indices of the runtime's list.
  std::vector<int> devices() const;
  // The part of it on one of them, with the same slots and States, to launch there. NotFound: it has none there.
  absl::StatusOr<Executable> On(int device) const;

  // A key's State of one declared by Graph::KeyedState, to be set, read and reset (state.h); made at first sight. It is
  // the key's until Forget. InvalidArgument: a buffer that is none. ResourceExhausted: max_keys keys have one.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<State<T>> StateOf(BufferHandle<T> state, Key key) {
    auto record = FindState(state.graph(), state.index(), detail::TypeOf<T>(), key);
    if (!record.ok()) return record.status();
    return State<T>(*std::move(record));
  }
  // Gives up all of the key's States, when the runs that use them have drained; they hold zeros for another key then.
  // OK also where it has none. DeadlineExceeded: runs were still using one; the key keeps them all, but some may hold
  // zeros already. FailedPrecondition inside a host node or callback.
  absl::Status Forget(Key key, Deadline deadline = {});

  // What the slots take of device and pinned memory; the same before, during and after runs.
  MemoryReport memory() const;

  // How runs have been submitted so far, and why so; of all devices together, but for the first's mode and times.
  SubmissionReport submission_report() const;
  // The name of submission_report() before 0.1.0.
  [[deprecated("renamed submission_report")]] SubmissionReport ledger() const { return submission_report(); }

  // The plan, for people: one node a line, or a Graphviz digraph; of the first device.
  std::string PlanText() const;
  std::string PlanDot() const;

 private:
  friend class Runtime;
  friend class runtime::PipelineCore;
  explicit Executable(std::shared_ptr<runtime::ExecutableSet> set) : set_(std::move(set)) {}
  absl::StatusOr<std::shared_ptr<const StateRecord>> FindState(uint32_t graph, int32_t index, TypeInfo type, Key key);
  std::shared_ptr<runtime::ExecutableSet> set_;
};

}  // namespace penstock
