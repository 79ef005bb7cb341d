// Slot: everything one run of an executable needs and no other run may touch: streams, events, arenas, argument blocks.
//
// Ownership: owns its driver objects and memory; made by Compile, reused by one run after another.
// Threads:   belongs to one run at a time, and within it to whoever advances that run (see run_core.h). Host nodes on
//            workers read their own arguments, and write their own `host_states` entry and `hosts`' list only;
//            submission threads read what they submit, feed the lanes of a part that they have taken, and may fail the
//            run.
// Errors:    Create returns the driver's error and undoes what it had made.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "penstock/bindings.h"
#include "penstock/detail/replaceable.h"
#include "penstock/mode.h"
#include "src/base/aligned_bytes.h"
#include "src/driver/device_ref.h"
#include "src/host/event_count.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"
#include "src/runtime/calls/hostcalls.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/core/pointer_attributes.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/graph_exec/slot_graphs.h"
#include "src/runtime/program/program.h"
#include "src/runtime/run/host_progress.h"
#include "src/runtime/slot/box_shapes.h"
#include "src/runtime/slot/memory_overlap.h"
#include "src/runtime/state/keyed_states.h"

namespace penstock::runtime {

class RunCore;
class ParallelSubmission;

// What must be done before device memory that is bound may be touched; `external_dep` is an entry of
// Plan::external_deps.
struct Predecessor {
  int32_t external_dep;
  RunCore* run;  // counted
};
struct EventPredecessor {
  int32_t external_dep;
  void* event;
};

enum class HostStepState : uint8_t { kWaiting, kRunning, kDone, kSkipped };

struct Slot final : driver::UseSource {
  struct Options {
    const Model* model;
    const graph::Plan* plan;
    const Program* program;
    const std::vector<driver::DeviceRef>* devices;
    memory::PinnedPool* pinned;
    int pinned_node = -1;  // NUMA node that pinned memory comes from
    std::vector<driver::TrySemaphore>* gates;  // one a call, for host devices
    ExecutableCore* core = nullptr;  // whose slot it is
    bool timing = false;  // make timing events for a trace
    bool synchronous = false;  // make an event a lane to wait for each node
    host::EventCount* event_count = nullptr;  // of the runtime
  };
  static absl::StatusOr<std::unique_ptr<Slot>> Create(const Options& options, int index);
  ~Slot();

  // Makes the graphs, and has runs submit them. Before the first run. The arguments as for SlotGraphs::Create.
  absl::Status MakeReplay(bool upload, int32_t& node);
  // All of them as one, for others than runs to launch, with what is bound now.
  absl::StatusOr<std::unique_ptr<SlotGraphs>> ExportGraph(int32_t& node);
  // What the next run submits. No run is in flight.
  void Use(Mode mode);
  // The graphs are not used any more; what they took of a device is given back, but for what needs a device that is
  // idle.
  void DropGraphs();

  // Where a box of an instance begins; null where the instance has no memory.
  void* AddressOf(int32_t instance, int32_t box) const;
  // Writes addresses into `args`: of an instance, or of where a box of it begins.
  void PatchPointers(const std::vector<PointerPatch>& patches);

  // Forgets what this run comes behind.
  void ReleasePredecessors();
  // Of each command of the segments, once the finish has begun: whether the run has submitted it.
  std::vector<bool> WasSubmitted() const;

  // What the host calls for a call (Program::calls) whose record is `code`.
  void* CallableOf(int32_t call, const NodeCode& code) const {
    return callables.empty() ? code.callable.get() : callables[static_cast<size_t>(call)].object();
  }

  void AppendUses(int32_t node, std::vector<driver::MemoryUse>& out) const override;

  int index = 0;
  RunCore* run = nullptr;  // in flight; guarded by the executable's mutex
  bool leased = false;  // somebody has a Lease; guarded by the executable's mutex

  const Schedule* schedule = nullptr;  // what its runs submit
  std::unique_ptr<SlotGraphs> graphs;  // Program::graphs; null where there are none
  SlotGraphs* replay = nullptr;  // the same, while runs may use them

  std::vector<driver::Stream> streams;  // a lane each
  std::vector<LaunchObjects> launch;  // a lane each
  std::vector<driver::Event> events;
  std::vector<driver::Event> sync_events;  // a lane each, where nodes are waited for
  std::vector<std::unique_ptr<ParallelSubmission>> partitions;  // parallel to the partitions of Program::stream
  std::vector<driver::Event> stream_events;  // of each device of the driver, null till a run is on a stream there
  std::vector<driver::Event> marks;  // a lane each, null but for Program::marked_lanes
  // A node each, null but for those that are submitted by themselves; empty without a trace.
  std::vector<driver::Event> begin_timing, end_timing;

  std::vector<void*> pointers;  // an instance each; bound ones are set by who binds
  std::vector<void*> staging;  // what `pointers` held when the slot was made
  std::vector<BoxInRun> boxes;  // a buffer each, then a Program::slices each
  std::vector<int64_t> param_values;  // integers only, for extents
  // Of all parameters, as `args` has them where params_known; in pinned memory where Program::refs are.
  std::span<std::byte> param_bytes;
  bool params_known = false;
  base::AlignedBytes args;
  std::vector<void*> argv;
  std::vector<driver::CopyOp> copies;  // parallel to Program::copies
  std::vector<bool> copies_off;  // the same: not made in this run
  std::vector<driver::BatchOp> batches;  // parallel to Program::batches
  driver::CopyPiece* pieces = nullptr;  // of all batches, in pinned memory: what runs with this memory bound copy
  std::vector<driver::FillOp> fills;  // parallel to Program::fills
  std::vector<driver::KernelOp> kernels;  // parallel to Program::calls
  std::unique_ptr<Hostcalls> hostcalls;  // Program::hostcalls; null where there are none
  // Parallel to Program::calls where the slot has callables of its own (graph_cache.h), else empty. The host
  // fallbacks' addresses are in `kernels` too.
  std::vector<detail::Replaceable> callables, fallbacks;
  std::vector<std::atomic<HostStepState>> host_states;  // parallel to Plan::host_steps
  HostProgress hosts;
  std::vector<bool> is_noop;  // the same: nothing to copy in this run, but still a step others wait for
  std::vector<driver::CopyOp> host_copies;  // the same, of those that copy
  std::vector<memory::StagedCopy> staged;  // a Program::staged_copies each
  std::vector<double> staged_begin;  // the same: when the trace saw it begin
  std::vector<bool> bound_pinned;  // a buffer each: whether its bound memory is, in this run
  uint64_t stamp = 0;  // of the Bindings whose memory is bound; 0: none is
  MemoryKinds kinds;  // of that memory
  std::vector<int32_t> kept, taken;  // buffers of that memory with a keep-alive; that the run takes over
  std::vector<std::shared_ptr<const void>> keep_alive;  // a buffer each while the run needs them; empty: none is kept
  std::vector<BoundRange> bound_ranges;  // a buffer each; internal ones stay empty
  std::vector<int32_t> bound_order;  // buffers that are bound, sorted for CheckOverlaps
  std::vector<int64_t> seen_complete;  // an event each: the serial of the run that last saw it complete
  driver::RunFault fault;
  StateTicket ticket;  // places parallel to Plan::states
  KeyedHome home;  // whose States of a key are bound, where the graph has some
  std::vector<Predecessor> ahead;  // runs to come behind, by external_dep
  size_t ahead_ended = 0;  // the first so many of them are known to have ended
  std::vector<EventPredecessor> events_ahead;  // and events of the application's
  driver::Event stream_ahead;  // and what its stream had before the run; null where it is on none, or that is done
  std::vector<driver::Event> done;  // those of Plan::done_events

  int64_t trial = -1;  // ModeTrial::Turn::number of the run
  std::chrono::steady_clock::time_point launched;  // where there is a trial, or runs are measured

  // Where the run stands.
  int64_t serial = -1;
  std::chrono::steady_clock::time_point deadline;
  int32_t next_command = 0;
  int32_t next_segment = 0;
  // Once the finish has begun: the first command of the segments that never was submitted, or the first of the split
  // range that was being (see WasSubmitted).
  int32_t first_unsubmitted = -1;
  std::atomic<bool> epilogue_submitted{false};  // read by runs that come behind, too
  bool lane_full = false;  // the next command waits for room on its lane

 private:
  explicit Slot(const Options& options, int slot_index);
  SlotGraphs::Options ReplayOptions(bool upload) const;
  absl::Status MakeStreamsAndEvents();
  absl::Status MakeArenas();
  absl::Status MakeLaunchObjects();
  absl::Status MakeZero(const driver::DeviceRef& device, void* memory, driver::Stream stream);
  void MakeTicket();
  absl::Status MakeParams();
  absl::Status FillImages();
  void MakePartitions();

  Options options_;
  memory::PinnedBlock pinned_;
  std::vector<std::byte> own_params_;
  memory::PinnedBlock pinned_params_;
  std::vector<std::pair<driver::DeviceRef, void*>> arenas_;
  std::vector<std::vector<driver::Event>> state_events_;  // of each place of the ticket
};

// Writes the shapes of views and ranges, and what follows from them (bytes of copies, grids of kernels): those that
// never change, once; those that depend on parameters, each launch, which refuses slices that leave their buffer.
absl::Status ApplyFixedShapes(const Model& model, const graph::Plan& plan, const Program& program, Slot& slot);
absl::Status ApplyDynamicShapes(const Model& model, const Program& program, Slot& slot);

}  // namespace penstock::runtime
