#include "src/runtime/pipeline/stage_runs.h"

#include <algorithm>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/pipeline/internals.h"
#include "src/runtime/pipeline/waiting.h"
#include "src/runtime/run/internals.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

bool HaveFreeSlots(const Stage& stage, int member) {
  return std::all_of(stage.executables.begin(), stage.executables.end(), [&](const StageExecutable& executable) {
    return executable.set->members()[member].core->HasFreeSlot();
  });
}

absl::Status TakeSlots(const Stage& stage, int member, PipelineItem& item) {
  if (stage.executables.size() > 1 && !HaveFreeSlots(stage, member)) {
    return absl::ResourceExhaustedError("an executable of the row has no free slot");
  }
  for (const StageExecutable& executable : stage.executables) {
    const std::shared_ptr<ExecutableCore>& core = executable.set->members()[member].core;
    absl::StatusOr<RunSlot*> slot = core->Lease(Deadline(), Wait::kNo);
    if (slot.ok()) {
      item.parts[executable.part].slot = detail::Internals<Lease>::Make(core, *slot);
      continue;
    }
    GiveSlotsBack(stage, item);
    return slot.status();
  }
  return absl::OkStatus();
}

void GiveSlotsBack(const Stage& stage, PipelineItem& item) {
  for (const StageExecutable& executable : stage.executables) {
    item.parts[executable.part].slot = Lease();
  }
}

void BindLinks(const Stage& stage, size_t l, int member, PipelineItem& item) {
  const auto part = [&](size_t of) -> PipelineItem::Part& { return item.parts[stage.executables[of].part]; };
  // Binds the links between `reader` and the executable before it.
  const auto bind = [&](size_t reader, bool input) {
    const StageExecutable& executable = stage.executables[reader];
    const auto slot = static_cast<size_t>(detail::Internals<Lease>::SlotOf(part(reader - 1).slot).index);
    detail::BoundValues& to = detail::Internals<Bindings>::ValuesOf(part(input ? reader : reader - 1).bindings);
    for (size_t k = 0; k < executable.links.size(); ++k) {
      const Link& link = executable.links[k];
      const std::shared_ptr<void>& memory = executable.between[member][slot][k];
      const uint32_t graph = input ? link.to_graph : link.from_graph;
      const int32_t index = input ? link.to_index : link.from_index;
      const BufferDecl& decl = (input ? executable : stage.executables[reader - 1]).set->first().model().buffers[index];
      int64_t elements = 1;
      for (int i = 0; i < decl.extent.rank; ++i) elements *= decl.extent.dims[i].value;
      BoundMemory bound{.data = memory.get(), .elements = elements, .held = true};
      bound.keep_alive = memory;
      to.SetBuffer(graph, index, decl.type, std::move(bound));
      if (input) to.SetPredecessors(graph, index, decl.type, {&item.run, 1}, {});
    }
  };
  if (l > 0) bind(l, /*input=*/true);
  if (l + 1 < stage.executables.size()) bind(l + 1, /*input=*/false);
}

namespace {

absl::Status StartOne(const Stage& stage, size_t l, int member, PipelineItem& item) {
  const StageExecutable& executable = stage.executables[l];
  PipelineItem::Part& part = item.parts[executable.part];
  if (executable.set->keyed() != nullptr) part.bindings.SetKey(Key(item.key));
  if (stage.executables.size() > 1) BindLinks(stage, l, member, item);
  absl::StatusOr<Run> run = part.slot.Launch(part.bindings, item.deadline);
  if (!run.ok()) return run.status();
  if (l > 0) item.parts[stage.executables[l - 1].part].run = std::move(item.run);
  item.run = *std::move(run);
  return absl::OkStatus();
}

}  // namespace

absl::Status StartRuns(const Stage& stage, int member, PipelineItem& item) {
  for (const StageExecutable& executable : stage.executables) {
    item.parts[executable.part].run = Run();  // of an earlier try
    if (executable.call) PENSTOCK_RETURN_IF_ERROR(CallOnItem(executable.prefix, executable.call, item));
  }
  for (size_t l = 0; l < stage.executables.size(); ++l) {
    absl::Status started = StartOne(stage, l, member, item);
    if (started.ok()) continue;
    if (l == 0) return started;
    item.cut_short = std::move(started);
    break;
  }
  return absl::OkStatus();
}

bool RunsEnded(const PipelineItem& item) {
  return item.run.done() &&
         std::all_of(item.parts.begin(), item.parts.end(), [](const auto& part) { return part.run.done(); });
}

namespace {

// The runs of the next stage take the place of these.
void KeepCounts(const Stage& stage, PipelineItem& item) {
  for (size_t l = 0; l < stage.executables.size(); ++l) {
    PipelineItem::Part& part = item.parts[stage.executables[l].part];
    const Run& run = l + 1 < stage.executables.size() ? part.run : item.run;
    if (const RunCore* const core = detail::Internals<Run>::CoreOf(run)) part.counts = core->counts();
  }
}

}  // namespace

absl::Status StatusOfRuns(const Stage& stage, PipelineItem& item) {
  for (size_t l = 0; l + 1 < stage.executables.size(); ++l) {
    const Run& run = item.parts[stage.executables[l].part].run;
    if (detail::Internals<Run>::CoreOf(run) == nullptr) break;  // the last one launched is item.run
    if (absl::Status status = run.status(); !status.ok() && run.done()) return status;
  }
  KeepCounts(stage, item);
  absl::Status status = item.run.status();
  if (status.ok()) status = item.cut_short;
  item.cut_short = absl::OkStatus();
  return status;
}

bool IsDrained(const PipelineItem& item) {
  return detail::Internals<Run>::IsDrained(item.run) &&
         std::all_of(item.parts.begin(), item.parts.end(),
                     [](const auto& part) { return detail::Internals<Run>::IsDrained(part.run); });
}

void CancelRuns(const PipelineItem& item) {
  for (const PipelineItem::Part& part : item.parts) part.run.Cancel();
  item.run.Cancel();
}

absl::Status PoisonOf(const Stage& stage, int member, const PipelineItem& item) {
  for (const StageExecutable& executable : stage.executables) {
    const ExecutableCore& core = *executable.set->members()[member].core;
    for (const graph::StateUse& use : core.graph().plan().states) {
      const BufferDecl& decl = core.model().buffers[use.buffer];
      if (decl.keys != 0) continue;
      if (absl::Status poison = StateCore::Of(*decl.state).status(); !poison.ok()) return poison;
    }
    if (core.binder().keyed() == nullptr) continue;
    if (absl::Status poison = core.binder().keyed()->PoisonOf(item.key); !poison.ok()) return poison;
  }
  return absl::OkStatus();
}

absl::Status CallOnItem(const std::string& prefix, const detail::StageFunction& call, PipelineItem& item) {
  const base::UserCodeScope scope;
  const InsideScope inside(item.core, item.index);
  AnyItem any = detail::Internals<AnyItem>::Make(nullptr, item);
  const absl::Status status = base::CatchAll("its function", [&] { return call(any); });
  return status.ok() ? status : base::Prefixed(prefix, status);
}

}  // namespace penstock::runtime
