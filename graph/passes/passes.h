// The planner's passes and the draft they work on. Internal to graph/: MakePlan (planner.cc) calls the passes in the
// order in which they are listed here; tests call them one by one.
//
// A pass is a pure function of the draft: it uses no device, thread, clock or random seed. It reads what earlier passes
// filled in, and fills in its own part. Everything is an index into a flat array, and every pass is linear or n log n.
// The model's records lie far apart, so passes use what the draft has read from them.
//
// Ownership: a Draft borrows the Model and the PlanOptions.
// Errors:    the caller's mistakes are appended to Draft::mistakes; a pass skips the records they spoil. From Place on
//            the draft has no mistakes, and broken invariants are the library's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/common/csr_rows.h"
#include "graph/common/names.h"
#include "graph/conflicts/boxes.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;  // for nearly every mistake

// A node on its way into the plan, declared or inserted. Its accesses are `uses` entries of Draft::uses; a copy also
// has `src` and `dst`. `copy` and `when` are as in PlanNode.
struct Step {
  PlanKind kind = PlanKind::kHost;
  int32_t decl = -1;  // index in Model::nodes; -1: inserted
  int32_t device = -1;
  int32_t priority = 0;
  int32_t src = -1, dst = -1;
  int32_t buffer = -1;  // for inserted copies of whole buffers
  int32_t copy = -1;
  int32_t batch = -1, batch_steps = 0;  // from BatchCopies on: as in PlanNode; the first step has the count
  When when = When::kAlways;
  bool follows = false;  // the second half of the step before it, to follow that directly
  int32_t first_use = 0, uses = 0;
  bool on_host() const { return IsHostKind(kind); }
};

// A step's place in the clocks: the `position`-th step of `column`; -1: in no column, so nothing is known of it.
struct Tick {
  int32_t column = -1, position = 0;
  // Whether the step had ended at `clock`, a row of clocks (see Draft::clock).
  bool DoneIn(const int32_t* clock) const { return column >= 0 && clock[column] >= position; }
};

// The steps of a plan that touch device memory not owned by the slot: those before which no touch is known, those after
// which none is known, and the first in submission order that writes it (-1: none).
struct FirstLastUses {
  int32_t instance = -1;
  std::vector<int32_t> firsts{}, lasts{};  // ascending
  int32_t first_write = -1;
};

// Facts about the model's records that passes need more than once.
struct BufferFacts {
  TypeInfo type;
  BufferRole role;
  penstock::Where where;  // message.h has a function of that name
  bool is_alias;
};
struct NodeFacts {
  NodeKind kind;
  HostWay host_way;
  int32_t device, priority;  // as declared
};

// A NodeRef::InPlace, by the node's accesses.
struct InPlacePair {
  int32_t node = -1, in = -1, out = -1;
};

struct Draft {
  Draft(const Model& m, const PlanOptions& o);
  void Read(const BufferDecl& buffer);  // the next record
  void Read(const NodeDecl& node);

  const Model& model;
  const PlanOptions& options;
  std::vector<Mistake> mistakes;
  std::vector<std::string> notes;

  // Filled in by Validate, which reads each record once: the model's records side by side, what each access covers, and
  // the edges from After. The names of parameters are there from the beginning.
  Names param_names, buffer_names, node_names;
  std::vector<BufferFacts> buffers;
  std::vector<NodeFacts> nodes;
  BoxTable boxes;
  CsrRows after;
  std::vector<InPlacePair> in_place;  // in node order

  // The bytes of each buffer at its declared maximum, from the first to the last; 0 if it has a mistake.
  std::vector<int64_t> buffer_bytes;
  bool any_pitch = false;  // whether a buffer has a pitch
  // HashOfBuffer and HashOfNode of each record, as long as there are no mistakes.
  std::vector<uint64_t> buffer_hash, node_hash;
  // By DeclaredEdges: the predecessors of each node of the model, from accesses and After; each once, in any order.
  CsrRows declared;
  // Whether some of them are redundant, and would differ if commuting calls were made in another order.
  bool surplus_edges = false;
  // By Check: the model's nodes in an order that respects `declared`. From Canonical on it is the canonical one.
  std::vector<int32_t> sequence;
  // For each buffer: whether it is an Output that the nodes may leave partly unwritten, so that the rest
  // must be preserved.
  std::vector<bool> partial_output;
  // By Canonical: the model's buffers ordered by name.
  std::vector<int32_t> buffers_by_name;
  // By StructureHash: a hash of everything that determines the plan.
  uint64_t structure_hash = 0;
  // By Place: the device of each node of the model, -1 on the host; and of each buffer whose contents are on a device
  // before and after the run, otherwise -1.
  std::vector<int32_t> device, home;
  // By Place, for each node of the model, or empty: the device that makes a Host node's hostcall and waits
  // for it, or -1.
  std::vector<int32_t> calling_device;
  int32_t CallingDevice(int32_t node) const { return calling_device.empty() ? -1 : calling_device[node]; }

  // By EliminateCopies, for each node of the model, or empty: whether the plan omits it; and for a Copy node, a buffer
  // that holds the same data in a better place, or -1.
  std::vector<bool> dropped;
  std::vector<int32_t> copy_from;
  bool IsDropped(int32_t node) const { return !dropped.empty() && dropped[node]; }
  int32_t CopyFrom(int32_t node) const { return copy_from.empty() ? -1 : copy_from[node]; }

  // By InsertTransfers: the steps, in an order in which each buffer's contents are where they are used.
  std::vector<Instance> instances;
  std::vector<int32_t> fallback;  // for each instance: one that may be the same memory at launch, or -1
  std::vector<Step> steps;
  std::vector<Use> uses;
  // By InstanceEdges: the predecessors of each step, each once, in any order. Segments renumbers them: then an index is
  // a submission position, and rows are ascending.
  CsrRows edges;

  // By ListSchedule: the expected duration of each step, and the steps in submission order.
  std::vector<double> cost;
  std::vector<int32_t> order;
  // By Segments: the segment of each stream step (-1 for host steps).
  std::vector<int32_t> segment;
  int32_t segments = 0;
  // By Lanes: the lane of each stream step (-1 for host steps).
  std::vector<Lane> lanes;
  std::vector<int32_t> lane;

  // By ReduceWaits: lane clocks. Entry (v, c) counts the steps of column c that are done before v ends, v included.
  // Columns are the lanes, then chains of host steps. A step without a column is never known to be before another.
  int32_t columns = 0;
  std::vector<Tick> tick;
  std::vector<int32_t> clock;
  CsrRows preds;  // for each step: edges that no path of other edges implies; lanes do not count
  CsrRows waits;  // for each step: stream steps whose events it waits for
  CsrRows host_waits;  // for each host step: host steps it waits for
  CsrRows segment_hosts;  // for each segment: host steps it waits for

  // By Memory, which also fills in Instance::offset.
  std::vector<Arena> arenas;
  int64_t pieces_offset = -1;  // as in Plan

  // By FindFirstLastUses: each State that the graph uses, and each buffer for which device memory is bound.
  std::vector<FirstLastUses> states, external_deps;

  // By Events: the event that each step records, or -1 if none is needed. Some events are recorded several times.
  std::vector<PlanEvent> events;
  std::vector<int32_t> event;

  int32_t step_count() const { return static_cast<int32_t>(steps.size()); }
  // Whether step `a` is known to have ended when `b` starts.
  bool Before(int32_t a, int32_t b) const { return FirstOfBatch(a) != FirstOfBatch(b) && tick[a].DoneIn(ClockOf(b)); }
  // The first and last of the steps that start and end together with `step`: those of its batch, or itself. Valid once
  // batches are known.
  int32_t FirstOfBatch(int32_t step) const {
    const int32_t first = steps[step].batch;
    return first < 0 ? step : first;
  }
  int32_t LastOfBatch(int32_t step) const {
    const int32_t first = steps[step].batch;
    return first < 0 ? step : first + steps[first].batch_steps - 1;
  }
  const int32_t* ClockOf(int32_t step) const {
    return clock.data() + static_cast<size_t>(step) * static_cast<size_t>(columns);
  }
  const Name& buffer_name(int32_t buffer) const { return model.buffers[buffer].name; }
  const std::string& device_name(int32_t device_index) const { return options.devices[device_index].name; }
  void AddMistake(absl::StatusCode code, std::string text) { mistakes.push_back({code, std::move(text)}); }
};

void Validate(Draft& draft);  // names, handles, sizes, pins: each record by itself
void ValidateNodes(Draft& draft);  // the part of Validate for nodes, called by Validate
void DeclaredEdges(Draft& draft);  // read after write, write after read, write after write, After; Canonical repeats it
void Check(Draft& draft);  // cycles, then the two checks below, which Check calls
void CheckData(Draft& draft);  // reads of unwritten data, writes to Inputs, spans that are not contiguous
void CheckUnordered(Draft& draft);  // conflicting nodes without an order
void Canonical(Draft& draft);  // an order independent of the order of commuting declarations
void StructureHash(Draft& draft);  // 64 bits of everything that determines the plan
uint64_t HashOfBuffer(const Draft& draft, size_t buffer);  // the part of it from one correct record
uint64_t HashOfNode(const Draft& draft, size_t node);
void Place(Draft& draft);  // a device for each node
void EliminateCopies(Draft& draft);  // copies whose results are not read
void InsertTransfers(Draft& draft);  // copies data to where it is used, and outputs back
void InstanceEdges(Draft& draft);  // the edges between the steps that InsertTransfers made
void ListSchedule(Draft& draft);  // critical path first
void Segments(Draft& draft);  // cuts at host steps, and renumbers
void BatchCopies(Draft& draft);  // groups small copies that are ready together
void Lanes(Draft& draft);  // a lane for each stream step
void ReduceWaits(Draft& draft);  // lane clocks, and the waits that remain
void Memory(Draft& draft);  // offsets in arenas
void FindFirstLastUses(Draft& draft);  // first and last touches of each State, and of bound device memory
void Events(Draft& draft);  // which steps record an event, and which event
Plan Lower(Draft& draft);  // commands, segments, host steps

// Renumbers the steps by their places in Draft::order, for passes that change that.
void Renumber(Draft& draft);
// The most bytes that a copy can move.
int64_t CopyBytes(const Draft& draft, const Step& step);

// The passes before Lower, in order. Planning stops after a pass with `ends_with_mistakes` if there are mistakes.
struct Pass {
  const char* name;
  void (*run)(Draft&);
  bool ends_with_mistakes = false;
};
std::span<const Pass> Passes();

// What a message is about: "buffer" or "node", and its name. It is formatted only if there is a mistake.
struct Subject {
  const char* kind;
  const Name& name;
};
// Describes a dimension that is neither a constant nor a parameter of the graph.
std::string StrayParam(const Dim& dim);
// The largest value a dimension can have, or -1 after a mistake. `label` is its name in the message, followed by
// `index` when that is not negative.
int64_t CheckDim(Draft& draft, const Subject& subject, const char* label, int index, const Dim& dim);
// Checks a box of `buffer` used by `subject`; `who` begins the messages: "" or "access 0 ".
void CheckBox(Draft& draft, const Subject& subject, const std::string& who, const BufferDecl& buffer, const Box& box);
void CheckAlias(Draft& draft, int32_t index);
// The largest number of elements of an extent times `element_bytes`, or -1 after a mistake.
int64_t CheckExtent(Draft& draft, const Subject& subject, const Extent& extent, int64_t element_bytes);
inline constexpr int64_t kMaxBytes = int64_t{1} << 62;

}  // namespace penstock::graph
