// RunSlot: a slot as runs use it: with the objects that submit what it holds, and how far its run has come.
//
// Ownership: owns what it has; made by Compile, reused by one run after another. The predecessors are counted.
// Threads:   belongs to one run at a time, and within it to whoever advances that run (see run_core.h). Workers write
//            their own entry of `host_states` and the list in `hosts`; submission threads submit the lanes of a part
//            that they have taken.
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
#include "src/memory/staging.h"
#include "src/runtime/calls/hostcalls.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/graph_exec/slot_graphs.h"
#include "src/runtime/graph_exec/whole_graph.h"
#include "src/runtime/run/host_progress.h"
#include "src/runtime/run/predecessor.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class ParallelSubmission;
class RunCore;
class Submitter;

enum class HostStepState : uint8_t { kWaiting, kRunning, kDone, kSkipped };

// How far a run has come in what it submits.
struct RunProgress {
  int64_t serial = -1;  // of the run
  std::chrono::steady_clock::time_point deadline;
  int32_t next_command = 0;
  int32_t next_segment = 0;
  // Once the epilogue has begun: the first command of the segments that was never submitted, or the first of the
  // partitioned range that was being submitted (see RunSlot::WasSubmitted).
  int32_t first_unsubmitted = -1;
  std::atomic<bool> epilogue_submitted{false};  // read by runs that wait for this one, too
  bool lane_full = false;  // the next command waits for room on its lane
  std::vector<int64_t> seen_complete;  // an event each: the serial of the run that last saw it complete

  // A run begins.
  void Reset(int64_t run, std::chrono::steady_clock::time_point until);
};

struct RunSlot final : Slot {
  static absl::StatusOr<std::unique_ptr<RunSlot>> Create(const Options& options, const Submitter& submitter, int index);
  ~RunSlot() override;

  // Makes the graphs, and has runs submit them. Before the first run. As SlotGraphs::Create.
  absl::Status MakeGraphs(bool upload);
  // All of them as one, for others than runs to launch, with what is bound now.
  absl::StatusOr<std::unique_ptr<WholeGraph>> ExportGraph();
  // What the next run submits. No run is in flight.
  void Use(Mode mode);
  // The graphs are not used any more; what they took of a device is given back, except for what needs an idle device.
  void DropGraphs();
  // A run begins: nothing has been submitted. Host steps wait; returns how many of them have something to do.
  int32_t Begin(int64_t serial, std::chrono::steady_clock::time_point deadline);
  // Of each command of the segments, once the epilogue has begun: whether the run has submitted it.
  std::vector<bool> WasSubmitted() const;

  RunCore* run = nullptr;  // in flight; guarded by the executable's mutex
  bool leased = false;  // a Lease has it; guarded by the executable's mutex

  const Schedule* schedule = nullptr;  // what its runs submit
  std::vector<LaunchObjects> launch;  // a lane each
  std::unique_ptr<Hostcalls> hostcalls;  // Program::hostcalls; null where there are none
  std::unique_ptr<SlotGraphs> graphs;  // Program::graphs; null where there are none
  SlotGraphs* replay = nullptr;  // the same, while runs may use them
  std::vector<std::unique_ptr<ParallelSubmission>> partitions;  // parallel to the partitions of Program::stream

  std::vector<std::atomic<HostStepState>> host_states;  // parallel to Plan::host_steps
  HostProgress hosts;
  std::vector<memory::StagedCopy> staged;  // a Program::staged_copies each
  std::vector<double> staged_begin;  // the same: when the trace saw it begin

  RunProgress progress;
  Predecessors predecessors;
  int64_t trial = -1;  // ModeTrial::Turn::number of the run
  std::chrono::steady_clock::time_point launched;  // where there is a trial, or runs are measured

 private:
  RunSlot(const Options& options, int slot_index);
  absl::Status MakeParts(const Submitter& submitter);
};

}  // namespace penstock::runtime
