#include "src/runtime/executable/device_construct.h"

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

DeviceConstruct::DeviceConstruct(RunSlot& outer, NodeId node, const CompiledControl& control)
    : outer_(outer),
      node_(node),
      control_(control.folded),
      driver_(outer.graph().driver()),
      device_(outer.graph().device(outer.graph().plan().nodes[node].device)),
      parts_(control, outer, node) {}

DeviceConstruct::~DeviceConstruct() {
  const driver::CurrentDevice current(driver_, device_.local);
  if (alone_) driver_.DestroyExec(alone_);
}

absl::Status DeviceConstruct::MakeLoopMemory(bool traced) {
  PENSTOCK_ASSIGN_OR_RETURN(loop_, LoopMemory::Create(outer_, device_, traced));
  return absl::OkStatus();
}

detail::Decision DeviceConstruct::DecisionOf(detail::DecisionKind kind) const {
  detail::Decision decision{.most = control_->max, .kind = kind};
  if (loop_ != nullptr) loop_->AddTo(decision);
  return decision;
}

void DeviceConstruct::TakeIterations(AddIterations add) {
  if (loop_ != nullptr) loop_->TakeIterations(control_->name.view(), add);
  parts_.ForEach([&](const PartSlot& part) {
    for (const auto& inner : part.slot().constructs) inner->TakeIterations(add);
  });
}

absl::Status DeviceConstruct::Bind() {
  parts_.ForEach([](const PartSlot& part) { part.slot().fault.Reset(); });
  if (bound_ != 0 && bound_ == outer_.bound.changes) return BindInner();
  bound_ = 0;
  if (control_->kind == ControlKind::kRepeat) {
    PENSTOCK_ASSIGN_OR_RETURN(trips_, CountTrips(outer_, control_->trips));
  }
  absl::Status bound = parts_.Try([&](PartSlot& part) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(part.SetValues(outer_, node_));
    return part.core().binder().Bind(part.slot(), part.values());
  });
  if (bound.ok()) bound_ = outer_.bound.changes;
  return bound;
}

// What is bound to the parts has not changed.
absl::Status DeviceConstruct::BindInner() {
  return parts_.Try([](PartSlot& part) -> absl::Status {
    for (const auto& inner : part.slot().constructs) PENSTOCK_RETURN_IF_ERROR(inner->Bind());
    return absl::OkStatus();
  });
}

absl::Status DeviceConstruct::MakeGraph() {
  const driver::CurrentDevice current(driver_, device_.local);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph graph, driver_.CreateGraph(device_.local));
  absl::Status made = AddTo(graph, {}).status();
  if (made.ok()) {
    const absl::StatusOr<driver::GraphExec> exec = driver_.Instantiate(graph);
    made = exec.status();
    if (made.ok()) alone_ = *exec;
    if (made.ok()) outer_.options().runtime.observed().counts.instantiations += 1;
  }
  if (made.ok()) made = SetExec(alone_, alone_);
  driver_.DestroyGraph(graph);
  return made;
}

absl::Status DeviceConstruct::Launch(driver::Stream stream) {
  PENSTOCK_RETURN_IF_ERROR(Update());
  PENSTOCK_RETURN_IF_ERROR(Refresh(stream));
  return driver_.LaunchGraph(alone_, stream);
}

void DeviceConstruct::UseStop(const uint32_t* stop) {
  stop_ = stop;
  parts_.UseStop(stop);
}

}  // namespace penstock::runtime
