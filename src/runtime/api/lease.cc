// Lease: the public handle of a leased slot.
#include "penstock/lease.h"

#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock {

Lease::~Lease() {
  if (slot_ != nullptr && !core_->runtime().forked()) core_->GiveBack(slot_);
}

absl::StatusOr<Run> Lease::Launch(const Bindings& bindings, Deadline deadline) {
  if (slot_ == nullptr) {
    return absl::FailedPreconditionError("this Lease was default-constructed or moved from; use Executable::Acquire");
  }
  return core_->LaunchIn(slot_, bindings, deadline);
}

std::pair<void*, size_t> Lease::Find(uint32_t graph, int32_t index, TypeInfo type) const {
  if (slot_ == nullptr || graph != core_->model().serial) return {};
  const std::vector<graph::Instance>& instances = core_->graph().plan().instances;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].buffer != index || !instances[i].leased) continue;
    if (core_->model().buffers[index].type != type) return {};
    return {slot_->tables.pointers[i], static_cast<size_t>(instances[i].bytes) / type.size};
  }
  return {};
}

}  // namespace penstock
