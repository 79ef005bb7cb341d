// The planner's output: what runs where, in which lane, after what, and in which memory. Pure data.
//
// A Plan holds no pointer, handle or clock: it can be printed, compared and tested without a device. Everything is an
// index into a flat array. The runtime walks `segments` and `commands` once a run and looks nothing up.
//
// Ownership: plain values. The Model a plan was made from must be kept beside it: callables and types live there.
// Threads:   immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "penstock/detail/model.h"
#include "src/base/kernel_limits.h"

namespace penstock::graph {

// Where an instance of a buffer lives.
//   kBound    the user's memory, known at launch; on `device` where that is not -1
//   kPinned   the slot's pinned memory
//   kDevice   the slot's arena on `device`
//   kState    the State's own memory on `device`, the same for all slots
enum class Space : uint8_t { kBound, kPinned, kDevice, kState };
// Whether the slot has memory for it.
constexpr bool InArena(Space s) { return s == Space::kPinned || s == Space::kDevice; }

// One copy of a buffer's contents in one place. A buffer has one instance for each place its data is needed in.
struct Instance {
  int32_t buffer = -1;       // Model::buffers
  Space space = Space::kDevice;
  int32_t device = -1;       // -1: in host memory
  int64_t bytes = 0;         // for the declared maximum
  int64_t offset = -1;       // in the arena of (space, device); -1 where there is none
  bool leased = false;       // kPinned: who leases the slot, or sets a parameter, fills it before the run
  bool stages = false;  // kPinned host fallback of a kHost buffer: the user's own memory takes its place when pinned
  bool operator==(const Instance&) const = default;
};

// Whether it is memory on a device that is not the slot's own.
constexpr bool IsLaunch(const Instance& i) {
  return i.space == Space::kState || (i.space == Space::kBound && i.device >= 0);
}

// What a planned node does. The first six are inserted by the planner or come from Copy nodes.
//   kUpload, kDownload, kDeviceCopy, kPeerCopy   from instance `src` to instance `dst`, on a stream
//   kStageIn, kStageOut                          what bound memory that is not pinned needs, by host threads: from it
//   or
//                                                to it, by way of the slot's pinned instance or, where the other side
//                                                is on a device, all the way there through the runtime's ring
//   kHostCopy                                    a Copy node between host memory, on a worker
//   kHostcall                                         a Host node, on a stream: a kernel asks for it and waits for its
//   end
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
  kHost
};
constexpr bool IsHostKind(PlanKind k) {
  return k == PlanKind::kStageIn || k == PlanKind::kStageOut || k == PlanKind::kHostCopy || k == PlanKind::kHost;
}

// Whether the bound memory a copy is from or to decides at launch if it is made.
enum class When : uint8_t { kAlways, kIfPinned, kIfNotPinned };

struct Use {
  int32_t instance = -1;
  AccessMode mode = AccessMode::kRead;
  bool operator==(const Use&) const = default;
};

struct PlanNode {
  PlanKind kind = PlanKind::kHost;
  std::string name;  // the declared name, or for inserted nodes "upload x", "download y", "stage x", ...
  int32_t decl = -1;  // Model::nodes; -1 when inserted
  int32_t device = -1;  // index in PlanOptions::devices; -1 on the host
  int32_t lane = -1;  // Plan::lanes; -1 on the host
  int32_t segment = -1;  // stream nodes: Plan::segments; host nodes: Plan::host_steps
  int32_t priority = 0;
  int32_t src = -1, dst = -1;  // copies: instances
  int32_t copy = -1;  // copies: the Copy node whose boxes they move, inserted or not; -1: whole buffers
  int32_t batch = -1;  // small copies: the first node of those submitted together; -1: on its own
  When when = When::kAlways;
  absl::InlinedVector<Use, 6> uses;  // declared nodes: parallel to NodeDecl::accesses
  absl::InlinedVector<int32_t, 4> preds;  // nodes that must be done before, by TransitiveReduction, ascending
  bool operator==(const PlanNode&) const = default;
};

enum class LaneKind : uint8_t { kCompute, kUpload, kDownload };
struct Lane {
  int32_t device = -1;
  LaneKind kind = LaneKind::kCompute;
  int32_t priority = 0;
  bool operator==(const Lane&) const = default;
};

// May be recorded several times in a run: a wait is for the last record before it among the commands. Those that host
// steps, States or the end of the run look at are recorded once.
struct PlanEvent {
  int32_t device = -1;
  bool operator==(const PlanEvent&) const = default;
};

// One call of the driver: run a node on its lane (or `count` copies from node `arg` on, at once and in no order),
// record an event on a lane, or make a lane wait for an event. Or a step in the order of runs that use a State (`arg`
// is an entry of Plan::states):
//   kStateWait    the lane waits for the last touches of the runs this one follows; nothing later is submitted before
//                 those have been
//   kStateWrite   from here on the run may have written the State
//   kStateDone    all of the use's `done_events` have been recorded
// Or, where `arg` is an entry of Plan::external_deps:
//   kWaitExternal    the lane waits for what the launch has said must be done before the memory may be touched; nothing
//                 later is submitted before that has been
// Or, in a GraphSchedule (graph/plan/graph_schedule.h) only, kGraph: a graph of nodes.
struct Command {
  enum class Op : uint8_t { kNode, kRecord, kWait, kStateWait, kStateWrite, kStateDone, kWaitExternal, kGraph };
  Op op = Op::kNode;
  int32_t lane = -1;
  int32_t arg = -1;  // node, event, state use or external_dep
  int32_t count = 1;  // kNode
  bool operator==(const Command&) const = default;
};

// Calls `f` with each node that the command runs.
template <class F>
void ForEachNode(const Command& command, F&& f) {
  if (command.op != Command::Op::kNode) return;
  for (int32_t n = command.arg; n < command.arg + command.count; ++n) f(static_cast<size_t>(n));
}

// Commands that may be submitted in one go once `after_hosts` are done. Segments are submitted in the order they stand
// in, so the order of every lane is fixed; that is what lets waits be dropped.
struct Segment {
  enum class Kind : uint8_t { kStream, kGraph, kControl };
  Kind kind = Kind::kStream;
  int32_t begin = 0, end = 0;  // Plan::commands
  std::vector<int32_t> after_hosts;  // Plan::host_steps
  bool operator==(const Segment&) const = default;
};

// A host node: runs on a worker once the named steps are done and the named events, recorded by segments up to
// `after_segment`, are complete. A stage step that has nothing to copy still waits for these: others wait for it alone.
// One that joins waits for nothing but the step before it: a worker does these in one go, small copies all of them.
struct HostStep {
  int32_t node = -1;
  bool joins = false;
  int32_t after_segment = -1;  // -1: none
  std::vector<int32_t> after_hosts;
  std::vector<int32_t> after_events;
  bool operator==(const HostStep&) const = default;
};

inline constexpr int32_t kPartitionFrom = 64;  // commands that are worth more than one thread to submit them
inline constexpr int64_t kPieceBytes = 64;  // what a driver reads of each copy of a batch

struct Arena {
  int32_t device = -1;  // -1: pinned host memory
  int64_t bytes = 0;  // for one slot
  bool operator==(const Arena&) const = default;
};

// How the plan uses a State. Only what lies between its first and last touches is ordered with other runs: every step
// that touches the State's memory comes behind a kStateWait on its own lane or on one it waits for, and before one of
// `done_events`. Each of these is recorded once a run, on behalf of nobody else's order.
struct StateUse {
  int32_t buffer = -1;  // Model::buffers
  int32_t instance = -1;
  bool written = false;
  std::vector<int32_t> done_events;
  bool operator==(const StateUse&) const = default;
};

// Device memory that a launch binds. Every step that touches it comes behind a kWaitExternal, as for States.
struct ExternalDep {
  int32_t buffer = -1;  // Model::buffers
  int32_t instance = -1;
  bool operator==(const ExternalDep&) const = default;
};

struct Plan {
  std::string graph;
  uint64_t structure_hash = 0;  // of all that decides the plan (graph/passes/canonical.h)
  std::vector<Instance> instances;
  std::vector<PlanNode> nodes;  // in submission order (a topological order)
  std::vector<Lane> lanes;
  std::vector<PlanEvent> events;
  std::vector<Command> commands;
  std::vector<Segment> segments;
  std::vector<HostStep> host_steps;
  std::vector<StateUse> states;
  std::vector<ExternalDep> external_deps;
  // What ends a run, in whatever state it is: the lanes of each device are joined and `done_events` recorded. A run
  // that has submitted all its segments may begin at `short_epilogue_begin`: lanes that other waits cover are left out
  // there.
  int32_t epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;  // Plan::commands
  std::vector<int32_t> done_events;  // one a device in use
  // In the pinned arena: room to list the copies of all batches, kPieceBytes each, in the order of nodes; -1: no batch.
  int64_t pieces_offset = -1;
  std::vector<Arena> arenas;  // pinned first, then one a device in use
  std::vector<std::string> notes;  // what the planner dropped or decided, and why
  bool operator==(const Plan&) const = default;
};

// The devices a plan may use and what limits it.
struct PlanDevice {
  std::string name;  // "cuda:0"
  bool is_cuda = false;
  int32_t driver = 0;  // devices of different drivers cannot be joined by events
  int64_t memory_bytes = 0;
  bool hostcalls = true;  // whether kernels may wait there for host nodes
  base::KernelLimits limits{};
};
struct PlanOptions {
  std::vector<PlanDevice> devices;
  int32_t default_device = 0;  // of nodes without a pin
  int32_t max_lanes = 8;  // compute lanes a device
  int32_t slots = 1;  // arenas are checked against the device's memory, and pinned_bytes, for this many
  int64_t device_bytes = 0;  // limit of the arenas of each device; 0: the device's memory
  int64_t pinned_bytes = 0;  // limit of pinned memory; 0: none
  // Bound buffers of kHost memory have a pinned instance in each slot, for when it is not pinned; those of more bytes
  // than this have none and are staged through the runtime's ring of chunks.
  int64_t ring_from_bytes = int64_t{64} << 10;
  int32_t batch_from = 5;  // copies between host and device that are submitted together, if each has few bytes
  const void* runtime = nullptr;  // whose States the graph may use; an identity
  // No event is recorded twice, so that threads may submit lanes side by side (src/runtime/program/partition.h); but in
  // plans that are too short for it.
  bool events_once = false;
  std::vector<double> costs;  // microseconds by Model::nodes; missing or negative: guessed from the kind
};

// Whether node `n` is one of a batch and not its first.
inline bool JoinsBatch(const Plan& plan, size_t n) {
  return plan.nodes[n].batch >= 0 && plan.nodes[n].batch != static_cast<int32_t>(n);
}

// Plans a graph. Every mistake found, with those collected while declaring, comes back in one Status; several are
// listed one a line under "graph 'g': 3 mistakes:".
absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options);

// The plan as text, one node a line, and as a Graphviz digraph.
std::string PrintText(const Plan& plan, const Model& model);
std::string PrintDot(const Plan& plan, const Model& model);

}  // namespace penstock::graph
