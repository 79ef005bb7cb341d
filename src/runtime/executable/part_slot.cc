#include "src/runtime/executable/part_slot.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "src/runtime/executable/executable_core.h"
#include "src/runtime/slot/box_shapes.h"

namespace penstock::runtime {
namespace {

// The slot's own memory for what a condition writes.
const int32_t* WordOf(const RunSlot& slot, BufferId word) {
  const auto& instances = slot.graph().plan().instances;
  for (const InstanceId i : instances.ids()) {
    if (word >= 0 && instances[i].buffer == word && instances[i].leased) {
      return static_cast<const int32_t*>(slot.tables.pointers[i]);
    }
  }
  return nullptr;
}

// The call of the condition; none: there is none. Nodes for checks against the host may stand before it.
CallId ConditionOf(const CompiledGraph& graph) {
  const Table<CallId, CallEntry>& calls = graph.program().calls;
  for (const CallId c : calls.ids()) {
    if (calls[c].decl >= 0 && graph.model().nodes[calls[c].decl].decides) return c;
  }
  return {};
}

// The elements of a buffer in this run, from the first to the last.
int64_t ElementsOf(const RunSlot& slot, BufferId buffer) {
  const BoxInRun& box = slot.tables.boxes[int32_t{buffer}];
  const detail::Range size = RangeOf(box.shape);
  if (size.width == 0 || size.height == 0 || size.depth == 0) return 0;
  return ((size.depth - 1) * box.slice + (size.height - 1) * box.row) / box.element + size.width;
}

}  // namespace

PartSlot::PartSlot(const CompiledPart& part)
    : core_(part.core),
      slot_(core_->TakeFree()),  // there are as many as slots around it
      bound_(part.folded->bound),
      word_(WordOf(*slot_, part.folded->word)),
      condition_(ConditionOf(core_->graph())),
      values_(core_->graph().shared_model()) {
  core_->MarkLeased(slot_);
}

PartSlot::~PartSlot() {
  if (core_ != nullptr) core_->GiveBack(slot_);
}

// The functor of a condition begins with its decision.
void* PartSlot::functor_of_condition() const {
  return slot_->tables.argv[slot_->graph().program().calls[condition_].argv + 1];
}

void PartSlot::SetDecision(const detail::Decision& decision) {
  driver::KernelOp& op = slot_->tables.kernels[condition_];
  void* const functor = functor_of_condition();
  std::memcpy(functor, &decision, sizeof(decision));
  if (!condition_pointers_.empty()) return;
  condition_pointers_.assign(op.pointer_offsets, op.pointer_offsets + op.pointer_count);
  const auto at = static_cast<uint32_t>(static_cast<const std::byte*>(functor) - op.args);
  for (const size_t pointer :
       {offsetof(detail::Decision, loop), offsetof(detail::Decision, switches), offsetof(detail::Decision, record)}) {
    condition_pointers_.push_back(at + static_cast<uint32_t>(pointer));
  }
  op.pointer_offsets = condition_pointers_.data();
  op.pointer_count = static_cast<uint32_t>(condition_pointers_.size());
}

void PartSlot::SetDone(int64_t done, int64_t most) {
  const detail::Decision decision{.handle = static_cast<uint64_t>(done), .most = most};
  std::memcpy(functor_of_condition(), &decision, sizeof(decision));
  if (slot_->graphs != nullptr) slot_->graphs->ValueDiffers(condition_);
}

absl::Status PartSlot::SetValues(const RunSlot& outer, NodeId node) {
  const CompiledGraph& graph = outer.graph();
  const Model& model = core_->model();
  for (const ParamId p : model.params.ids()) {
    values_.SetParam(model.serial, p, model.params[p].type,
                     outer.tables.param_bytes.data() + graph.program().params.at[p]);
  }
  for (const graph::BoundByControl& bound : bound_) {
    const InstanceId instance = graph.plan().nodes[node].uses[static_cast<size_t>(bound.access)].instance;
    const TypeInfo type = model.buffers[bound.inner].type;
    const int64_t elements = ElementsOf(outer, graph.plan().instances[instance].buffer);
    void* const data = outer.tables.pointers[instance];
    const BoundMemory& is = values_.Memory(static_cast<size_t>(bound.inner));
    if (is.data == data && is.elements == elements) continue;
    // Its kind is that which the slot around it has found.
    values_.SetBuffer(model.serial, bound.inner, type, BoundMemory{.data = data, .elements = elements, .held = true});
  }
  return values_.mistake() != nullptr ? *values_.mistake() : absl::OkStatus();
}

void PartSlot::SetKnown(const RunSlot& outer, NodeId node) const {
  const Program& program = slot_->graph().program();
  for (const graph::BoundByControl& bound : bound_) {
    const InstanceId inside = program.buffers.bound[bound.inner];
    if (inside < 0) continue;  // no node uses it
    slot_->tables.pointers[inside] =
        outer.tables.pointers[outer.graph().plan().nodes[node].uses[static_cast<size_t>(bound.access)].instance];
  }
  slot_->tables.PatchPointers(program.patches.bound_pointers);
}

PartSlots::PartSlots(const CompiledControl& control, RunSlot& outer, NodeId node)
    : condition(control.condition.begin(), control.condition.end()),
      bodies(control.bodies.begin(), control.bodies.end()) {
  ForEach([&](const PartSlot& part) { part.slot().fault.PutInside(outer.fault, node); });
}

absl::Status PartSlots::Failure() const {
  absl::Status failure;
  ForEach([&](const PartSlot& part) {
    if (part.slot().fault.is_set()) failure.Update(part.slot().DescribeFault());
  });
  return failure;
}

void PartSlots::UseStop(const uint32_t* stop) const {
  ForEach([&](const PartSlot& part) { part.slot().UseStop(stop); });
}

absl::StatusOr<int64_t> CountTrips(const RunSlot& outer, const Dim& trips) {
  const int64_t count = trips.is_constant() ? trips.value : outer.tables.param_values[trips.param];
  if (count >= 0) return count;
  return absl::InvalidArgumentError("its body would be repeated " + std::to_string(count) +
                                    " times; set the parameter to a number that is not negative");
}

}  // namespace penstock::runtime
