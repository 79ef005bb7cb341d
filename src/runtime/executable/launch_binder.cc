// How a launch applies bindings to a slot: checks every value and address, then patches what they change. Memory that
// the slot has bound already is left as it is.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/run/application_stream.h"
#include "src/runtime/run/run_core.h"
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

// How many elements from the first to the last, and, where rows lie apart, with what lies behind the last row. Of no
// elements the former is 0.
std::pair<int64_t, int64_t> ElementsToBind(const BoxInRun& box) {
  const int64_t elements = box.shape.elements();
  if (box.row == box.shape.width() * box.element) return {elements, elements};  // most are, and divisions are slow
  const int64_t rows = box.shape.rows() * (box.row / box.element);
  return {elements == 0 ? 0 : rows - (box.row / box.element - box.shape.width()), rows};
}

}  // namespace

bool SameSignature(const Model& a, const Model& b) {
  return a.serial == b.serial && a.params.size() == b.params.size() && a.buffers.size() == b.buffers.size();
}

absl::Status ExecutableCore::Bind(Slot& slot, const Bindings& bindings) {
  if (bindings.model_ != model_ && (bindings.model_ == nullptr || !SameSignature(*bindings.model_, *model_))) {
    return absl::InvalidArgumentError(
        graph::Prefix(*model_) +
        ": the bindings were made by an executable of another graph, or by none; use this one's bindings()");
  }
  if (!bindings.mistakes_.empty()) return bindings.mistakes_.front().mistake;
  PENSTOCK_RETURN_IF_ERROR(CheckParams(bindings));
  PENSTOCK_ASSIGN_OR_RETURN(const bool other_key, BindKey(slot, bindings));
  const bool reshaped = BindParams(slot, bindings);
  if (reshaped || other_key || !IsStillBound(slot, bindings)) {
    slot.stamp = 0;
    if (slot.replay != nullptr) slot.replay->AllMayDiffer();
    if (program_.dynamic) PENSTOCK_RETURN_IF_ERROR(ApplyDynamicShapes(*model_, program_, slot));
    PENSTOCK_RETURN_IF_ERROR(BindBuffers(slot, bindings));
    PatchPointers(slot);
    slot.stamp = bindings.version_;
  }
  if (!slot.kept.empty()) slot.keep_alive.resize(model_->buffers.size());
  for (const int32_t b : slot.kept) {
    slot.keep_alive[static_cast<size_t>(b)] = bindings.buffers_[static_cast<size_t>(b)].keep_alive;
  }
  return BindPredecessors(slot, bindings);
}

absl::StatusOr<bool> ExecutableCore::BindKey(Slot& slot, const Bindings& bindings) {
  if (keyed_ == nullptr) return false;
  if (!bindings.key_) {
    const auto b = static_cast<size_t>(keyed_->buffers()[0]);
    return Refuse(absl::StatusCode::kFailedPrecondition, *model_, "state", model_->buffers[b].name,
                  "there is one for each key, and the launch names none; call Bindings::SetKey");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const KeyedHome home, keyed_->Find(bindings.key_->value, key_member_));
  const int before = std::exchange(slot.home, home).place;
  if (before == home.place) return false;
  const std::span<const int32_t> keyed = keyed_->buffers();  // ascending
  const auto state = [&](int32_t buffer) -> const StateCore* {
    const auto at = std::lower_bound(keyed.begin(), keyed.end(), buffer);
    if (at == keyed.end() || *at != buffer) return nullptr;
    return keyed_->state(home, static_cast<size_t>(at - keyed.begin())).get();
  };
  for (size_t i = 0; i < plan_.instances.size(); ++i) {
    const graph::Instance& instance = plan_.instances[i];
    if (instance.space != graph::Space::kState) continue;
    if (const StateCore* const of = state(instance.buffer)) slot.pointers[i] = of->memory();
  }
  for (size_t u = 0; u < plan_.states.size(); ++u) {
    if (const StateCore* const of = state(plan_.states[u].buffer)) slot.ticket.places[u].queue = &of->queue();
  }
  return true;
}

// Whether the slot is as its last run left it: bound to the same memory, which is of the kind it was.
bool ExecutableCore::IsStillBound(const Slot& slot, const Bindings& bindings) const {
  return slot.stamp != 0 && slot.stamp == bindings.version_ && slot.kinds.StillTrue(*driver_);
}

absl::Status ExecutableCore::CheckParams(const Bindings& bindings) const {
  for (size_t p = 0; p < model_->params.size(); ++p) {
    const ParamDecl& decl = model_->params[p];
    if (!bindings.param_set_[p]) {
      return Refuse(absl::StatusCode::kFailedPrecondition, *model_, "param", decl.name,
                    "not set; every parameter needs a value before the first launch; call Set");
    }
    if (!decl.has_max) continue;
    const int64_t value = ReadInteger(decl, bindings.params_.data() + bindings.param_offsets_[p]);
    if (value < 0 || value > decl.max) {  // an unsigned one that is larger than any other is negative here
      return Refuse(absl::StatusCode::kInvalidArgument, *model_, "param", decl.name,
                    "set to " + TextOfInteger(decl, value) + "; declared AtMost(" + std::to_string(decl.max) +
                        "), so it must be 0 to " + std::to_string(decl.max));
    }
  }
  return absl::OkStatus();
}

// Writes the parameters that are not what they were in the slot's run before. Whether a shape depends on one of them.
bool ExecutableCore::BindParams(Slot& slot, const Bindings& bindings) {
  bool reshaped = !slot.params_known && program_.dynamic;
  for (size_t p = 0; p < model_->params.size(); ++p) {
    const ParamDecl& decl = model_->params[p];
    const std::byte* const value = bindings.params_.data() + bindings.param_offsets_[p];
    std::byte* const known = slot.param_bytes.data() + program_.param_at[p];
    if (slot.params_known && std::memcmp(known, value, decl.type.size) == 0) continue;
    reshaped = reshaped || program_.shaping[p];
    std::memcpy(known, value, decl.type.size);
    if (decl.is_integer) slot.param_values[p] = ReadInteger(decl, value);
    if (const int32_t i = program_.param_instance[p]; i >= 0) {
      std::memcpy(slot.pointers[static_cast<size_t>(i)], value, decl.type.size);
    }
    if (slot.replay != nullptr && slot.replay->ReadsByRef(p)) continue;
    for (uint32_t i = program_.params_begin[p]; i < program_.params_begin[p + 1]; ++i) {
      const ParamPatch& patch = program_.params[i];
      if (slot.replay != nullptr && !slot.replay->TakesParam(patch.call)) continue;
      std::memcpy(slot.args.data() + patch.at, value, patch.size);
    }
  }
  slot.params_known = true;
  return reshaped;
}

absl::Status ExecutableCore::BindBuffers(Slot& slot, const Bindings& bindings) {
  slot.kinds.Forget();
  slot.kept.clear();
  slot.taken.clear();
  for (size_t b = 0; b < model_->buffers.size(); ++b) {
    const BufferDecl& decl = model_->buffers[b];
    if (!IsBound(decl.role)) continue;
    if (IsLeased(decl)) {
      if (bindings.buffers_[b].elements < 0) continue;
      return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name,
                    "memory is bound, but declared kSlot: it has the slot's own; write to Lease::span, or declare it "
                    "kHost or kPinned");
    }
    PENSTOCK_RETURN_IF_ERROR(BindBuffer(slot, decl, b, bindings.buffers_[b]));
    if (bindings.buffers_[b].keep_alive != nullptr) slot.kept.push_back(static_cast<int32_t>(b));
    if (bindings.buffers_[b].once) slot.taken.push_back(static_cast<int32_t>(b));
  }
  return CheckOverlaps(slot);
}

absl::Status ExecutableCore::BindPredecessors(Slot& slot, const Bindings& bindings) {
  for (size_t a = 0; a < plan_.external_deps.size(); ++a) {
    const auto b = static_cast<size_t>(plan_.external_deps[a].buffer);
    const auto external_dep = static_cast<int32_t>(a);
    for (const Run& run : bindings.buffers_[b].runs_ahead) {
      if (!run.state_->IsOf(*runtime_, driver_)) {
        return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", model_->buffers[b].name,
                      "After was given a run of another runtime, or on devices of another driver; events join those "
                      "of one only; wait for it on the host");
      }
      run.state_->Ref();
      slot.ahead.push_back({external_dep, run.state_});
    }
    for (void* const event : bindings.buffers_[b].events_ahead) slot.events_ahead.push_back({external_dep, event});
  }
  for (const Predecessor& ahead : slot.ahead) ahead.run->Follow();
  return absl::OkStatus();
}

// When it is settled which lanes the run is submitted on.
absl::Status ExecutableCore::WaitForNative(Slot& slot, const Bindings& bindings, int& stream_device) {
  const absl::Status waits = executor_.WaitForEvents(slot);
  if (!waits.ok()) return base::Prefixed(graph::Prefix(*model_) + ": an event given to After", waits);
  if (bindings.stream_ == nullptr) return absl::OkStatus();
  const absl::StatusOr<int> behind = BeginBehindStream(*this, slot, bindings.stream_);
  if (!behind.ok()) return base::Prefixed(graph::Prefix(*model_) + ": the stream given to On", behind.status());
  stream_device = *behind;
  return absl::OkStatus();
}

// The next run has them; launches after that need others.
void ExecutableCore::TakeOver(Slot& slot, const Bindings& bindings) {
  for (const int32_t b : slot.taken) bindings.buffers_[static_cast<size_t>(b)] = {};
  if (!slot.taken.empty()) bindings.version_ = 0;
}

absl::Status ExecutableCore::BindBuffer(Slot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory) {
  const auto [wanted, most] = ElementsToBind(slot.boxes[buffer]);
  if (memory.elements < 0) {
    return Refuse(absl::StatusCode::kFailedPrecondition, *model_, "buffer", decl.name,
                  "nothing is bound; every Input, Output and InOut needs memory; call Set");
  }
  if (memory.elements < wanted || memory.elements > most) {
    return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name,
                  "bound to " + std::to_string(memory.elements) + " elements; its extent in this run has " +
                      std::to_string(wanted) +
                      (decl.pitch == 0 ? "; bind exactly that many"
                                       : " with what lies between rows, " + std::to_string(most) +
                                             " with what lies behind the last; bind so many"));
  }
  if (memory.read_only && decl.role != BufferRole::kInput) {
    return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name,
                  "bound to const memory, but the graph writes it; bind memory that may be written");
  }
  if (const int32_t alias = program_.max_alignment_alias[buffer]; alias >= 0) {
    const BufferDecl& strict = model_->buffers[static_cast<size_t>(alias)];
    if (reinterpret_cast<uintptr_t>(memory.data) % strict.type.align != 0) {
      return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name,
                    "bound to memory at no multiple of " + std::to_string(strict.type.align) +
                        " bytes, which the elements of its alias " + graph::Quoted(strict.name) +
                        " need; bind memory so aligned, such as Runtime::MakeHostBuffer gives");
    }
  }
  if (wanted > 0 && memory.data == nullptr) {
    return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name,
                  "bound to " + std::to_string(wanted) + " elements at a null address; bind memory that exists");
  }
  bool pinned = true;
  if (wanted > 0) {
    PENSTOCK_ASSIGN_OR_RETURN(pinned, CheckPlace(slot, decl, buffer, memory, wanted * decl.type.size));
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory.data);
  slot.bound_ranges[buffer] = {begin, begin + static_cast<uintptr_t>(wanted) * decl.type.size,
                               program_.written[buffer]};
  if (program_.bound[buffer] >= 0) slot.pointers[static_cast<size_t>(program_.bound[buffer])] = memory.data;
  slot.bound_pinned[buffer] = pinned;
  if (const int32_t staged = program_.staged[buffer]; staged >= 0) {
    slot.pointers[static_cast<size_t>(staged)] = pinned ? memory.data : slot.staging[static_cast<size_t>(staged)];
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ExecutableCore::CheckPlace(Slot& slot, const BufferDecl& decl, size_t buffer,
                                                const BoundMemory& memory, int64_t bytes) const {
  const auto refuse = [&](const std::string& text) {
    return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer", decl.name, text);
  };
  const absl::StatusOr<PointerInfo> found =
      slot.kinds.Inspect(*driver_, memory.data, static_cast<size_t>(bytes), memory.held);
  if (!found.ok()) return base::Prefixed(graph::Prefix(*model_, "buffer", decl.name), found.status());
  if (decl.where == Where::kDevice) {
    const int32_t instance = program_.bound[buffer];
    if (instance < 0) return true;  // no node uses it
    const driver::DeviceRef& home = device(plan_.instances[static_cast<size_t>(instance)].device);
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

absl::Status ExecutableCore::CheckOverlaps(Slot& slot) const {
  const std::optional<Overlap> overlap = FindOverlap(slot.bound_ranges, slot.bound_order);
  if (!overlap) return absl::OkStatus();
  const Name& first = model_->buffers[static_cast<size_t>(overlap->first)].name;
  return Refuse(absl::StatusCode::kInvalidArgument, *model_, "buffer",
                model_->buffers[static_cast<size_t>(overlap->second)].name,
                "bound to memory that overlaps the memory of buffer '" + graph::OneLine(first.view()) +
                    "', and the graph writes one of them; bind memory of their own");
}

void ExecutableCore::PatchPointers(Slot& slot) {
  slot.PatchPointers(program_.bound_pointers);
  for (const int32_t f : program_.bound_fills) {
    const FillEntry& entry = program_.fills[static_cast<size_t>(f)];
    slot.fills[static_cast<size_t>(f)].dst = slot.AddressOf(entry.instance, entry.box);
  }
  PatchCopies(program_, slot);
}

}  // namespace penstock::runtime
