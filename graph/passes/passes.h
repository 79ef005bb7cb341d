// The planner's passes and the draft they work on. Internal to graph/: MakePlan (planner.cc) calls the passes in the
// order they stand in here, tests call them one by one.
//
// A pass is a pure function of the draft: no device, thread, clock or random seed. It reads what earlier passes filled
// in and fills in its own part. Everything is an index into a flat array, and every pass is linear or n log n. The
// model's records lie far apart, so passes go by what the draft has read of them.
//
// Ownership: a Draft borrows the Model and the PlanOptions.
// Errors:    mistakes of the caller are appended to Draft::mistakes; a pass skips the records they spoil. From Place on
//            the draft holds no mistake, and broken invariants are ours.
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

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;  // of nearly every mistake

// A node on its way into the plan: declared or inserted. Its accesses are `uses` entries of Draft::uses; a copy has
// `src` and `dst` as well. `copy` and `when` are those of PlanNode.
struct Step {
  PlanKind kind = PlanKind::kHost;
  int32_t decl = -1;  // Model::nodes, -1 when inserted
  int32_t device = -1;
  int32_t priority = 0;
  int32_t src = -1, dst = -1;
  int32_t buffer = -1;  // of inserted copies of whole buffers
  int32_t copy = -1;
  int32_t batch = -1, batch_steps = 0;  // from Gather on: as in PlanNode, and in the first step how many they are
  When when = When::kAlways;
  bool follows = false;  // the other half of the step before it, and after that
  int32_t first_use = 0, uses = 0;
  bool on_host() const { return IsHostKind(kind); }
};

// Where a step stands in the clocks: the `position`-th step of `column`; -1: in none, and then nothing is known of it.
struct Tick {
  int32_t column = -1, position = 0;
  // Whether the step had ended when `clock` was true. A row of clocks, see Draft::clock.
  bool DoneIn(const int32_t* clock) const { return column >= 0 && clock[column] >= position; }
};

// Where the steps of a plan touch memory that is not the slot's and lives on a device: those with no touch known to be
// before them, those with none known to be after, and the first in submission order that writes it (-1: none does).
struct FirstLastUses {
  int32_t instance = -1;
  std::vector<int32_t> firsts{}, lasts{};  // ascending
  int32_t first_write = -1;
};

// What passes ask of the model's records more than once.
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

// NodeRef::InPlace, by the node's accesses.
struct InPlacePair {
  int32_t node = -1, in = -1, out = -1;
};

struct Draft {
  Draft(const Model& m, const PlanOptions& o);
  void Read(const BufferDecl& buffer);  // the next one
  void Read(const NodeDecl& node);

  const Model& model;
  const PlanOptions& options;
  std::vector<Mistake> mistakes;
  std::vector<std::string> notes;

  // Validate, which reads each record once: the model's records side by side, what each access covers, and the edges
  // from After. Names of parameters are there from the beginning.
  Names param_names, buffer_names, node_names;
  std::vector<BufferFacts> buffers;
  std::vector<NodeFacts> nodes;
  BoxTable boxes;
  CsrRows after;
  std::vector<InPlacePair> in_place;  // node by node

  // Bytes of each buffer for the declared maximum, from the first to the last, 0 where it has a mistake.
  std::vector<int64_t> buffer_bytes;
  bool any_pitch = false;  // of a buffer
  // HashOfBuffer and HashOfNode of each record, while there are no mistakes.
  std::vector<uint64_t> buffer_hash, node_hash;
  // DeclaredEdges: the predecessors of each node of the model, from accesses and After; each once, in any order.
  CsrRows declared;
  // Whether some of them are implied by others and would be different ones in another order of calls that commute.
  bool surplus_edges = false;
  // Check: the model's nodes in an order that respects `declared`. From Canonical on: the canonical one.
  std::vector<int32_t> sequence;
  // Of each buffer: an Output of which the nodes may not write every element, so that the rest comes back as it was.
  std::vector<bool> partial_output;
  // Canonical: the model's buffers by name.
  std::vector<int32_t> buffers_by_name;
  // StructureHash: of all that decides the plan.
  uint64_t structure_hash = 0;
  // Place: the device of each node of the model, -1 on the host; and of each buffer whose contents are on a device
  // before and after the run, else -1.
  std::vector<int32_t> device, home;
  // Place, of each node of the model or empty: the device that asks for a Host node and waits for it, or -1.
  std::vector<int32_t> calling_device;
  int32_t CallingDevice(int32_t node) const {
    return calling_device.empty() ? -1 : calling_device[static_cast<size_t>(node)];
  }

  // EliminateCopies, of each node of the model or empty: whether the plan does without it; and for a Copy node a buffer
  // that holds what it copies in a better place, or -1.
  std::vector<bool> dropped;
  std::vector<int32_t> copy_from;
  bool IsDropped(int32_t node) const { return !dropped.empty() && dropped[static_cast<size_t>(node)]; }
  int32_t CopyFrom(int32_t node) const { return copy_from.empty() ? -1 : copy_from[static_cast<size_t>(node)]; }

  // InsertTransfers: the steps, in an order in which each buffer's contents are where they are used.
  std::vector<Instance> instances;
  std::vector<int32_t> fallback;  // of each instance: the one that may be the same memory at launch, or -1
  std::vector<Step> steps;
  std::vector<Use> uses;
  // InstanceEdges: predecessors of each step, each once, in any order. Renumbered by Segments, after which an index is
  // a submission position and a row ascending.
  CsrRows edges;

  // Order: what each step is expected to take, and the steps in the order to submit them in.
  std::vector<double> cost;
  std::vector<int32_t> order;
  // Segments: the segment of each stream step (-1 for host steps).
  std::vector<int32_t> segment;
  int32_t segments = 0;
  // Lanes: the lane of each stream step (-1 for host steps).
  std::vector<Lane> lanes;
  std::vector<int32_t> lane;

  // Reduce: lane clocks. Entry (v, c) counts the steps of column c that are done before v ends, v included; columns are
  // the lanes, then chains of host steps. A step without a column is never known to be before another.
  int32_t columns = 0;
  std::vector<Tick> tick;
  std::vector<int32_t> clock;
  CsrRows preds;  // of each step: edges that no path of other edges implies; lanes have no part in it
  CsrRows waits;  // of each step: stream steps whose events it waits for
  CsrRows host_waits;  // of host steps: host steps it waits for
  CsrRows segment_hosts;  // of segments: host steps they wait for

  // Memory: fills in Instance::offset.
  std::vector<Arena> arenas;
  int64_t pieces_offset = -1;  // as in Plan

  // FirstLastUses: each State the graph uses, and each buffer that device memory is bound for.
  std::vector<FirstLastUses> states, external_deps;

  // Events: the event each step records, -1 where nobody waits for it. Some are recorded several times.
  std::vector<PlanEvent> events;
  std::vector<int32_t> event;

  int32_t step_count() const { return static_cast<int32_t>(steps.size()); }
  // Whether step `a` is known to have ended when `b` starts.
  bool Before(int32_t a, int32_t b) const {
    return FirstOfBatch(a) != FirstOfBatch(b) && tick[static_cast<size_t>(a)].DoneIn(ClockOf(b));
  }
  // The first and the last of the steps that start and end with `step`: those of its batch, or itself. Once batches are
  // known.
  int32_t FirstOfBatch(int32_t step) const {
    const int32_t first = steps[static_cast<size_t>(step)].batch;
    return first < 0 ? step : first;
  }
  int32_t LastOfBatch(int32_t step) const {
    const int32_t first = steps[static_cast<size_t>(step)].batch;
    return first < 0 ? step : first + steps[static_cast<size_t>(first)].batch_steps - 1;
  }
  const int32_t* ClockOf(int32_t step) const {
    return clock.data() + static_cast<size_t>(step) * static_cast<size_t>(columns);
  }
  const Name& buffer_name(int32_t buffer) const { return model.buffers[static_cast<size_t>(buffer)].name; }
  const std::string& device_name(int32_t device_index) const {
    return options.devices[static_cast<size_t>(device_index)].name;
  }
  void AddMistake(absl::StatusCode code, std::string text) { mistakes.push_back({code, std::move(text)}); }
};

void Validate(Draft& draft);  // names, handles, sizes, pins: each record for itself
void ValidateNodes(Draft& draft);  // the part of Validate about nodes; Validate calls it
void DeclaredEdges(Draft& draft);  // read after write, write after read, write after write, After; Canonical repeats it
void Check(Draft& draft);  // cycles, then the two below; Check calls them
void CheckData(Draft& draft);  // reads of data nobody wrote, writes to Inputs, spans of what is not contiguous
void CheckUnordered(Draft& draft);  // conflicting nodes that nothing orders
void Canonical(Draft& draft);  // an order that does not depend on how commuting declarations were ordered
void StructureHash(Draft& draft);  // 64 bits of all that decides the plan
uint64_t HashOfBuffer(const Draft& draft, size_t buffer);  // the part of it that is in one sound record
uint64_t HashOfNode(const Draft& draft, size_t node);
void Place(Draft& draft);  // a device for each node
void EliminateCopies(Draft& draft);  // copies whose results nobody reads
void InsertTransfers(Draft& draft);  // brings the data where it is used, and outputs back
void InstanceEdges(Draft& draft);  // the edges between what InsertTransfers made
void ListSchedule(Draft& draft);  // critical path first
void Segments(Draft& draft);  // cuts at host steps and renumbers
void BatchCopies(Draft& draft);  // small copies that are ready together, side by side
void Lanes(Draft& draft);  // a lane for each stream step
void ReduceWaits(Draft& draft);  // lane clocks, and which waits they leave
void Memory(Draft& draft);  // offsets in arenas
void FindFirstLastUses(Draft& draft);  // first and last touches of each State, and of device memory that is bound
void Events(Draft& draft);  // who records an event, and which
Plan Lower(Draft& draft);  // commands, segments, host steps

// Gives the steps the numbers of their places in Draft::order, for passes that change that.
void Renumber(Draft& draft);
// The most bytes that a copy moves.
int64_t CopyBytes(const Draft& draft, const Step& step);

// The passes before Lower, in order. Mistakes end planning behind those that say so.
struct Pass {
  const char* name;
  void (*run)(Draft&);
  bool ends_with_mistakes = false;
};
std::span<const Pass> Passes();

// What a message is about: "buffer" or "node", and its name. The words are put together only when there is a mistake.
struct Subject {
  const char* kind;
  const Name& name;
};
// What a dimension is that is no constant and no parameter of the graph.
std::string StrayParam(const Dim& dim);
// The largest value a dimension can have, or -1 after a mistake. `label` is its name in the message, followed by
// `index` when that is not negative.
int64_t CheckDim(Draft& draft, const Subject& subject, const char* label, int index, const Dim& dim);
// A box of `buffer`, which `subject` takes: `who` begins the messages, "" or "access 0 ".
void CheckBox(Draft& draft, const Subject& subject, const std::string& who, const BufferDecl& buffer, const Box& box);
void CheckAlias(Draft& draft, int32_t index);
// The largest number of elements of an extent times `element_bytes`, or -1 after a mistake.
int64_t CheckExtent(Draft& draft, const Subject& subject, const Extent& extent, int64_t element_bytes);
inline constexpr int64_t kMaxBytes = int64_t{1} << 62;

}  // namespace penstock::graph
