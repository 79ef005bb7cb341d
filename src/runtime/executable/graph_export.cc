#include "src/runtime/executable/graph_export.h"

#include <string>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/executable/internals.h"

namespace penstock::runtime {
namespace {

absl::Status Unexported(const ExecutableCore& core, int32_t node, const char* why) {
  return core.Describe(node, absl::FailedPreconditionError(std::string("not exported: ") + why));
}

// Checks what does not depend on bindings.
absl::Status CheckExports(const ExecutableCore& core) {
  if (!core.parts().empty()) {
    return absl::FailedPreconditionError(
        core.Label() +
        ": not exported, since an exported graph cannot have constructs that are not unrolled, such as " +
        graph::Quoted(core.model().nodes[core.parts()[0].construct].name) +
        "; launch it, or export a graph of what is in a body");
  }
  const Program& program = core.graph().program();
  if (program.replay.graphs() == 0) {
    const std::vector<std::string> notes = core.submission_report().notes;
    const std::string why = notes.empty() ? "" : " (" + notes.back() + ")";
    return absl::FailedPreconditionError(core.Label() + ": not exported, since it has no graphs" + why +
                                         "; compile with Mode::kGraph or Mode::kAuto");
  }
  if (!program.replay.regions.empty()) {
    return absl::FailedPreconditionError(
        core.Label() +
        ": not exported, since regions that run resident need room that an application's launches do not ask for; "
        "compile with Resident::kOff");
  }
  if (program.buffers.leased >= 0) {
    const Model& model = core.model();
    return absl::FailedPreconditionError(
        graph::Prefix(model, "buffer", model.buffers[program.buffers.leased].name) +
        ": declared kSlot, but an exported graph has no slot that could be filled; bind memory instead");
  }
  if (core.context().in_order) {
    return absl::FailedPreconditionError(
        core.Label() +
        ": not exported, since runs in order (CompileOptions::in_order) share the memory that the graph would use; "
        "compile another executable without");
  }
  if (!core.graph().plan().states.empty()) {
    return absl::FailedPreconditionError(
        core.Label() +
        ": not exported, since its States have an order with runs, of which an exported graph is none; bind memory");
  }
  for (const ExecCommand& command : program.graphs.commands) {
    if (command.node < 0) continue;
    return Unexported(core, command.node, "it is in no graph, and the executable's submission_report says why");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const GraphExport>> GraphExport::Create(const std::shared_ptr<ExecutableCore>& core,
                                                                       const Bindings& bindings) {
  PENSTOCK_RETURN_IF_ERROR(core->CheckMayLaunch("exported"));
  PENSTOCK_RETURN_IF_ERROR(CheckExports(*core));
  PENSTOCK_ASSIGN_OR_RETURN(RunSlot * slot, core->Lease(Deadline(), Wait::kNo));
  auto exported = std::make_shared<GraphExport>(core, slot);
  absl::Status made = exported->Bind(bindings);
  if (made.ok()) made = exported->Make();
  if (!made.ok()) core->runtime().NoteFault(made);
  PENSTOCK_RETURN_IF_ERROR(made);
  if (exported->native() != nullptr) return exported;
  return absl::FailedPreconditionError(core->Label() + ": a graph on " +
                                       core->graph().device(core->graph().plan().lanes[0].device).info.name +
                                       " is none of CUDA's; export where the plan is on a CUDA device");
}

// Binds as for a run. The graphs of the slot's runs do not learn of it, so the next run binds everything again.
absl::Status GraphExport::Bind(const Bindings& bindings) {
  RunSlot& slot = *slot_;
  slot.fault.Reset();
  const auto forget = [&] {
    slot.tables.params_known = false;
    slot.bound.version = 0;
  };
  SlotGraphs* const replay = std::exchange(slot.replay, nullptr);
  forget();
  absl::Status bound = core_->binder().Bind(slot, detail::Internals<Bindings>::ValuesOf(bindings));
  slot.predecessors.Release();  // an exported graph waits for what the application says
  forget();
  slot.replay = replay;
  PENSTOCK_RETURN_IF_ERROR(bound);
  const Program& program = core_->graph().program();
  for (size_t s = 0; s < program.hosts.size(); ++s) {
    if (slot.tables.is_noop[s] || program.hosts[s].ring < 0) continue;
    return Unexported(*core_, core_->graph().plan().host_steps[s].node,
                      "several threads copy what is bound, since it is large and not pinned; bind pinned memory");
  }
  return absl::OkStatus();
}

absl::Status GraphExport::Make() {
  absl::StatusOr<std::unique_ptr<WholeGraph>> graph = absl::UnknownError("");
  (void)core_->runtime().WithMemory([&] { return (graph = slot_->ExportGraph()).status(); });
  if (!graph.ok()) {
    absl::Status why = graph.status();
    const int32_t node = base::TakeNode(why);
    return node < 0 ? why : core_->Describe(base::IsFatal(why) ? -1 : node, why);
  }
  graph_ = *std::move(graph);
  return absl::OkStatus();
}

GraphExport::~GraphExport() {
  if (core_->runtime().forked()) {
    [[maybe_unused]] const WholeGraph* const left_behind = graph_.release();
    return;
  }
  graph_.reset();
  slot_->bound.keep_alives.reset();
  core_->GiveBack(slot_);
}

absl::Status GraphExport::status() const {
  const driver::RunFault& fault = slot_->fault;
  return fault.failed() ? core_->Describe(fault.node(), fault.status()) : absl::OkStatus();
}

}  // namespace penstock::runtime
