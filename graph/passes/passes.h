// The planner's passes. Internal to graph/: MakePlan (planner.cc) calls them in the order in which they are listed
// here; tests call them one by one.
//
// A pass is a pure function of the stages of the draft (draft.h) that it takes: it uses no device, thread, clock or
// random seed. Every pass is linear or n log n. The model's records lie far apart, so passes use what Records have read
// from them.
//
// Ownership: the stages borrow the Model and the PlanOptions.
// Errors:    the caller's mistakes are appended to Findings::mistakes; a pass skips the records they spoil. From Place
//            on there are no mistakes, and broken invariants are the library's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "graph/passes/draft.h"
#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;  // for nearly every mistake

// Names, handles, sizes, pins: each record by itself.
void Validate(Records& records, Findings& findings);
void ValidateNodes(Records& records, Findings& findings);  // the part of Validate for nodes, called by Validate
// Read after write, write after read, write after write, After. Canonical repeats it.
void DeclaredEdges(const Records& records, Checked& checked);
// Cycles, then the two checks below, which Check calls.
void Check(const Records& records, Checked& checked, Findings& findings);
// Reads of unwritten data, writes to Inputs, spans that are not contiguous.
void CheckData(const Records& records, Checked& checked, Findings& findings);
// Conflicting nodes without an order.
void CheckUnordered(const Records& records, const Checked& checked, Findings& findings);
// An order independent of the order of commuting declarations.
void Canonical(const Records& records, Checked& checked);
// 64 bits of everything that determines the plan.
void StructureHash(const Records& records, Checked& checked);
uint64_t HashOfBuffer(const Records& records, BufferId buffer);  // the part of it from one correct record
uint64_t HashOfNode(const Records& records, DeclId node);
// A device for each node.
Placed Place(const Records& records, const Checked& checked);
// Copies whose results are not read.
void EliminateCopies(const Records& records, const Checked& checked, Placed& placed, Findings& findings);
// Copies data to where it is used, and outputs back.
Ordered InsertTransfers(const Records& records, const Checked& checked, const Placed& placed, Findings& findings);
// The edges between the steps that InsertTransfers made.
void InstanceEdges(const Records& records, const Checked& checked, const Placed& placed, Ordered& ordered);
// Raises the priority of what other devices wait for.
void PrioritizeBoundaries(const Records& records, Ordered& ordered);
inline constexpr int32_t kBoundaryPriority = -1;
void ListSchedule(const Records& records, Ordered& ordered);  // boundaries first, then critical path first
void Segments(Ordered& ordered);  // cuts at host steps, and renumbers
void BatchCopies(const Records& records, Ordered& ordered);  // groups small copies that are ready together
void Lanes(const Records& records, Ordered& ordered, Findings& findings);  // a lane for each stream step
Reduced ReduceWaits(const Ordered& ordered, Findings& findings);  // lane clocks, and the waits that remain
// Offsets in arenas.
Packed Memory(const Records& records, const Ordered& ordered, const Reduced& reduced, Findings& findings);
// First and last touches of each State, and of bound device memory.
void FindFirstLastUses(const Ordered& ordered, const Reduced& reduced, Packed& packed);
// Which steps record an event, and which event.
void Events(const Records& records, const Ordered& ordered, const Reduced& reduced, Packed& packed);
// Commands, segments, host steps. Moves what the plan has of the draft out of it.
Plan Lower(Draft& draft);

// Renumbers the steps by their places in Ordered::order, for passes that change that.
void Renumber(Ordered& ordered);
// The most bytes that a copy can move.
int64_t CopyBytes(const Records& records, const Ordered& ordered, const Step& step);

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
// The largest value a dimension can have; negative if it is a mistake.
int64_t LargestOf(const Model& model, const Dim& dim);
// The same, and a mistake is reported. `label` is its name in the message, followed by
// `index` when that is not negative.
int64_t CheckDim(const Model& model, Findings& findings, const Subject& subject, const char* label, int index,
                 const Dim& dim);
// Checks a box of `buffer` used by `subject`; `who` begins the messages: "" or "access 0 ".
void CheckBox(const Model& model, Findings& findings, const Subject& subject, const std::string& who,
              const BufferDecl& buffer, const Box& box);
void CheckAlias(const Model& model, Findings& findings, BufferId index);
// The largest number of elements of an extent times `element_bytes`, or -1 after a mistake.
int64_t CheckExtent(const Model& model, Findings& findings, const Subject& subject, const Extent& extent,
                    int64_t element_bytes);
inline constexpr int64_t kMaxBytes = int64_t{1} << 62;

}  // namespace penstock::graph
