// How what a launch would do becomes a graph for the application.
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/executable/graph_export.h"

namespace penstock::runtime {

GraphExport::~GraphExport() {
  if (core_->runtime().forked()) {
    [[maybe_unused]] const SlotGraphs* const left_behind = graph_.release();
    return;
  }
  graph_.reset();
  slot_->keep_alive.clear();
  core_->GiveBack(slot_);
}

absl::StatusOr<std::shared_ptr<const GraphExport>> ExecutableCore::Export(std::shared_ptr<ExecutableCore> handle,
                                                                          const Bindings& bindings) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch("exported"));
  PENSTOCK_RETURN_IF_ERROR(CheckExports());
  PENSTOCK_ASSIGN_OR_RETURN(Slot * slot, Lease(Deadline(), /*wait=*/false));
  auto exported = std::make_shared<GraphExport>(std::move(handle), slot);
  const absl::Status bound = BindToExport(*slot, bindings);
  if (!bound.ok()) runtime_->NoteFault(bound);
  PENSTOCK_RETURN_IF_ERROR(bound);
  int32_t node = -1;
  absl::StatusOr<std::unique_ptr<SlotGraphs>> graph = absl::UnknownError("");
  (void)runtime_->WithMemory([&] { return (graph = slot->ExportGraph(node)).status(); });
  if (!graph.ok()) {
    runtime_->NoteFault(graph.status());
    return node < 0 ? graph.status() : Describe(base::IsFatal(graph.status()) ? -1 : node, graph.status());
  }
  exported->Set(*std::move(graph));
  if (exported->native() != nullptr) return exported;
  return absl::FailedPreconditionError(graph::Prefix(*model_) + ": a graph on " +
                                       device(plan_.lanes[0].device).info.name +
                                       " is none of CUDA's; export where the plan is on a CUDA device");
}

// What holds whatever is bound.
absl::Status ExecutableCore::CheckExports() const {
  if (program_.replay.graphs() == 0) {
    const std::string why = submission_report_.notes.empty() ? "" : " (" + submission_report_.notes.back() + ")";
    return absl::FailedPreconditionError(graph::Prefix(*model_) + ": not exported, since it has no graphs" + why +
                                         "; compile with Mode::kGraph or Mode::kAuto");
  }
  if (program_.leased >= 0) {
    return absl::FailedPreconditionError(
        graph::Prefix(*model_, "buffer", model_->buffers[static_cast<size_t>(program_.leased)].name) +
        ": declared kSlot, and nobody could fill the slot of an exported graph; bind memory instead");
  }
  if (!plan_.states.empty()) {
    return absl::FailedPreconditionError(
        graph::Prefix(*model_) +
        ": not exported, since its States have an order with runs, of which an exported graph is none; bind memory");
  }
  for (const ExecCommand& command : program_.graphs.commands) {
    if (command.node < 0) continue;
    return Unexported(command.node, "it is in no graph, and the executable's submission_report says why");
  }
  return absl::OkStatus();
}

absl::Status ExecutableCore::Unexported(int32_t node, const char* why) const {
  return Describe(node, absl::FailedPreconditionError(std::string("not exported: ") + why));
}

// As for a run; but the graphs of the slot's runs learn nothing of it, and so the next one binds all of it anew.
absl::Status ExecutableCore::BindToExport(Slot& slot, const Bindings& bindings) {
  slot.fault.Reset();
  SlotGraphs* const replay = std::exchange(slot.replay, nullptr);
  slot.params_known = false;
  slot.stamp = 0;
  absl::Status bound = Bind(slot, bindings);
  slot.ReleasePredecessors();  // an exported graph comes behind what the application says
  slot.params_known = false;
  slot.stamp = 0;
  slot.replay = replay;
  if (!bound.ok()) return bound;
  for (size_t s = 0; s < program_.hosts.size(); ++s) {
    if (slot.is_noop[s] || program_.hosts[s].ring < 0) continue;
    return Unexported(plan_.host_steps[s].node,
                      "several threads copy what is bound, since it is large and not pinned; bind pinned memory");
  }
  return absl::OkStatus();
}

// On a thread of the driver's. It waits for whoever is inside the callable: see exported_graph.h.
void ExecutableCore::CallExported(Slot& slot, int32_t node, int32_t step, int32_t ask) {
  const base::DeviceCodeScope scope;
  if (slot.fault.failed()) return;
  while (!EnterGate(node)) std::this_thread::yield();
  step < 0 ? CallHostcall(slot, program_.hostcalls[static_cast<size_t>(ask)], -1) : RunHostNode(slot, step, -1);
  LeaveGate(node);
}

absl::Status GraphExport::status() const {
  const driver::RunFault& fault = slot_->fault;
  return fault.failed() ? core_->Describe(fault.node(), fault.status()) : absl::OkStatus();
}

}  // namespace penstock::runtime
