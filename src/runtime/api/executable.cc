// Executable: the public handle of an ExecutableSet.
#include "penstock/executable.h"

#include <utility>

#include "graph/common/message.h"
#include "graph/place/choose_placement.h"
#include "penstock/status_macros.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/executable/graph_export.h"
#include "src/runtime/executable/internals.h"

namespace penstock {
namespace {
absl::Status NoExecutable() {
  return absl::FailedPreconditionError("this Executable was default-constructed or moved from; use Runtime::Compile");
}
// With the plans of the constructs' parts below.
std::string TextOf(const runtime::ExecutableCore& core) {
  std::string text = graph::PrintText(core.graph().plan(), core.model());
  for (const runtime::ControlPart& part : core.parts()) {
    text += "\n" + part.label + " of construct " + graph::Quoted(core.model().nodes[part.construct].name) + ":\n" +
            TextOf(*part.core);
  }
  return text;
}
std::vector<graph::PartPlan> PlansOfParts(const runtime::ExecutableCore& core) {
  std::vector<graph::PartPlan> plans;
  for (const runtime::ControlPart& part : core.parts()) {
    plans.push_back({part.construct, part.kind, part.label, &part.core->graph().plan(), PlansOfParts(*part.core)});
  }
  return plans;
}
}  // namespace

Bindings Executable::bindings() const { return set_ == nullptr ? Bindings() : set_->first().MakeBindings(); }
absl::StatusOr<Run> Executable::Launch(const Bindings& bindings, Deadline deadline) {
  return set_ == nullptr ? NoExecutable() : set_->Launch(bindings, deadline, runtime::Wait::kYes);
}
absl::StatusOr<Run> Executable::TryLaunch(const Bindings& bindings, Deadline deadline) {
  return set_ == nullptr ? NoExecutable() : set_->Launch(bindings, deadline, runtime::Wait::kNo);
}
absl::StatusOr<Run> Executable::Launch(Deadline deadline) {
  return set_ == nullptr ? NoExecutable() : set_->Launch(set_->nothing_set(), deadline, runtime::Wait::kYes);
}
absl::StatusOr<Run> Executable::TryLaunch(Deadline deadline) {
  return set_ == nullptr ? NoExecutable() : set_->Launch(set_->nothing_set(), deadline, runtime::Wait::kNo);
}
absl::StatusOr<Lease> Executable::Acquire(Deadline deadline) {
  if (set_ == nullptr) return NoExecutable();
  PENSTOCK_ASSIGN_OR_RETURN(auto leased, set_->Lease(deadline, runtime::Wait::kYes));
  return detail::Internals<Lease>::Make(std::move(leased.first), leased.second);
}
absl::StatusOr<Lease> Executable::TryAcquire() {
  if (set_ == nullptr) return NoExecutable();
  PENSTOCK_ASSIGN_OR_RETURN(auto leased, set_->Lease(Deadline(), runtime::Wait::kNo));
  return detail::Internals<Lease>::Make(std::move(leased.first), leased.second);
}
absl::StatusOr<ExportedGraph> Executable::Export(const Bindings& bindings) {
  if (set_ == nullptr) return NoExecutable();
  if (set_->members().size() > 1) {
    return absl::FailedPreconditionError(graph::Prefix(set_->first().model()) +
                                         ": not exported, since it is compiled for several devices and an exported "
                                         "graph is of one; use Executable::On");
  }
  const std::shared_ptr<runtime::ExecutableCore>& core = set_->members()[0].core;
  PENSTOCK_ASSIGN_OR_RETURN(auto exported, runtime::GraphExport::Create(core, bindings));
  void* const native = exported->native();
  return ExportedGraph(std::move(exported), native);
}
absl::Status ExportedGraph::status() const { return owner_ == nullptr ? absl::OkStatus() : owner_->status(); }

int Executable::slots() const {
  int slots = 0;
  for (size_t m = 0; set_ != nullptr && m < set_->members().size(); ++m) slots += set_->members()[m].core->slots();
  return slots;
}
int64_t Executable::launches() const {
  int64_t launches = 0;
  for (size_t m = 0; set_ != nullptr && m < set_->members().size(); ++m) {
    launches += set_->members()[m].core->launches();
  }
  return launches;
}
std::vector<int> Executable::devices() const {
  std::vector<int> devices;
  for (size_t m = 0; set_ != nullptr && m < set_->members().size(); ++m) {
    devices.push_back(set_->members()[m].share.device);
  }
  return devices;
}
absl::StatusOr<Executable> Executable::On(int device) const {
  if (set_ == nullptr) return NoExecutable();
  PENSTOCK_ASSIGN_OR_RETURN(auto on, set_->On(device));
  return Executable(std::move(on));
}

absl::StatusOr<std::shared_ptr<const StateRecord>> Executable::FindState(uint32_t graph, int32_t index, TypeInfo type,
                                                                         Key key) {
  if (set_ == nullptr) return NoExecutable();
  runtime::KeyedStates* const keyed = set_->keyed();
  const Model& model = set_->first().model();
  for (size_t k = 0; keyed != nullptr && k < keyed->buffers().size(); ++k) {
    const int32_t buffer = keyed->buffers()[k];
    if (graph != model.serial || index != buffer) continue;
    if (model.buffers[buffer].type != type) break;
    PENSTOCK_ASSIGN_OR_RETURN(const runtime::KeyedHome home, set_->FindHome(key.value));
    return std::shared_ptr<const StateRecord>(keyed->state(home, k));
  }
  return absl::InvalidArgumentError(graph::Prefix(model) +
                                    ": StateOf takes a handle that this graph's KeyedState returned");
}
absl::Status Executable::Forget(Key key, Deadline deadline) {
  if (set_ == nullptr) return NoExecutable();
  return set_->keyed() == nullptr ? absl::OkStatus() : set_->keyed()->Forget(key.value, deadline);
}

MemoryReport Executable::memory() const { return set_ == nullptr ? MemoryReport() : set_->memory(); }
Mode Executable::Decide() { return set_ == nullptr ? Mode::kStream : set_->DecideMode(); }
SubmissionReport Executable::submission_report() const {
  return set_ == nullptr ? SubmissionReport() : set_->submission_report();
}
PlacementReport Executable::placement_report() const {
  if (set_ == nullptr) return {};
  const runtime::CompiledGraph& graph = set_->first().graph();
  std::vector<std::string> devices;
  for (const driver::DeviceRef& device : graph.devices()) devices.push_back(device.info.name);
  return graph::ReportPlacement(graph.plan(), graph.model(), devices, graph.placement());
}
std::string Executable::PlanText() const { return set_ == nullptr ? "" : TextOf(set_->first()); }
std::string Executable::PlanDot() const {
  if (set_ == nullptr) return "";
  const runtime::ExecutableCore& core = set_->first();
  return graph::PrintDot(core.graph().plan(), core.model(), PlansOfParts(core));
}

}  // namespace penstock
