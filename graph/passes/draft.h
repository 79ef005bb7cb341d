// The planner's draft: what the passes hand on to each other, a struct for each stage. Internal to graph/.
//
//   Records   the model's records, side by side              Validate
//   Checked   the declared edges, and an order               DeclaredEdges, Check, Canonical, StructureHash
//   Placed    a device for each node                         Place, EliminateCopies
//   Ordered   the steps of the plan, in submission order     InsertTransfers to Lanes
//   Reduced   lane clocks, and the waits that remain         ReduceWaits
//   Packed    memory, and events                             Memory, FindFirstLastUses, Events
//
// A pass takes the earlier stages const, and returns its own stage or fills in its part of it. Everything is an index
// into a flat array.
//
// Ownership: Records borrow the Model and the PlanOptions.
// Threads:   plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/common/csr_rows.h"
#include "graph/common/names.h"
#include "graph/conflicts/boxes.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// A step of the draft. Once all steps are in submission order, each becomes the plan node of the same index.
using StepId = Id<struct StepTag>;

// What the passes tell the caller.
struct Findings {
  std::vector<Mistake> mistakes;
  std::vector<std::string> remarks, shared_lanes;  // as in Plan
  void AddMistake(absl::StatusCode code, std::string text) { mistakes.push_back({code, std::move(text)}); }
};

// Facts about the model's records that passes need more than once.
struct BufferFacts {
  TypeInfo type;
  BufferRole role;
  penstock::Where where;  // message.h has a function of that name
  bool is_alias;
  bool is_counted;  // only its first elements count
};
struct NodeFacts {
  NodeKind kind;
  HostWay host_way;
  DeviceId device;  // as declared
  int32_t priority;
  // Whether PlanOptions::placement may say where it runs. Parts of a construct have plans of their own.
  bool may_be_placed() const { return device < 0 && kind < NodeKind::kHost; }
};

// A NodeRef::InPlace, by the node's accesses.
struct InPlacePair {
  DeclId node{};
  int32_t in = -1, out = -1;
};

// By Validate, which reads each record once: the model's records side by side, what each access covers, and the edges
// from After. The names of parameters are there from the beginning.
struct Records {
  Records(const Model& m, const PlanOptions& o);
  void Read(const BufferDecl& buffer);  // the next record
  void Read(const NodeDecl& node);

  const Model& model;
  const PlanOptions& options;
  Names param_names, buffer_names, node_names;
  Table<BufferId, BufferFacts> buffers;
  Table<DeclId, NodeFacts> nodes;
  BoxTable boxes;
  CsrRows after;
  std::vector<InPlacePair> in_place;  // in node order
  // The bytes of each buffer at its declared maximum, from the first to the last; 0 if it has a mistake.
  Table<BufferId, int64_t> buffer_bytes;
  bool any_pitch = false;  // whether a buffer has a pitch
  // HashOfBuffer and HashOfNode of each record, as long as there are no mistakes.
  Table<BufferId, uint64_t> buffer_hash;
  Table<DeclId, uint64_t> node_hash;

  const Name& buffer_name(BufferId buffer) const { return model.buffers[buffer].name; }
  const std::string& device_name(DeviceId device) const { return options.devices[device].name; }
  // Where the options place the node instead of on the default device; none: nowhere else.
  DeviceId PlacedOn(DeclId node) const {
    if (node >= options.placement.count() || !nodes[node].may_be_placed()) return {};
    const DeviceId device = options.placement[node];
    return device == options.default_device ? DeviceId() : device;
  }
};

struct Checked {
  // By DeclaredEdges: the predecessors of each node of the model, from accesses and After; each once, in any order.
  CsrRows declared;
  // Whether some of them are redundant, and would differ if commuting calls were made in another order.
  bool surplus_edges = false;
  // By Check: the model's nodes in an order that respects `declared`. From Canonical on it is the canonical one.
  std::vector<DeclId> sequence;
  // For each buffer: whether it is an Output that the nodes may leave partly unwritten, so that the rest must be
  // preserved.
  Table<BufferId, bool> partial_output;
  // By Canonical: the model's buffers ordered by name.
  std::vector<BufferId> buffers_by_name;
  // By StructureHash: a hash of everything that determines the plan.
  uint64_t structure_hash = 0;
};

struct Placed {
  // By Place: the device of each node of the model, none on the host; and of each buffer whose contents are on a device
  // before and after the run, otherwise none.
  Table<DeclId, DeviceId> device;
  Table<BufferId, DeviceId> home;
  // By Place, for each node of the model, or empty: the device that makes a Host node's hostcall and waits for it, or
  // none.
  Table<DeclId, DeviceId> calling_device;
  // By EliminateCopies, for each node of the model, or empty: whether the plan omits it; and for a Copy node, a buffer
  // that holds the same data in a better place, or none.
  Table<DeclId, bool> dropped;
  Table<DeclId, BufferId> copy_from;

  DeviceId CallingDevice(DeclId node) const { return calling_device.empty() ? DeviceId() : calling_device[node]; }
  bool IsDropped(DeclId node) const { return !dropped.empty() && dropped[node]; }
  BufferId CopyFrom(DeclId node) const { return copy_from.empty() ? BufferId() : copy_from[node]; }
};

// A node on its way into the plan, declared or inserted. Its accesses are `uses` entries of Ordered::uses; a copy also
// has `src` and `dst`. `copy`, `part` and `when` are as in PlanNode.
struct Step {
  PlanKind kind = PlanKind::kHost;
  DeclId decl{};  // none: inserted
  DeviceId device{};
  int32_t priority = 0;
  InstanceId src{}, dst{};
  DeclId copy{};
  PartId part{};
  StepId batch{};  // from BatchCopies on: as in PlanNode
  int32_t batch_steps = 0;  // the number of steps in the batch, in its first one
  When when = When::kAlways;
  bool follows = false;  // the second half of the step before it, to follow that directly
  int32_t first_use = 0, uses = 0;
  bool on_host() const { return IsHostKind(kind); }
};

struct Ordered {
  // By InsertTransfers: the steps, in an order in which each buffer's contents are where they are used.
  Table<InstanceId, Instance> instances;  // without offsets
  Table<InstanceId, InstanceId> fallback;  // one that may be the same memory at launch, or none
  Table<StepId, Step> steps;
  std::vector<Use> uses;
  Table<PartId, Region> parts;  // as in Plan
  // By InstanceEdges: the predecessors of each step, each once, in any order. Segments renumbers them: then an index is
  // a submission position, and rows are ascending.
  CsrRows edges;
  // By PrioritizeBoundaries: whether steps have kBoundaryPriority, which no other step has then.
  bool any_boundary = false;
  // By ListSchedule: the expected duration of each step, and the steps in submission order.
  Table<StepId, double> cost;
  std::vector<StepId> order;
  // By Segments: the segment of each stream step (none for host steps), and the number of segments.
  Table<StepId, SegmentId> segment;
  int32_t segments = 0;
  // By Lanes: the lane of each stream step (none for host steps).
  Table<LaneId, Lane> lanes;
  Table<StepId, LaneId> lane;

  std::span<const Use> UsesOf(const Step& step) const {
    return std::span(uses).subspan(static_cast<size_t>(step.first_use), static_cast<size_t>(step.uses));
  }
  // The first and last of the steps that start and end together with `step`: those of its batch, or itself. Valid once
  // batches are known.
  StepId FirstOfBatch(StepId step) const {
    const StepId first = steps[step].batch;
    return first < 0 ? step : first;
  }
  StepId LastOfBatch(StepId step) const {
    const StepId first = steps[step].batch;
    return first < 0 ? step : StepId(first + steps[first].batch_steps - 1);
  }
};

// A step's place in the clocks: the `position`-th step of `column`; -1: in no column, so nothing is known of it.
struct Tick {
  int32_t column = -1, position = 0;
  // Whether the step had ended at `clock`, a row of clocks (see Reduced::clock).
  bool DoneIn(const int32_t* clock) const { return column >= 0 && clock[column] >= position; }
};

// Lane clocks. Entry (v, c) counts the steps of column c that are done before v ends, v included. Columns are the
// lanes, then chains of host steps. A step without a column is never known to be before another.
struct Reduced {
  int32_t columns = 0;
  Table<StepId, Tick> tick;
  std::vector<int32_t> clock;
  CsrRows preds;  // for each step: edges that no path of other edges implies; lanes do not count
  CsrRows waits;  // for each step: stream steps whose events it waits for
  CsrRows host_waits;  // for each host step: host steps it waits for
  CsrRows segment_hosts;  // for each segment: host steps it waits for

  const int32_t* ClockOf(StepId step) const {
    return clock.data() + static_cast<size_t>(step) * static_cast<size_t>(columns);
  }
};

// Whether step `a` is known to have ended when `b` starts.
inline bool Before(const Ordered& ordered, const Reduced& reduced, StepId a, StepId b) {
  return ordered.FirstOfBatch(a) != ordered.FirstOfBatch(b) && reduced.tick[a].DoneIn(reduced.ClockOf(b));
}

// The steps of a plan that touch device memory not owned by the slot: those before which no touch is known, those after
// which none is known, and the first in submission order that writes it (or none).
struct FirstLastUses {
  InstanceId instance{};
  std::vector<StepId> firsts{}, lasts{};  // ascending
  StepId first_write{};
};

struct Packed {
  // By Memory: Instance::offset of each instance, and as in Plan.
  Table<InstanceId, int64_t> offset;
  std::vector<Arena> arenas;
  int64_t pieces_offset = -1;
  // By FindFirstLastUses: each State that the graph uses, and each buffer for which device memory is bound.
  std::vector<FirstLastUses> states, external_deps;
  // By Events: the event that each step records, or none if none is needed. Some events are recorded several times.
  Table<EventId, PlanEvent> events;
  Table<StepId, EventId> event;
};

struct Draft {
  Draft(const Model& model, const PlanOptions& options) : records(model, options) {}

  Records records;
  Checked checked;
  Placed placed;
  Ordered ordered;
  Reduced reduced;
  Packed packed;
  Findings findings;
};

}  // namespace penstock::graph
