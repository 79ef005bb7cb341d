// RunSlot: a slot as runs use it: it adds the objects that submit the slot's operations, and the progress of its run.
//
// Ownership: owns its members; made by Compile, reused by one run after another. The predecessors are counted.
// Threads:   belongs to one run at a time, and within the run to the thread that advances it (see run_core.h). Workers
//            write their own entry of `host_states` and the list in `hosts`; submission threads submit the lanes of a
//            part that they have taken.
// Errors:    Create returns the driver's error and undoes what it had made.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/mode.h"
#include "src/base/annotate.h"
#include "src/memory/staging.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/graph_exec/slot_graphs.h"
#include "src/runtime/graph_exec/whole_graph.h"
#include "src/runtime/run/control_step.h"
#include "src/runtime/run/host_progress.h"
#include "src/runtime/run/predecessor.h"
#include "src/runtime/run/run_hostcalls.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class ParallelSubmission;
class RunCore;
class RunOwner;
class Submitter;

enum class HostStepState : uint8_t { kWaiting, kRunning, kDone, kSkipped };

// How far a run has come in its submission.
struct RunProgress {
  int64_t serial = -1;  // of the run
  std::chrono::steady_clock::time_point deadline;
  CommandId next_command = 0;
  SegmentId next_segment = 0;
  // Set once the epilogue has begun: the first command of the segments that was never submitted, or the first of the
  // partitioned range that was being submitted (see RunSlot::WasSubmitted).
  CommandId first_unsubmitted{};
  std::atomic<bool> epilogue_submitted{false};  // also read by runs that wait for this one
  std::atomic<bool> has_turn{true};  // false: its turn to submit has yet to come; also read by whoever abandons it
  base::AnnotatedSpan annotation = 0;  // that tools show, until the run has drained
  bool lane_full = false;  // the next command waits for room on its lane
  std::vector<int64_t> seen_complete;  // for each event: the serial of the run that last saw it complete

  // Begins a run, except for `has_turn`.
  void Reset(int64_t run, std::chrono::steady_clock::time_point until);
};

struct RunSlot final : Slot {
  static absl::StatusOr<std::unique_ptr<RunSlot>> Create(const Options& options, const Submitter& submitter, int index);
  ~RunSlot() override;

  // Makes the graphs and has runs submit them. Called before the first run; see SlotGraphs::Create.
  absl::Status MakeGraphs(SlotGraphs::Upload upload);
  // Makes one graph of all of them, with what is bound now, for the application to launch.
  absl::StatusOr<std::unique_ptr<WholeGraph>> ExportGraph();
  // Has the run's failure, and those of the runs that its constructs consist of, end the device's loops.
  absl::Status MakeStop();
  // A word of a slot around it does so.
  void UseStop(const uint32_t* stop);
  // The failure of the run, with the node of the part in which it was.
  absl::Status DescribeFault() const;
  // Sets what the next run submits. No run may be in flight.
  void Use(Mode mode);
  // Drops the graphs, giving back what they occupied on the device, except for what can be freed only when it is idle.
  void DropGraphs();
  // Begins a run of which nothing has been submitted; its host steps wait. Returns how many have something to do.
  int32_t Begin(int64_t serial, std::chrono::steady_clock::time_point deadline);
  // For each command of the segments, once the epilogue has begun: whether the run has submitted it.
  std::vector<bool> WasSubmitted() const;

  RunCore* run = nullptr;  // the run in flight; guarded by the executable's mutex
  bool leased = false;  // held by a Lease; guarded by the executable's mutex
  RunOwner* follower = nullptr;  // told of a run's end after the executable; set before the first run

  const Schedule* schedule = nullptr;  // what its runs submit
  std::vector<LaunchObjects> launch;  // one for each lane
  RunHostcalls hostcalls;
  GraphConstructs constructs;  // those that the device decides, in the order of their nodes
  std::unique_ptr<SlotGraphs> graphs;  // Program::graphs; null if there are none
  SlotGraphs* replay = nullptr;  // `graphs`, while runs may use them
  std::vector<std::unique_ptr<ParallelSubmission>> partitions;  // parallel to the partitions of Program::stream

  std::vector<std::atomic<HostStepState>> host_states;  // parallel to Plan::host_steps
  HostProgress hosts;
  std::vector<memory::StagedCopy> staged;  // one for each of Program::staged_copies
  std::vector<double> staged_begin;  // when the trace saw each of them begin
  std::vector<std::unique_ptr<ControlStep>> controls;  // HostEntry::control of each construct

  RunProgress progress;
  Predecessors predecessors;
  int64_t trial = -1;  // ModeTrial::Turn::number of the run; -1: not counted
  std::chrono::steady_clock::time_point launched;  // set during a trial, or if runs are measured

 private:
  RunSlot(const Options& options, int slot_index);
  absl::Status MakeParts(const Submitter& submitter);

  memory::PinnedBlock stop_;
};

}  // namespace penstock::runtime
