// A Plan turned into what a slot needs: flat commands, each node's argument locations, and what a launch must patch.
//
// Compile makes a Program once, and all slots share it. It resolves everything that can be known before a launch, so a
// launch touches only what its bindings change.
//
// Threads: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/common/csr_rows.h"
#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "src/driver/driver.h"
#include "src/runtime/program/commands.h"
#include "src/runtime/program/partition.h"

namespace penstock::runtime {

// A copy between instances, from a box to one of the same shape (`box` as in PointerPatch).
struct CopyEntry {
  int32_t node = -1, src = -1, dst = -1;
  int32_t src_box = -1, dst_box = -1;
  driver::CopyKind kind = driver::CopyKind::kHostToDevice;
  bool varies = false;  // launches decide its source, destination or size
  bool may_have_rows = false;  // on some side and for some parameters its rows are not contiguous
  int32_t bound = -1;  // the copy is made only if the memory bound to this buffer is pinned; -1: always
};

// Copies that are submitted together: a range of Program::copies, listed in the slot's pinned memory from entry
// `pieces` on.
struct BatchEntry {
  int32_t first = 0, count = 0;
  int32_t pieces = 0;
};

struct FillEntry {
  int32_t node, instance;
  int32_t box;  // as in PointerPatch
  bool dynamic;  // it depends on parameters
  bool varies;  // it is dynamic, or its memory is bound
};

// A node with arguments: a kernel, a Launch node or a host callable. Its block is at `block` in the slot's argument
// bytes, its argv at `argv`.
struct CallEntry {
  int32_t node, decl;
  uint32_t block, argv;
  uint32_t align = 16;  // of the block
  // In ArgumentImage::pointer_offsets, relative to the block; the offsets for `refs` follow.
  uint32_t pointers = 0, pointer_count = 0, ref_count = 0;
  driver::KernelCode kernel{};
  // The variants that read parameters by reference, if there are graphs; a null `range_by_ref` means none.
  driver::KernelCode kernel_by_ref{};
  void (*range_by_ref)(void* const* argv, int64_t first, int64_t end) = nullptr;
  bool dynamic_range = false;  // extent or grid depends on parameters
  bool varies = false;  // launches decide some of its arguments, or its grid
};

// What a launch writes at `at` in the argument bytes of `call` (Program::calls).
struct ParamPatch {
  uint32_t param, at, size;
  int32_t call;
};
// `box` is an index in SlotTables::boxes: the model's buffers, then Program::slices.
struct PointerPatch {
  int32_t instance, box;
  uint32_t at;
};
// A parameter that may be read by reference: the position of its address in the argument bytes, and its entry in argv.
struct RefPatch {
  uint32_t param, at, argv;
};
struct ShapePatch {  // the dimensions of a View
  int32_t box;
  uint32_t element_bytes, at;
};
struct RangePatch {  // a detail::Range
  int32_t call;  // Program::calls
  uint32_t at;
};

// An access to part of a buffer.
struct SliceEntry {
  int32_t decl, access;
  bool span;  // the callable takes it as a span
  bool dynamic;  // it depends on parameters
};

// A host callable, or a copy by host threads.
struct HostEntry {
  int32_t call = -1;  // Program::calls
  int32_t steps = 1;  // steps that a worker does in one task, from this one on; 0: an earlier step's task includes it
  CopyEntry copy{};  // `bound`: made only if the memory bound to that buffer is not pinned
  int32_t ring = -1;  // the entry in RunSlot::staged if one side is on a device
  bool past_caches = false;  // a CUDA device next reads what it writes, over the bus
};

// A Host node that a device calls by a hostcall, with the code that does so.
struct HostcallEntry {
  int32_t node, call;  // Plan::nodes, Program::calls
  bool inline_call;  // called by the poller itself
  driver::LibraryCode code;
};

// A lane that waits before it touches bound device memory.
struct ExternalDepLane {
  int32_t external_dep = -1, lane = -1;
};

// An event that host steps wait for, and the segment that records it.
struct WatchedEvent {
  int32_t event, segment;
};

// What a slot submits in one of the modes. Segments are parallel to Plan::segments; the epilogue is as in Plan.
struct Schedule {
  std::vector<ExecCommand> commands;
  graph::CsrRows nodes;  // for each command: the plan nodes that it runs
  std::vector<graph::Segment> segments;
  int32_t epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
  std::vector<ExternalDepLane> external_dep_lanes;  // sorted by external_dep
  std::vector<int32_t> lanes;  // of all commands, each once
  std::vector<LanePartition> partitions;  // ranges that several threads submit, in order
  std::vector<std::vector<WatchedEvent>> watched;  // one row for each lane that has some, in recording order
};

// Which steps and segments wait for which host steps and events. Steps are those of Plan::host_steps that begin a task;
// segments are those of either schedule.
struct HostWaits {
  graph::CsrRows after_step, after_event;  // for each step and each event: the steps that wait for it
  graph::CsrRows segments_after;  // for each step: the segments that wait for it
  std::vector<int32_t> of_step, of_segment;  // the number of steps and events that each waits for
  std::vector<int32_t> first;  // steps that wait for nothing
};

// A node of one of the graphs; `op` and `index` are as in ExecCommand. A Launch node is kLaunch, also on host devices,
// and becomes a child graph of what was captured from it.
struct GraphNodeEntry {
  ExecCommand::Op op;
  int32_t index;
  int32_t node;
  bool varies;  // it may differ from launch to launch
};

// The graphs of Program::graphs. Graph g has the entries [begin[g], begin[g + 1]); row e of `preds` names the
// predecessors of entry e in the same graph, counted from the graph's first entry.
struct GraphProgram {
  int32_t lane = -1;
  std::vector<GraphNodeEntry> entries;
  std::vector<int32_t> begin{0};
  graph::CsrRows preds;
  std::vector<int32_t> varying;  // entries that vary
  std::vector<int32_t> launch;  // entries of Launch nodes
  std::vector<int32_t> of_call, of_fill;  // Program::calls and fills -> entry, or -1
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
  std::vector<uint32_t> begin;  // for each parameter, and one past the end: its first patch
  graph::CsrRows of_call;  // for each call: entries of `patches`
  std::vector<uint32_t> at;  // for each parameter: its offset in SlotTables::param_bytes
  uint32_t bytes = 0;  // the size of SlotTables::param_bytes
  std::vector<int32_t> instance;  // for each parameter: the pinned instance that nodes read it from (OnDevice), or -1
  std::vector<RefPatch> refs;
  std::vector<bool> shaping;  // some extent, slice or grid depends on it
};

// What a launch writes into a slot besides parameters: the fixed patches once for each slot, the bound ones whenever
// memory is bound, the dynamic ones whenever a parameter changes that shapes something.
struct SlotPatches {
  std::vector<PointerPatch> fixed_pointers, bound_pointers;
  std::vector<ShapePatch> fixed_shapes, dynamic_shapes;
  std::vector<RangePatch> fixed_ranges, dynamic_ranges;
  std::vector<int32_t> dynamic_grids;  // calls of Kernel nodes
  std::vector<int32_t> bound_copies;  // copies with a bound side or with boxes that depend on parameters
  std::vector<int32_t> bound_fills;  // fills of bound memory
};

// Facts about the model's buffers, by index.
struct BufferTables {
  std::vector<bool> dynamic;  // its extent, or the offset of an alias, depends on a parameter
  std::vector<int32_t> staged;  // its staging instance, or -1
  std::vector<int32_t> bound;  // its bound instance, or -1
  std::vector<bool> written;  // some node writes it
  std::vector<int32_t> max_alignment_alias;  // its alias of the type with the largest alignment, or -1
  int32_t leased = -1;  // some buffer declared kSlot that has memory in the slot; -1: none
};

struct Program {
  Schedule stream;  // its commands are parallel to Plan::commands
  Schedule graphs;  // has no commands if there are no graphs
  GraphProgram replay;
  std::vector<bool> marked_lanes;  // lanes with watermarks (ExecCommand::FlowControl)
  std::vector<CopyEntry> copies;
  std::vector<BatchEntry> batches;
  std::vector<FillEntry> fills;
  std::vector<CallEntry> calls;
  std::vector<HostEntry> hosts;  // parallel to Plan::host_steps
  HostWaits host_waits;
  std::vector<HostcallEntry> hostcalls;
  std::vector<SliceEntry> slices;
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
  driver::KernelCode by_ref{};
  driver::LibraryCode ask{};
};

// `kernels[n]`: the kernels of plan node n. `cuda[d]`: whether device d is a CUDA device. `graphs`: null if there are
// none. `streams`: whether runs may be submitted on streams. `timed`: whether events are recorded before and after
// nodes. `submission_threads[d]`: the number of threads that may help to submit to device d.
Program BuildProgram(const Model& model, const graph::Plan& plan, const std::vector<LoadedKernel>& kernels,
                     const std::vector<bool>& cuda, const graph::GraphSchedule* graphs, bool streams, bool timed,
                     const std::vector<int>& submission_threads);

// The value of a dimension, given the values of all parameters as integers.
inline int64_t ValueOf(const Dim& dim, const std::vector<int64_t>& params) {
  return dim.is_constant() ? dim.value : params[static_cast<size_t>(dim.param)];
}
Shape ShapeOf(const Extent& extent, const std::vector<int64_t>& params);
bool IsDynamic(const Extent& extent);
bool IsDynamic(const Box& box);

}  // namespace penstock::runtime
