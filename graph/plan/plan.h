// Plan: the planner's output: what runs where, in which lane, after what, and in which memory. Pure data.
//
// A Plan holds no pointer, handle or clock: it can be printed, compared and tested without a device. Everything is an
// index into a flat array. In each run the runtime walks `segments` and `commands`, without lookups.
//
// Ownership: plain values. Keep the Model from which a plan was made: it has the callables and types.
// Threads:   immutable once made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "graph/plan/region.h"
#include "penstock/detail/model.h"
#include "src/base/kernel_limits.h"

namespace penstock::graph {

using detail::Id;
using detail::Table;

// Indices of a Plan's records. A plan's device is an index in PlanOptions::devices.
using DeviceId = Id<struct DeviceTag>;
using InstanceId = Id<struct InstanceTag>;
using NodeId = Id<struct NodeTag>;
using LaneId = Id<struct LaneTag>;
using EventId = Id<struct EventTag>;
using CommandId = Id<struct CommandTag>;
using SegmentId = Id<struct SegmentTag>;
using HostStepId = Id<struct HostStepTag>;
using PartId = Id<struct PartTag>;

// Where an instance of a buffer lives.
//   kBound    the user's memory, known at launch; on `device` unless that is -1
//   kPinned   the slot's pinned memory
//   kDevice   the slot's arena on `device`
//   kState    the State's own memory on `device`, the same for all slots
enum class Space : uint8_t { kBound, kPinned, kDevice, kState };
// Whether the slot has memory for the instance.
constexpr bool InArena(Space s) { return s == Space::kPinned || s == Space::kDevice; }

// The contents of a buffer, or of parts of it, in one place. A buffer has one instance for each place where its data is
// needed, and one for each node that uses all of it as scratch.
struct Instance {
  BufferId buffer{};
  Space space = Space::kDevice;
  DeviceId device{};  // none: in host memory
  int64_t bytes = 0;  // at the declared maximum
  int64_t offset = -1;  // in the arena of (space, device); -1 if there is none
  bool leased = false;  // kPinned: filled before the run, by the leaseholder or with a parameter
  bool stages = false;  // kPinned, of a kHost buffer: the user's own memory replaces it if pinned
  bool operator==(const Instance&) const = default;
};

// Whether it is device memory that the slot does not own.
constexpr bool IsLaunch(const Instance& i) {
  return i.space == Space::kState || (i.space == Space::kBound && i.device >= 0);
}

// What a planned node does. The first seven are inserted by the planner or come from Copy nodes.
//   kUpload, kDownload, kDeviceCopy, kPeerCopy   copies instance `src` to instance `dst`, on a stream
//   kStageIn, kStageOut                          copies unpinned bound memory by host threads: to or from the slot's
//                                                pinned instance or, if the other side is on a device, all the way
//                                                there through the runtime's ring
//   kHostCopy                                    a Copy node within host memory, on a worker
//   kHostcall                                    a Host node, on a stream: a kernel makes the hostcall and waits for it
//   kGate                                        nothing, on a stream: where a construct begins and ends for others
//   kConditional                                 a construct, whose bodies have plans of their own: on a stream, a
//   graph
//                                                with a conditional node, or such a node of a graph
//   kControl                                     the same, driven by the host
enum class PlanKind : uint8_t {
  kUpload,
  kDownload,
  kDeviceCopy,
  kPeerCopy,
  kStageIn,
  kStageOut,
  kHostCopy,
  kFill,
  kParallelFor,
  kKernel,
  kLaunch,
  kHostcall,
  kGate,
  kConditional,
  kHost,
  kControl
};
constexpr bool IsHostKind(PlanKind k) {
  return k == PlanKind::kStageIn || k == PlanKind::kStageOut || k == PlanKind::kHostCopy || k >= PlanKind::kHost;
}

constexpr bool IsConstruct(PlanKind k) { return k == PlanKind::kConditional || k == PlanKind::kControl; }

// Whether the bound memory of a copy decides at launch if the copy is made.
enum class When : uint8_t { kAlways, kIfPinned, kIfNotPinned };

struct Use {
  InstanceId instance{};
  AccessMode mode = AccessMode::kRead;
  bool operator==(const Use&) const = default;
};

struct PlanNode {
  PlanKind kind = PlanKind::kHost;
  std::string name;  // as declared, or for inserted nodes "upload x", "download y", "stage x", ...
  DeclId decl{};  // none: inserted
  DeviceId device{};  // none on the host
  LaneId lane{};  // none on the host
  int32_t segment = -1;  // stream nodes: index in Plan::segments; host nodes: in Plan::host_steps
  int32_t priority = 0;
  double cost = 0;  // microseconds, an estimate
  InstanceId src{}, dst{};  // copies
  DeclId copy{};  // copies: the Copy node whose boxes they move, inserted or not
  PartId part{};  // inserted copies: the part of the buffer that they move; none: all of it, or the boxes of `copy`
  NodeId batch{};  // small copies: the first node of the batch; none: not in a batch
  When when = When::kAlways;
  absl::InlinedVector<Use, 6> uses;  // declared nodes: parallel to NodeDecl::accesses
  absl::InlinedVector<NodeId, 4> preds;  // predecessors, by TransitiveReduction, ascending
  bool operator==(const PlanNode&) const = default;
};

// kPeer: of copies from other devices, and of kernels that follow them.
enum class LaneKind : uint8_t { kCompute, kUpload, kDownload, kPeer };
constexpr bool HasKernels(LaneKind k) { return k == LaneKind::kCompute || k == LaneKind::kPeer; }
struct Lane {
  DeviceId device{};
  LaneKind kind = LaneKind::kCompute;
  int32_t priority = 0;
  bool operator==(const Lane&) const = default;
};

// An event. It may be recorded several times in a run: a wait is for the last record before it among the commands.
// Events used by host steps, States or the end of the run are recorded once.
struct PlanEvent {
  DeviceId device{};
  bool operator==(const PlanEvent&) const = default;
};

// One call of the driver: run a node on its lane (or `count` copies from node `arg` on, concurrently and in no order),
// record an event on a lane, or make a lane wait for an event. Or a step in the order of runs that use a State (`arg`
// is an index in Plan::states):
//   kStateWait     the lane waits for the last touches of the runs that this one follows; nothing later is submitted
//                  before those have been submitted
//   kStateWrite    from here on the run may have written the State
//   kStateDone     all of the use's `done_events` have been recorded
// Or a step for device memory bound at launch (`arg` is an index in Plan::external_deps):
//   kWaitExternal  the lane waits for the launch's external dependencies of the memory; nothing later is submitted
//                  before those have been submitted
// Or kGraph, only in a GraphSchedule (graph/plan/graph_schedule.h): a graph of nodes.
struct Command {
  enum class Op : uint8_t { kNode, kRecord, kWait, kStateWait, kStateWrite, kStateDone, kWaitExternal, kGraph };
  Op op = Op::kNode;
  LaneId lane{};
  int32_t arg = -1;  // node, event, State use or external dependency
  int32_t count = 1;  // kNode
  bool operator==(const Command&) const = default;
};

// Calls `f` with each node that the command runs.
template <class F>
void ForEachNode(const Command& command, F&& f) {
  if (command.op != Command::Op::kNode) return;
  for (int32_t n = command.arg; n < command.arg + command.count; ++n) f(NodeId(n));
}

// Commands that may be submitted together once `after_hosts` are done. Segments are submitted in order, which fixes the
// order of every lane; that is why waits can be dropped.
struct Segment {
  enum class Kind : uint8_t { kStream, kGraph, kControl };
  Kind kind = Kind::kStream;
  int32_t begin = 0, end = 0;  // Plan::commands
  std::vector<HostStepId> after_hosts;
  bool operator==(const Segment&) const = default;
};

// A host node: runs on a worker once the named steps are done and the named events, recorded by segments up to
// `after_segment`, are complete. A stage step that has nothing to copy still waits for these, since others wait
// only for it. One that joins waits only for the step before it: a worker does such steps in one go, and all of
// them for small copies.
struct HostStep {
  NodeId node{};
  bool joins = false;
  SegmentId after_segment{};
  std::vector<HostStepId> after_hosts;
  std::vector<EventId> after_events;
  bool operator==(const HostStep&) const = default;
};

inline constexpr int32_t kPartitionFrom = 64;  // commands that justify more than one thread to submit them
inline constexpr int64_t kPieceBytes = 64;  // bytes that a driver reads per copy of a batch

struct Arena {
  DeviceId device{};  // none: pinned host memory
  int64_t bytes = 0;  // for one slot
  bool shared = false;  // by all slots (PlanOptions::in_order)
  bool operator==(const Arena&) const = default;
};

// How the plan uses a State. Only the part between first and last touches is ordered with other runs: every step that
// touches the State's memory comes after a kStateWait on its own lane or on one it waits for, and before one of
// `done_events`. Each of these is recorded once per run, and serves no other order.
struct StateUse {
  BufferId buffer{};
  InstanceId instance{};
  bool written = false;
  std::vector<EventId> done_events;
  bool operator==(const StateUse&) const = default;
};

// Device memory that a launch binds. Every step that touches it comes after a kWaitExternal, as for States.
struct ExternalDep {
  BufferId buffer{};
  InstanceId instance{};
  bool operator==(const ExternalDep&) const = default;
};

struct Plan {
  std::string graph;
  uint64_t structure_hash = 0;  // of everything that determines the plan (graph/passes/canonical.h)
  Table<InstanceId, Instance> instances;
  Table<PartId, Region> parts;  // of buffers, for copies; each once
  Table<NodeId, PlanNode> nodes;  // in submission order (a topological order)
  Table<LaneId, Lane> lanes;
  Table<EventId, PlanEvent> events;
  Table<CommandId, Command> commands;
  Table<SegmentId, Segment> segments;
  Table<HostStepId, HostStep> host_steps;
  std::vector<StateUse> states;
  std::vector<ExternalDep> external_deps;
  // The epilogue ends a run in whatever state it is: it joins the lanes of each device and records `done_events`. A run
  // that has submitted all its segments may begin at `short_epilogue_begin`, which skips lanes that other waits cover.
  CommandId epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
  std::vector<EventId> done_events;  // one per device in use
  // Offset in the pinned arena of the tables of all batches, kPieceBytes per copy, in node order; -1: no batch.
  int64_t pieces_offset = -1;
  std::vector<Arena> arenas;  // pinned first, then one per device in use
  std::vector<std::string> remarks;  // what the planner dropped or decided, and why
  std::vector<std::string> shared_lanes;  // the same, about devices with fewer lanes than the plan is wide
  bool operator==(const Plan&) const = default;
};

// The devices that a plan may use, and their limits.
struct PlanDevice {
  std::string name;  // "cuda:0"
  bool is_cuda = false;
  int32_t driver = 0;  // events cannot order devices of different drivers
  int64_t memory_bytes = 0;
  std::string no_hostcalls{};  // why kernels there may not wait for host nodes; empty: they may
  base::KernelLimits limits{};
  std::vector<bool> reaches{};  // by device: whether kernels here can read its memory; missing: they cannot
  std::string model{};  // "NVIDIA H200"; placement moves nodes between devices of one model only
};
struct PlanOptions {
  Table<DeviceId, PlanDevice> devices;
  DeviceId default_device = 0;  // the device of nodes without a pin
  // Devices of nodes without a pin, instead; missing or none: the default one. Host nodes and constructs ignore it, and
  // so do buffers for which device memory is bound.
  Table<DeclId, DeviceId> placement{};
  bool in_construct = false;  // of a part of a construct that this device decides: it asks for Host nodes in any case
  int32_t max_lanes = 8;  // compute lanes per device; up to as many more, and at most 8, for copies from other devices
  int32_t slots = 1;  // the number of arenas checked against the device's memory and pinned_bytes
  bool in_order = false;  // all slots share the arenas on devices
  int64_t device_bytes = 0;  // limit of the arenas of each device; 0: the device's memory
  int64_t pinned_bytes = 0;  // limit of pinned memory; 0: none
  // Bound kHost buffers have a pinned instance in each slot, used if the bound memory is not pinned. Larger buffers
  // than this have none, and are staged through the runtime's ring of chunks.
  int64_t ring_from_bytes = int64_t{64} << 10;
  int32_t batch_from = 5;  // the fewest small copies between host and device that form a batch
  const void* runtime = nullptr;  // the runtime whose States the graph may use; an identity
  // Records no event twice, so that threads may submit lanes concurrently (src/runtime/program/partition.h). Plans too
  // short for that ignore it.
  bool events_once = false;
  Table<DeclId, double> costs;  // microseconds; missing or negative: guessed from the kind
};

// The most bytes that an inserted copy can move; of a Copy node's copy, those of the buffer that it writes.
inline int64_t MostBytes(const Plan& plan, const PlanNode& node) {
  return node.part >= 0 ? BytesOf(plan.parts[node.part]) : plan.instances[node.dst].bytes;
}

// Whether the plan's lanes are of more than one device.
inline bool IsOnSeveralDevices(const Plan& plan) {
  for (const Lane& lane : plan.lanes) {
    if (lane.device != plan.lanes.front().device) return true;
  }
  return false;
}

// Whether node `n` is in a batch, but not its first.
inline bool JoinsBatch(const Plan& plan, NodeId n) { return plan.nodes[n].batch >= 0 && plan.nodes[n].batch != n; }

// Plans a graph. Returns all mistakes, those collected while declaring included, in one Status; several are listed one
// per line under "graph 'g': 3 mistakes:".
// `before_pass` is told before each pass how many are over, and of how many; what it returns ends the planning unless
// OK.
using BeforePass = std::function<absl::Status(int done, int total)>;
absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options, const BeforePass& before_pass = {});
// The same mistakes, as far as they are found before anything is planned. Bodies of constructs count as nodes that run
// once each, in the order of their declarations.
absl::Status CheckGraph(const Model& model, const PlanOptions& options);

// The plan of a condition or body of a construct, with those of the constructs in it.
struct PartPlan {
  DeclId construct{};  // its node in the model around it
  ControlKind kind{};
  std::string label;  // "condition", "then", "case 0"
  const Plan* plan = nullptr;
  std::vector<PartPlan> parts{};
};

// The plan as text, one node per line, and as a Graphviz digraph.
std::string PrintText(const Plan& plan, const Model& model);
std::string PrintDot(const Plan& plan, const Model& model, const std::vector<PartPlan>& parts = {});

}  // namespace penstock::graph
