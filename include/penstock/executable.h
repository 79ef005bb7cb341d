// Executable: a planned graph bound to devices, ready to run, with N slots.
//
// Each slot has its own device arena, pinned memory, streams and events, so N runs of the same graph overlap.
//
// Ownership: a handle; runs in flight keep what they need, so it may be dropped at any time.
// Threads:   thread-safe: any thread may launch.
// Errors:    see Launch. After a fatal device error every launch returns that error.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/exported_graph.h"
#include "penstock/lease.h"
#include "penstock/memory_report.h"
#include "penstock/replay_ledger.h"
#include "penstock/run.h"

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
  // (mode.h), kSlot buffers, and host devices. Else as for Launch.
  absl::StatusOr<ExportedGraph> Export(const Bindings& bindings);

  int slots() const;
  int64_t launches() const;  // runs started so far

  // What the slots take of device and pinned memory; the same before, during and after runs.
  MemoryReport memory() const;

  // How runs have been submitted so far, and why so.
  ReplayLedger ledger() const;

  // The plan, for people: one node a line, or a Graphviz digraph.
  std::string PlanText() const;
  std::string PlanDot() const;

 private:
  friend class Runtime;
  explicit Executable(std::shared_ptr<runtime::ExecutableCore> core) : core_(std::move(core)) {}
  std::shared_ptr<runtime::ExecutableCore> core_;
};

}  // namespace penstock
