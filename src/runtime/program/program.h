// A Plan turned into what a slot needs: flat commands, each node's argument locations, and what a launch must patch.
//
// Compile makes a Program once, and all slots share it. It resolves everything that can be known before a launch, so a
// launch touches only what its bindings change.
//
// Threads: immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/common/csr_rows.h"
#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "graph/plan/worker_schedule.h"
#include "src/driver/driver.h"
#include "src/runtime/program/commands.h"
#include "src/runtime/program/partition.h"

namespace penstock::runtime {

// Indices of a Program's records. A box is one of the model's buffers or, from their number on, one of Program::slices.
using CopyId = Id<struct CopyTag>;
using BatchId = Id<struct BatchTag>;
using FillId = Id<struct FillTag>;
using CallId = Id<struct CallTag>;
using HostcallId = Id<struct HostcallTag>;
using BoxId = Id<struct BoxTag>;
using EntryId = Id<struct EntryTag>;  // GraphProgram::entries
using graph::GraphId;
using graph::RegionId;

// A copy between instances, from a box to one of the same shape.
struct CopyEntry {
  NodeId node{};
  InstanceId src{}, dst{};
  BoxId src_box{}, dst_box{};
  driver::CopyKind kind = driver::CopyKind::kHostToDevice;
  bool varies = false;  // launches decide its source, destination or size
  bool may_have_rows = false;  // on some side and for some parameters its rows are not contiguous
  BufferId bound{};  // the copy is made only if the memory bound to this buffer is pinned; none: always
};

// Copies that are submitted together: a range of Program::copies, listed in the slot's pinned memory from entry
// `pieces` on.
struct BatchEntry {
  CopyId first = 0;
  int32_t count = 0;
  int32_t pieces = 0;
};

struct FillEntry {
  NodeId node;
  InstanceId instance;
  BoxId box;
  bool dynamic;  // it depends on parameters
  bool varies;  // it is dynamic, or its memory is bound
};

// A node with arguments: a kernel, a Launch node or a host callable. Its block is at `block` in the slot's argument
// bytes, its argv at `argv`.
struct CallEntry {
  NodeId node;
  DeclId decl;
  uint32_t block, argv;
  uint32_t align = 16;  // of the block
  // In ArgumentImage::pointer_offsets, relative to the block; the offsets for `refs` follow.
  uint32_t pointers = 0, pointer_count = 0, ref_count = 0;
  driver::KernelCode kernel{};
  // The variants that read parameters by reference, if there are graphs; a null `indirect_range` means none.
  driver::KernelCode indirect_kernel{};
  std::array<uint32_t, 3> threads{};  // of a block of a Kernel or Task
  uint64_t task = 0;  // see LoadedKernel
  void (*indirect_range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  bool dynamic_range = false;  // extent or grid depends on parameters
  bool varies = false;  // launches decide some of its arguments, or its grid
};

// What a launch writes at `at` in the argument bytes of `call` (Program::calls).
struct ParamPatch {
  uint32_t param, at, size;
  CallId call;
};
struct PointerPatch {
  InstanceId instance;
  BoxId box;
  uint32_t at;
};
// A parameter that may be read by reference: the position of its address in the argument bytes of `call`, and its entry
// in argv.
struct RefPatch {
  uint32_t param, at, argv;
  CallId call;
};
struct ShapePatch {  // the dimensions of a View
  BoxId box;
  uint32_t element_bytes, at;
};
struct RangePatch {  // a detail::Range
  CallId call;
  uint32_t at;
};

// An access to part of a buffer, or a part of one that an inserted copy moves.
struct SliceEntry {
  DeclId decl{};
  int32_t access = -1;
  BufferId buffer{};  // for a copy: the buffer, and the most that it moves (Plan::parts)
  graph::PartId part{};
  bool span = false;  // the callable takes it as a span
  bool dynamic = false;  // it depends on parameters
};

// A host callable, a copy by host threads, or a construct.
struct HostEntry {
  CallId call{};
  int32_t steps = 1;  // steps that a worker does in one task, from this one on; 0: an earlier step's task includes it
  CopyEntry copy{};  // `bound`: made only if the memory bound to that buffer is not pinned
  int32_t ring = -1;  // the entry in RunSlot::staged if one side is on a device
  bool past_caches = false;  // a CUDA device next reads what it writes, over the bus
  bool runs_inline = false;  // a task of small copies: whoever advances the run makes them
  int32_t control = -1;  // a construct: its number, in the order of their steps
  bool copies() const { return call < 0 && control < 0; }
};

// A Host node that a device calls by a hostcall, with the code that does so.
struct HostcallEntry {
  NodeId node;
  CallId call;
  bool inline_call;  // called by the poller itself
  driver::LibraryCode code;
};

// A lane that waits before it touches bound device memory.
struct ExternalDepLane {
  int32_t external_dep = -1;
  LaneId lane{};
};

// An event that host steps wait for, and the segment that records it.
struct WatchedEvent {
  EventId event;
  SegmentId segment;
};

// What a slot submits in one of the modes. Segments are parallel to Plan::segments; the epilogue is as in Plan.
struct Schedule {
  Table<CommandId, ExecCommand> commands;
  graph::CsrRows nodes;  // for each command: the plan nodes that it runs
  Table<SegmentId, graph::Segment> segments;
  CommandId epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
  std::vector<ExternalDepLane> external_dep_lanes;  // sorted by external_dep
  std::vector<LaneId> lanes;  // of all commands, each once
  int most_on_a_lane = 0;  // commands; see tuning::kMostOutstanding
  std::vector<LanePartition> partitions;  // ranges that several threads submit, in order
  Table<LaneId, std::vector<WatchedEvent>> watched;  // one row for each lane that has some, in recording order
};

// Which steps and segments wait for which host steps and events. Steps are those of Plan::host_steps that begin a task;
// segments are those of either schedule.
struct HostWaits {
  graph::CsrRows after_step, after_event;  // for each step and each event: the steps that wait for it
  graph::CsrRows segments_after;  // for each step: the segments that wait for it
  Table<HostStepId, int32_t> of_step;  // the number of steps and events that each waits for
  Table<SegmentId, int32_t> of_segment;  // the same
  std::vector<HostStepId> first;  // steps that wait for nothing
};

// A node of one of the graphs; `op` and `index` are as in ExecCommand. A Launch node is kLaunch, also on host devices,
// and becomes a child graph of what was captured from it.
struct GraphNodeEntry {
  ExecCommand::Op op;
  int32_t index;
  NodeId node;
  bool varies;  // it may differ from launch to launch
};

// A region (graph/plan/graph_schedule.h): its nodes, and what orders them.
struct RegionEntry {
  std::vector<GraphNodeEntry> nodes;
  std::vector<driver::RegionOp::Edge> edges;
  // On a CUDA device.
  graph::WorkerSchedule schedule;
  driver::KernelCode kernel{};
};

// The graphs of Program::graphs. Graph g has the entries [begin[g], begin[g + 1]); row e of `preds` names the
// predecessors of entry e in the same graph, counted from the graph's first entry.
struct GraphProgram {
  LaneId lane{};
  Table<EntryId, GraphNodeEntry> entries;
  Table<GraphId, EntryId> begin{0};
  graph::CsrRows preds;
  std::vector<EntryId> varying;  // entries that vary
  std::vector<EntryId> launch;  // entries of Launch nodes
  std::vector<int32_t> conditionals;  // the constructs among the entries
  Table<RegionId, RegionEntry> regions;
  Table<CallId, EntryId> of_call;  // that has its node, alone or in a region; none: it is in no graph
  Table<FillId, EntryId> of_fill;
  int32_t graphs() const { return static_cast<int32_t>(begin.size()) - 1; }
};

// The argument bytes of a new slot, and where the argv of each call points into them.
struct ArgumentImage {
  std::vector<std::byte> image;
  uint32_t align = 1;  // the alignment of the strictest argument block
  std::vector<uint32_t> argv;  // argv entries as offsets into `image`
  std::vector<uint32_t> pointer_offsets;  // of all calls (CallEntry::pointers)
};

// The parameters of the graph: which bytes hold them, and what depends on them.
struct ParamTables {
  std::vector<ParamPatch> patches;  // written whenever the parameter changes; sorted by parameter
  Table<ParamId, uint32_t> begin;  // for each parameter, and one past the end: its first patch
  graph::CsrRows of_call;  // for each call: entries of `patches`
  Table<ParamId, uint32_t> at;  // for each parameter: its offset in SlotTables::param_bytes
  uint32_t bytes = 0;  // the size of SlotTables::param_bytes
  Table<ParamId, InstanceId> instance;  // the pinned instance that nodes read it from (OnDevice), if any
  std::vector<RefPatch> refs;
  Table<ParamId, bool> shaping;  // some extent, slice or grid depends on it
};

// What a launch writes into a slot besides parameters: the fixed patches once for each slot, the bound ones whenever
// memory is bound, the dynamic ones whenever a parameter changes that shapes something.
struct SlotPatches {
  std::vector<PointerPatch> fixed_pointers, bound_pointers;
  std::vector<ShapePatch> fixed_shapes, dynamic_shapes;
  std::vector<RangePatch> fixed_ranges, dynamic_ranges;
  std::vector<CallId> dynamic_grids;  // of Kernel nodes
  std::vector<CopyId> bound_copies;  // copies with a bound side or with boxes that depend on parameters
  std::vector<FillId> bound_fills;  // fills of bound memory
};

// Facts about the model's buffers.
struct BufferTables {
  Table<BufferId, bool> dynamic;  // its extent, or the offset of an alias, depends on a parameter
  Table<BufferId, InstanceId> staged;  // its staging instance, if any
  Table<BufferId, InstanceId> bound;  // its bound instance, if any
  Table<BufferId, bool> written;  // some node writes it
  Table<BufferId, BufferId> max_alignment_alias;  // its alias of the type with the largest alignment, if any
  BufferId leased{};  // some buffer declared kSlot that has memory in the slot, if any
};

// The count of an Output, which a run leaves in its slot.
struct CountEntry {
  BufferId output{};
  InstanceId instance{};  // where it is
  TypeInfo type;  // an integer
  Dim most;  // the most that it counts as
};

struct Program {
  Schedule stream;  // its commands are parallel to Plan::commands; none if runs are never submitted on streams
  Schedule graphs;  // has no commands if there are no graphs
  GraphProgram replay;
  Table<LaneId, bool> marked_lanes;  // lanes with watermarks (ExecCommand::FlowControl)
  // The lanes and events that a schedule or the capture of a Launch node needs. A slot makes no others.
  Table<LaneId, bool> used_lanes;
  Table<EventId, bool> used_events;
  Table<CopyId, CopyEntry> copies;
  Table<BatchId, BatchEntry> batches;
  Table<FillId, FillEntry> fills;
  Table<CallId, CallEntry> calls;
  Table<HostStepId, HostEntry> hosts;  // parallel to Plan::host_steps
  HostWaits host_waits;
  Table<HostcallId, HostcallEntry> hostcalls;
  std::vector<SliceEntry> slices;
  std::vector<CountEntry> counts;
  int32_t staged_copies = 0;  // `hosts` that go through the ring
  ArgumentImage args;
  ParamTables params;
  SlotPatches patches;
  BufferTables buffers;
  bool dynamic = false;  // some extent, slice or grid depends on a parameter
};

// The loaded kernels of a node, if it has any.
struct LoadedKernel {
  driver::KernelCode by_value{};
  driver::KernelCode indirect{};
  driver::BlockSize by_occupancy{};  // of a node that asks for it
  driver::LibraryCode hostcall{};
  driver::KernelCode region{};  // the kernel of regions that may have the node
  uint64_t task = 0;  // the address of its device function in these
};
using LoadedKernels = Table<NodeId, LoadedKernel>;

// What a Program is made from. The references need to be valid only during BuildProgram.
struct ProgramOptions {
  const Model& model;
  const graph::Plan& plan;
  const LoadedKernels& kernels;
  const Table<DeviceId, bool>& cuda;  // whether a device is a CUDA device
  const Table<DeviceId, int>& submission_threads;  // how many threads may help to submit to a device
  const graph::GraphSchedule* graphs = nullptr;  // null: there are none
  int32_t most_workers = 1;  // of a region on a CUDA device
  bool streams = true;  // runs may be submitted on streams
  bool timed = false;  // events are recorded before and after nodes
};
Program BuildProgram(const ProgramOptions& options);

// The value of a dimension, given the values of all parameters as integers.
inline int64_t ValueOf(const Dim& dim, const std::vector<int64_t>& params) {
  return dim.is_constant() ? dim.value : params[dim.param];
}
Shape ShapeOf(const Extent& extent, const std::vector<int64_t>& params);
bool IsDynamic(const Extent& extent);
bool IsDynamic(const Box& box);

}  // namespace penstock::runtime
