#include "src/runtime/executable/launch_binder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/run/application_stream.h"
#include "src/runtime/run/internals.h"
#include "src/runtime/run/run_core.h"
#include "src/runtime/slot/apply_shapes.h"
#include "src/runtime/slot/copy_operations.h"

namespace penstock::runtime {
namespace {

using driver::PointerInfo;

absl::Status Refuse(absl::StatusCode code, const Model& model, const char* what, const Name& name,
                    const std::string& text) {
  return absl::Status(code, graph::Prefix(model, what, name) + ": " + text);
}

int64_t ReadInteger(const ParamDecl& decl, const std::byte* at) {
  uint64_t raw = 0;
  std::memcpy(&raw, at, decl.type.size);
  const unsigned unused = 64 - 8 * decl.type.size;
  if (unused == 0) return static_cast<int64_t>(raw);
  return decl.is_signed ? static_cast<int64_t>(raw << unused) >> unused : static_cast<int64_t>(raw);
}

std::string TextOfInteger(const ParamDecl& decl, int64_t value) {
  return decl.is_signed ? std::to_string(value) : std::to_string(static_cast<uint64_t>(value));
}

// The number of elements from the first to the last, and the same including the gap after the last row if rows have
// gaps. The first number is 0 for an empty box.
std::pair<int64_t, int64_t> ElementsToBind(const BoxInRun& box) {
  const int64_t elements = box.shape.elements();
  if (box.row == box.shape.width() * box.element) return {elements, elements};  // the usual case; divisions are slow
  const int64_t rows = box.shape.rows() * (box.row / box.element);
  return {elements == 0 ? 0 : rows - (box.row / box.element - box.shape.width()), rows};
}

}  // namespace

bool SameSignature(const Model& a, const Model& b) {
  return a.serial == b.serial && a.params.size() == b.params.size() && a.buffers.size() == b.buffers.size();
}

absl::Status LaunchBinder::Bind(RunSlot& slot, const detail::BoundValues& bindings) {
  if (bindings.model() != context_.graph.shared_model() &&
      (bindings.model() == nullptr || !SameSignature(*bindings.model(), model()))) {
    return absl::InvalidArgumentError(
        graph::Prefix(model()) +
        ": the bindings were made by an executable of another graph, or by none; use this one's bindings()");
  }
  if (bindings.mistake() != nullptr) return *bindings.mistake();
  PENSTOCK_RETURN_IF_ERROR(CheckParams(bindings));
  PENSTOCK_ASSIGN_OR_RETURN(const bool other_key, BindKey(slot, bindings));
  const bool reshaped = BindParams(slot, bindings);
  if (reshaped || other_key || !IsStillBound(slot, bindings)) {
    slot.bound.version = 0;
    ++slot.bound.changes;
    if (slot.replay != nullptr) slot.replay->AllMayDiffer();
    if (program().dynamic) PENSTOCK_RETURN_IF_ERROR(ApplyDynamicShapes(model(), plan(), program(), slot.tables));
    PENSTOCK_RETURN_IF_ERROR(BindBuffers(slot, bindings));
    PatchPointers(slot);
    slot.bound.version = bindings.version();
  }
  slot.bound.keep_alives = bindings.keep_alives();
  for (const auto& construct : slot.constructs) {
    const absl::Status bound = construct->Bind();
    if (!bound.ok()) return context_.graph.Describe(construct->node(), bound);
  }
  return BindPredecessors(slot, bindings);
}

absl::StatusOr<bool> LaunchBinder::BindKey(RunSlot& slot, const detail::BoundValues& bindings) {
  if (keyed_ == nullptr) return false;
  const std::optional<Key> key = bindings.key();
  if (!key) {
    const auto b = static_cast<size_t>(keyed_->buffers()[0]);
    return Refuse(absl::StatusCode::kFailedPrecondition, model(), "state", model().buffers[b].name,
                  "there is one for each key, and the launch names none; call Bindings::SetKey");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const KeyedHome home, keyed_->Find(key->value, member_));
  const int before = std::exchange(slot.bound.home, home).place;
  if (before == home.place) return false;
  const std::span<const int32_t> keyed = keyed_->buffers();  // ascending
  const auto state = [&](int32_t buffer) -> const StateCore* {
    const auto at = std::lower_bound(keyed.begin(), keyed.end(), buffer);
    if (at == keyed.end() || *at != buffer) return nullptr;
    return keyed_->state(home, static_cast<size_t>(at - keyed.begin())).get();
  };
  for (size_t i = 0; i < plan().instances.size(); ++i) {
    const graph::Instance& instance = plan().instances[i];
    if (instance.space != graph::Space::kState) continue;
    if (const StateCore* const of = state(instance.buffer)) slot.tables.pointers[i] = of->memory();
  }
  for (size_t u = 0; u < plan().states.size(); ++u) {
    if (const StateCore* const of = state(plan().states[u].buffer)) slot.ticket.places[u].queue = &of->queue();
  }
  return true;
}

// Whether the slot is as its last run left it: bound to the same memory, which is still of the same kind.
bool LaunchBinder::IsStillBound(const RunSlot& slot, const detail::BoundValues& bindings) const {
  return slot.bound.version != 0 && slot.bound.version == bindings.version() && slot.bound.kinds.StillTrue(driver());
}

absl::Status LaunchBinder::CheckParams(const detail::BoundValues& bindings) const {
  for (size_t p = 0; p < model().params.size(); ++p) {
    const ParamDecl& decl = model().params[p];
    if (!bindings.IsSet(p)) {
      return Refuse(absl::StatusCode::kFailedPrecondition, model(), "param", decl.name,
                    "not set; every parameter needs a value before the first launch; call Set");
    }
    if (!decl.has_max) continue;
    const int64_t value = ReadInteger(decl, bindings.Value(p));
    if (value < 0 || value > decl.max) {  // an unsigned value beyond the signed range is negative here
      return Refuse(absl::StatusCode::kInvalidArgument, model(), "param", decl.name,
                    "set to " + TextOfInteger(decl, value) + "; declared AtMost(" + std::to_string(decl.max) +
                        "), so it must be 0 to " + std::to_string(decl.max));
    }
  }
  return absl::OkStatus();
}

// Writes the parameters that differ from the slot's previous run. Returns whether a shape depends on one of them.
bool LaunchBinder::BindParams(RunSlot& slot, const detail::BoundValues& bindings) {
  bool reshaped = !slot.tables.params_known && program().dynamic;
  for (size_t p = 0; p < model().params.size(); ++p) {
    const ParamDecl& decl = model().params[p];
    const std::byte* const value = bindings.Value(p);
    std::byte* const known = slot.tables.param_bytes.data() + program().params.at[p];
    if (slot.tables.params_known && std::memcmp(known, value, decl.type.size) == 0) continue;
    ++slot.bound.changes;
    reshaped = reshaped || program().params.shaping[p];
    std::memcpy(known, value, decl.type.size);
    if (decl.is_integer) slot.tables.param_values[p] = ReadInteger(decl, value);
    if (const int32_t i = program().params.instance[p]; i >= 0) {
      std::memcpy(slot.tables.pointers[i], value, decl.type.size);
    }
    if (slot.replay != nullptr && slot.replay->ReadsIndirectly(p)) continue;
    for (uint32_t i = program().params.begin[p]; i < program().params.begin[p + 1]; ++i) {
      const ParamPatch& patch = program().params.patches[i];
      if (slot.replay != nullptr && !slot.replay->TakesParam(patch.call)) continue;
      std::memcpy(slot.tables.args.data() + patch.at, value, patch.size);
    }
  }
  slot.tables.params_known = true;
  return reshaped;
}

absl::Status LaunchBinder::BindBuffers(RunSlot& slot, const detail::BoundValues& bindings) {
  slot.bound.kinds.Forget();
  slot.bound.consumed.clear();
  for (size_t b = 0; b < model().buffers.size(); ++b) {
    const BufferDecl& decl = model().buffers[b];
    if (!IsBound(decl.role)) continue;
    if (IsLeased(decl)) {
      if (bindings.Memory(b).elements < 0) continue;
      return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name,
                    "memory is bound, but declared kSlot: it has the slot's own; write to Lease::span, or declare it "
                    "kHost or kPinned");
    }
    PENSTOCK_RETURN_IF_ERROR(BindBuffer(slot, decl, b, bindings.Memory(b)));
    if (bindings.Memory(b).once) slot.bound.consumed.push_back(static_cast<int32_t>(b));
  }
  return CheckOverlaps(slot);
}

absl::Status LaunchBinder::BindPredecessors(RunSlot& slot, const detail::BoundValues& bindings) {
  for (size_t a = 0; bindings.may_have_predecessors() && a < plan().external_deps.size(); ++a) {
    const auto b = static_cast<size_t>(plan().external_deps[a].buffer);
    const auto external_dep = static_cast<int32_t>(a);
    for (const Run& before : bindings.Memory(b).runs_ahead) {
      RunCore* const run = detail::Internals<Run>::CoreOf(before);
      if (!run->IsOf(*context_.runtime, &driver())) {
        return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", model().buffers[b].name,
                      "After was given a run of another runtime, or on devices of another driver; events join those "
                      "of one only; wait for it on the host");
      }
      run->Ref();
      slot.predecessors.runs.push_back({external_dep, run});
    }
    for (const NativeEvent event : bindings.Memory(b).events_ahead) {
      slot.predecessors.events.push_back({external_dep, event.handle});
    }
  }
  for (const RunPredecessor& before : slot.predecessors.runs) before.run->Follow();
  return absl::OkStatus();
}

absl::StatusOr<int> LaunchBinder::WaitForNative(RunSlot& slot, const detail::BoundValues& bindings) {
  const absl::Status waits = context_.in_order ? absl::OkStatus() : context_.submitter.WaitForEvents(slot);
  if (!waits.ok()) return base::Prefixed(context_.graph.Label() + ": an event given to After", waits);
  if (bindings.stream() == nullptr) return -1;
  const absl::StatusOr<int> device = BeginBehindStream(context_, slot, bindings.stream());
  if (!device.ok()) return base::Prefixed(context_.graph.Label() + ": the stream given to On", device.status());
  return *device;
}

absl::Status LaunchBinder::EnterStates(RunSlot& slot) {
  if (slot.ticket.places.empty()) return absl::OkStatus();
  StateOrder& order = context_.runtime->states();
  const absl::Status entered = order.Enter(slot.ticket);
  if (!entered.ok()) return base::Prefixed(context_.graph.Label(), entered);
  if (keyed_ == nullptr || keyed_->IsStill(slot.bound.home)) return absl::OkStatus();
  order.Leave(slot.ticket);
  return absl::FailedPreconditionError(context_.graph.Label() + ": the key was forgotten while it was launched");
}

absl::Status LaunchBinder::BindBuffer(RunSlot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory) {
  const auto [wanted, most] = ElementsToBind(slot.tables.boxes[buffer]);
  if (memory.elements < 0) {
    return Refuse(absl::StatusCode::kFailedPrecondition, model(), "buffer", decl.name,
                  "nothing is bound; every Input, Output and InOut needs memory; call Set");
  }
  if (memory.elements < wanted || memory.elements > most) {
    return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name,
                  "bound to " + std::to_string(memory.elements) + " elements; its extent in this run has " +
                      std::to_string(wanted) +
                      (decl.pitch == 0 ? "; bind exactly that many"
                                       : " with what lies between rows, " + std::to_string(most) +
                                             " with what lies behind the last; bind so many"));
  }
  if (memory.read_only && decl.role != BufferRole::kInput) {
    return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name,
                  "bound to const memory, but the graph writes it; bind memory that may be written");
  }
  if (const int32_t alias = program().buffers.max_alignment_alias[buffer]; alias >= 0) {
    const BufferDecl& strict = model().buffers[alias];
    if (reinterpret_cast<uintptr_t>(memory.data) % strict.type.align != 0) {
      return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name,
                    "bound to memory at no multiple of " + std::to_string(strict.type.align) +
                        " bytes, which the elements of its alias " + graph::Quoted(strict.name) +
                        " need; bind memory so aligned, such as Runtime::MakeHostBuffer gives");
    }
  }
  if (wanted > 0 && memory.data == nullptr) {
    return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name,
                  "bound to " + std::to_string(wanted) + " elements at a null address; bind memory that exists");
  }
  bool pinned = true;
  if (wanted > 0) {
    PENSTOCK_ASSIGN_OR_RETURN(pinned, CheckPlace(slot, decl, buffer, memory, wanted * decl.type.size));
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory.data);
  slot.bound.ranges[buffer] = {begin, begin + static_cast<uintptr_t>(wanted) * decl.type.size,
                               program().buffers.written[buffer]};
  if (program().buffers.bound[buffer] >= 0) slot.tables.pointers[program().buffers.bound[buffer]] = memory.data;
  slot.tables.bound_pinned[buffer] = pinned;
  if (const int32_t staged = program().buffers.staged[buffer]; staged >= 0) {
    slot.tables.pointers[staged] = pinned ? memory.data : slot.tables.staging[staged];
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LaunchBinder::CheckPlace(RunSlot& slot, const BufferDecl& decl, size_t buffer,
                                              const BoundMemory& memory, int64_t bytes) const {
  const auto refuse = [&](const std::string& text) {
    return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", decl.name, text);
  };
  const absl::StatusOr<PointerInfo> found =
      slot.bound.kinds.Inspect(driver(), memory.data, static_cast<size_t>(bytes), memory.held);
  if (!found.ok()) return base::Prefixed(graph::Prefix(model(), "buffer", decl.name), found.status());
  if (decl.where == Where::kDevice) {
    const int32_t instance = program().buffers.bound[buffer];
    if (instance < 0) return true;  // no node uses it
    const driver::DeviceRef& home = context_.graph.device(plan().instances[instance].device);
    if (found->kind == PointerInfo::Kind::kDevice && found->device == home.local) return true;
    const bool elsewhere = found->kind == PointerInfo::Kind::kDevice && found->device >= 0;
    return refuse("bound to memory that is not " + std::string(elsewhere ? "of " : "all of ") + home.info.name +
                  (decl.device >= 0 ? ", where it is declared" : ", where the first node that uses it runs") +
                  "; bind memory of that device, or declare the buffer kHost");
  }
  if (found->kind == PointerInfo::Kind::kDevice) {
    return refuse("bound to device memory, but declared for host memory; bind host memory, or declare it kDevice");
  }
  const bool pinned = found->kind == PointerInfo::Kind::kPinned;
  if (pinned || decl.where != Where::kPinned) return pinned;
  return refuse(
      "bound to memory that is not pinned, but declared kPinned; use Runtime::MakeHostBuffer, or declare it kHost");
}

absl::Status LaunchBinder::CheckOverlaps(RunSlot& slot) const {
  const std::optional<Overlap> overlap = FindOverlap(slot.bound.ranges, slot.bound.order);
  if (!overlap) return absl::OkStatus();
  const Name& first = model().buffers[overlap->first].name;
  return Refuse(absl::StatusCode::kInvalidArgument, model(), "buffer", model().buffers[overlap->second].name,
                "bound to memory that overlaps the memory of buffer '" + graph::OneLine(first.view()) +
                    "', and the graph writes one of them; bind memory of their own");
}

void LaunchBinder::PatchPointers(RunSlot& slot) {
  slot.tables.PatchPointers(program().patches.bound_pointers);
  for (const int32_t f : program().patches.bound_fills) {
    const FillEntry& entry = program().fills[f];
    slot.tables.fills[f].dst = slot.tables.AddressOf(entry.instance, entry.box);
  }
  PatchCopies(program(), slot.tables);
}

}  // namespace penstock::runtime
