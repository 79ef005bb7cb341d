// A Plan turned into what a slot needs: flat commands, where each node's arguments lie, and what a launch must patch.
//
// A Program is made once by Compile and shared by all slots. Everything that can be known before a launch is resolved
// here, so that a launch touches only what its bindings change.
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

// Between instances, from a box to one of the same shape (`box` as in PointerPatch).
struct CopyEntry {
  int32_t node = -1, src = -1, dst = -1;
  int32_t src_box = -1, dst_box = -1;
  driver::CopyKind kind = driver::CopyKind::kHostToDevice;
  bool varies = false;  // launches decide where it is from or to, or how large it is
  bool may_have_rows = false;  // that lie apart, on some side, for some parameters
  int32_t bound = -1;  // made only in runs where the memory bound to this buffer is pinned; -1: always
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

// A node with arguments: kernel, foreign launch or host callable. Its block lies at `block` in the slot's argument
// bytes, its argv at `argv`.
struct CallEntry {
  int32_t node, decl;
  uint32_t block, argv;
  uint32_t align = 16;  // of the block
  // In ArgumentImage::pointer_offsets, relative to the block; those of `refs` lie behind.
  uint32_t pointers = 0, pointer_count = 0, ref_count = 0;
  driver::KernelCode kernel{};
  // The same for parameters by reference, where there are graphs; `range_by_ref` null says that there is none.
  driver::KernelCode kernel_by_ref{};
  void (*range_by_ref)(void* const* argv, int64_t first, int64_t end) = nullptr;
  bool dynamic_range = false;  // extent or grid depends on parameters
  bool varies = false;  // launches decide some of its arguments, or its grid
};

// What a launch writes into the argument bytes at `at`, which are those of `call` (Program::calls).
struct ParamPatch {
  uint32_t param, at, size;
  int32_t call;
};
// `box` counts in SlotTables::boxes: the model's buffers, then Program::slices.
struct PointerPatch {
  int32_t instance, box;
  uint32_t at;
};
// A parameter that may be read by reference: where its address lies in the argument bytes, and its entry of argv.
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

// An access to a part of a buffer.
struct SliceEntry {
  int32_t decl, access;
  bool span;  // the callable gets a span of it
  bool dynamic;  // it depends on parameters
};

// A host callable, or a copy by host threads.
struct HostEntry {
  int32_t call = -1;  // Program::calls
  int32_t steps = 1;  // that a worker does in one go, from this one on; 0: it is one of those
  CopyEntry copy{};  // `bound`: made only where its memory is not pinned
  int32_t ring = -1;  // RunSlot::staged, where one side is on a device
  bool past_caches = false;  // what it writes a CUDA device reads next, over the bus
};

// A Host node that a device asks for, by that code.
struct HostcallEntry {
  int32_t node, call;  // Plan::nodes, Program::calls
  bool inline_call;  // by the poller
  driver::LibraryCode code;
};

// A lane that waits before it touches device memory that is bound.
struct ExternalDepLane {
  int32_t external_dep = -1, lane = -1;
};

// An event that host steps wait for, and the segment that records it.
struct WatchedEvent {
  int32_t event, segment;
};

// What a slot submits in one of the modes. Segments are parallel to Plan::segments; `finish_*` are as in Plan.
struct Schedule {
  std::vector<ExecCommand> commands;
  graph::CsrRows nodes;  // of each command: the plan nodes it runs
  std::vector<graph::Segment> segments;
  int32_t epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
  std::vector<ExternalDepLane> external_dep_lanes;  // by external_dep
  std::vector<int32_t> lanes;  // of all commands, each once
  std::vector<LanePartition> partitions;  // ranges that several threads submit, in order
  std::vector<std::vector<WatchedEvent>> watched;  // a row for each lane with some, in the order they are recorded in
};

// Who waits for which host step or event. Steps are those of Plan::host_steps that begin a task; segments those of
// either schedule.
struct HostWaits {
  graph::CsrRows after_step, after_event;  // of each step and each event: the steps that wait for it
  graph::CsrRows segments_after;  // of each step: the segments that wait for it
  std::vector<int32_t> of_step, of_segment;  // for how many steps and events each waits
  std::vector<int32_t> first;  // steps that wait for nothing
};

// A node of one of the graphs; `op` and `index` as in ExecCommand. A Launch node is kForeign, on host devices too: a
// child, of what was captured of it.
struct GraphNodeEntry {
  ExecCommand::Op op;
  int32_t index;
  int32_t node;
  bool varies;  // from launch to launch
};

// The graphs of Program::graphs: graph g has the entries [begin[g], begin[g + 1]), and row e of `preds` names those of
// the same graph that come before entry e, counted from the graph's first.
struct GraphProgram {
  int32_t lane = -1;
  std::vector<GraphNodeEntry> entries;
  std::vector<int32_t> begin{0};
  graph::CsrRows preds;
  std::vector<int32_t> varying;  // entries that do
  std::vector<int32_t> launch;  // entries of Launch nodes
  std::vector<int32_t> of_call, of_fill;  // Program::calls, fills -> entry, or -1
  int32_t graphs() const { return static_cast<int32_t>(begin.size()) - 1; }
};

// The argument bytes of a fresh slot, and where the argv of each call points into them.
struct ArgumentImage {
  std::vector<std::byte> image;
  uint32_t align = 1;  // what the strictest argument block asks for
  std::vector<uint32_t> argv;  // argv entries as offsets into `image`
  std::vector<uint32_t> pointer_offsets;  // of all calls (CallEntry::pointers)
};

// The parameters of the graph: which bytes hold them, and who depends on them.
struct ParamTables {
  std::vector<ParamPatch> patches;  // whenever the parameter has another value; by parameter
  std::vector<uint32_t> begin;  // of each parameter and one more: its first patch
  graph::CsrRows of_call;  // of each call: entries of `patches`
  std::vector<uint32_t> at;  // of each parameter: where SlotTables::param_bytes has it
  uint32_t bytes = 0;  // of all of them
  std::vector<int32_t> instance;  // of each parameter: the pinned one that nodes have it from (OnDevice), or -1
  std::vector<RefPatch> refs;
  std::vector<bool> shaping;  // some extent, slice or grid depends on it
};

// What a launch writes into a slot besides parameters: the fixed ones once for each slot, the bound ones whenever
// memory is bound, the dynamic ones whenever a parameter that shapes something differs.
struct SlotPatches {
  std::vector<PointerPatch> fixed_pointers, bound_pointers;
  std::vector<ShapePatch> fixed_shapes, dynamic_shapes;
  std::vector<RangePatch> fixed_ranges, dynamic_ranges;
  std::vector<int32_t> dynamic_grids;  // calls of Kernel nodes
  std::vector<int32_t> bound_copies;  // copies with a bound side, or with boxes that depend on parameters
  std::vector<int32_t> bound_fills;  // fills of bound memory
};

// By buffer of the model.
struct BufferTables {
  std::vector<bool> dynamic;  // its extent, or where an alias lies, depends on a parameter
  std::vector<int32_t> staged;  // its staging instance, or -1
  std::vector<int32_t> bound;  // its bound instance, or -1
  std::vector<bool> written;  // some node writes it
  std::vector<int32_t> max_alignment_alias;  // its alias of the type with the largest alignment, or -1
  int32_t leased = -1;  // a buffer that lives in the slot, of those declared kSlot; -1: there are none
};

struct Program {
  Schedule stream;  // commands are parallel to Plan::commands
  Schedule graphs;  // without commands where there are none
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

// The loaded kernels of a node, where it has any.
struct LoadedKernel {
  driver::KernelCode by_value{};
  driver::KernelCode by_ref{};
  driver::LibraryCode ask{};
};

// `kernels[n]`: of plan node n. `cuda[d]`: whether device d is a CUDA device. `graphs`: null where there are none.
// `streams`: runs may be submitted on streams. `timed`: nodes are recorded before and behind. `submission_threads[d]`:
// how many threads may help to submit to device d.
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
