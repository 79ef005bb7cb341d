#include "src/runtime/executable/compile_controls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/common/message.h"
#include "graph/control/fold.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/runtime/executable/control_run.h"
#include "src/runtime/executable/device_control.h"
#include "src/runtime/executable/region_choice.h"
#include "src/runtime/executable/resident_control.h"

namespace penstock::runtime {
namespace {

using graph::FoldedControl;
using graph::FoldedPart;
using graph::PlanKind;

CompileOptions OptionsOfPart(const CompileOptions& outer, const FoldedControl& control, int slots) {
  CompileOptions part;
  part.slots = slots;
  part.device = outer.device;
  part.mode = control.on_device ? Mode::kGraph : outer.mode;
  part.max_lanes = outer.max_lanes;
  part.resident = outer.resident;
  part.host_tolerance = outer.host_tolerance;
  part.fuse_maps = outer.fuse_maps;
  if (control.on_device) {
    if (control.device >= 0) part.device = control.device;  // all of it is there
    return part;
  }
  part.trace = outer.trace;
  part.profile = outer.profile;
  part.check_against_host = outer.check_against_host;
  return part;
}

std::string LabelOfBody(ControlKind kind, size_t body) {
  switch (kind) {
    case ControlKind::kIf: return body == 0 ? "then" : "else";
    case ControlKind::kSwitch: return "case " + std::to_string(body);
    default: return "body";
  }
}

void AddParts(DeclId construct, const CompiledControl& control, std::vector<ControlPart>& parts) {
  const ControlKind kind = control.folded->kind;
  for (const CompiledPart& part : control.condition) parts.push_back({construct, kind, "condition", part.core});
  for (size_t b = 0; b < control.bodies.size(); ++b) {
    parts.push_back({construct, kind, LabelOfBody(kind, b), control.bodies[b].core});
  }
}

// The nodes of a model that are constructs, in their order.
std::vector<DeclId> ConstructsOf(const Model& model) {
  std::vector<DeclId> constructs;
  for (const DeclId n : model.nodes.ids()) {
    const NodeKind kind = model.nodes[n].kind;
    if (kind == NodeKind::kControl || kind == NodeKind::kConditional) constructs.push_back(n);
  }
  return constructs;
}

// Why the program of a part is not one graph; empty: it is, or it has no nodes.
std::string WhyNoGraph(const CompiledGraph& part) {
  const graph::Plan& plan = part.plan();
  for (const graph::HostStep& step : plan.host_steps) {
    if (plan.nodes[step.node].kind != PlanKind::kHost) continue;  // the rule lets no other Host node pass
    return "node " + graph::Quoted(part.model().nodes[plan.nodes[step.node].decl].name) +
           " in it cannot be asked for: too little is left of the room for " +
           std::to_string(driver::kMaxPendingHostcalls) + " Host nodes that wait on a device at once";
  }
  if (!plan.host_steps.empty()) return "host threads copy in it";
  if (part.program().replay.graphs() > 1) return "its body is several graphs";
  const Schedule& schedule = part.program().graphs;
  for (CommandId c = 0; c < schedule.epilogue_begin; ++c) {
    const ExecCommand::Op op = schedule.commands[c].op;
    const bool waits = op == ExecCommand::Op::kRecord || op == ExecCommand::Op::kWait;
    if (!waits && op != ExecCommand::Op::kGraph && op != ExecCommand::Op::kWaitExternal) {
      return "not all of its body fits into a graph";
    }
  }
  return "";
}

// Compiles one graph with its constructs. What cannot be on the device after all is handed to the host, and `again`
// set: then everything is compiled once more.
class ControlCompiler {
 public:
  // `all_regions`: says why a construct is in none.
  ControlCompiler(const std::shared_ptr<RuntimeCore>& runtime, graph::Lowerings& lowerings, bool traced,
                  bool all_regions)
      : runtime_(runtime), lowerings_(lowerings), traced_(traced), all_regions_(all_regions) {}

  absl::StatusOr<std::shared_ptr<ExecutableCore>> Compile(const graph::Folded& folded, const CompileOptions& options,
                                                          DeclaredGraph declared) {
    std::vector<CompiledControl> controls;
    declared.add_constructs = [&, part = declared.is_part_of_graph, in_region = declared.is_part_of_region](
                                  std::vector<std::unique_ptr<RunSlot>>& slots, std::vector<std::string>& notes) {
      PENSTOCK_RETURN_IF_ERROR(AddConstructs(folded, options, in_region, controls, slots));
      if (!slots.empty()) AddNotes(*slots[0], notes);
      return part ? absl::OkStatus() : Capture(slots);  // a part's memory is known where its construct is
    };
    for (const auto& control : folded.controls) AddNote(*control, declared.notes);
    PENSTOCK_ASSIGN_OR_RETURN(auto core, ExecutableCore::Create(runtime_, *folded.model, options, declared));
    std::vector<ControlPart> parts;
    const std::vector<DeclId> constructs = ConstructsOf(core->model());
    for (size_t c = 0; c < controls.size(); ++c) AddParts(constructs[c], controls[c], parts);
    core->SetParts(std::move(parts));
    return core;
  }

  bool again() const { return again_; }

 private:
  void AddNote(const FoldedControl& control, std::vector<std::string>& notes) const {
    const std::string name = "construct " + graph::Quoted(control.name);
    notes.push_back(control.on_device ? "the device decides " + name
                                      : "the host drives " + name + ", which waits for each condition, since " +
                                            lowerings_.why(control.id));
    const std::string& why_not = lowerings_.why_no_region(control.id);
    if (all_regions_ && control.on_device && !why_not.empty()) notes.push_back(name + " is in no region: " + why_not);
  }

  static void AddNotes(const RunSlot& slot, std::vector<std::string>& notes) {
    for (const auto& construct : slot.constructs) {
      const DeclId node = slot.graph().plan().nodes[construct->node()].decl;
      std::string note = construct->Note(graph::Quoted(slot.graph().model().nodes[node].name));
      if (!note.empty()) notes.push_back(std::move(note));
    }
  }

  // Called for the slots of an executable that is being made. If it is made once more, the parts stay.
  absl::Status AddConstructs(const graph::Folded& folded, const CompileOptions& options, bool within_region,
                             std::vector<CompiledControl>& controls, std::vector<std::unique_ptr<RunSlot>>& slots) {
    if (folded.controls.empty()) return absl::OkStatus();
    if (controls.empty()) {
      for (const auto& control : folded.controls) {
        PENSTOCK_ASSIGN_OR_RETURN(CompiledControl compiled, CompileParts(control, options, slots));
        compiled.within_region = within_region;
        controls.push_back(std::move(compiled));
      }
    }
    const bool any_loop = std::any_of(controls.begin(), controls.end(),
                                      [](const CompiledControl& control) { return control.folded->has_loop; });
    for (const auto& slot : slots) {
      PENSTOCK_RETURN_IF_ERROR(AddToSlot(controls, *slot));
      if (any_loop) PENSTOCK_RETURN_IF_ERROR(slot->MakeStop());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CompiledControl> CompileParts(const std::shared_ptr<const FoldedControl>& control,
                                               const CompileOptions& options,
                                               const std::vector<std::unique_ptr<RunSlot>>& slots) {
    const CompileOptions of_part = OptionsOfPart(options, *control, static_cast<int>(slots.size()));
    CompiledControl compiled{
        .folded = control, .traced = traced_, .within_region = false, .condition = {}, .bodies = {}};
    for (const FoldedPart& part : control->condition) {
      PENSTOCK_ASSIGN_OR_RETURN(auto core, CompilePart(*control, part, of_part));
      compiled.condition.push_back({std::move(core), &part});
    }
    for (const FoldedPart& part : control->bodies) {
      PENSTOCK_ASSIGN_OR_RETURN(auto core, CompilePart(*control, part, of_part));
      compiled.bodies.push_back({std::move(core), &part});
    }
    return compiled;
  }

  absl::StatusOr<std::shared_ptr<ExecutableCore>> CompilePart(const FoldedControl& control, const FoldedPart& part,
                                                              const CompileOptions& options) {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto core,
        Compile(part.folded, options,
                {.is_part = true, .is_part_of_graph = control.on_device, .is_part_of_region = control.in_region}));
    const std::string why = control.on_device ? WhyNoGraph(core->graph()) : "";
    if (why.empty()) return core;
    return GiveToHost(control.id, why);
  }

  absl::Status GiveToHost(ControlId construct, const std::string& why) {
    lowerings_.ToHost(construct, why);
    again_ = true;
    return absl::FailedPreconditionError("the device cannot decide a construct: " + why);
  }

  // The Launch nodes of constructs that the device decides.
  absl::Status Capture(const std::vector<std::unique_ptr<RunSlot>>& slots) {
    for (const auto& slot : slots) {
      for (const auto& construct : slot->constructs) {
        const auto refusal = construct->Capture();
        if (refusal) return GiveToHost(refusal->construct, refusal->why);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<GraphConstruct>> CreateConstruct(RunSlot& slot, NodeId node,
                                                                  const CompiledControl& control) {
    if (!control.folded->in_region) return DeviceControl::Create(slot, node, control);
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<ResidentControl> made, ResidentControl::Create(slot, node, control));
    const std::string why = made->WhyNotResident();
    if (why.empty()) return made;
    lowerings_.LeaveRegion(control.folded->id, why);
    again_ = true;
    return absl::FailedPreconditionError("a construct cannot be in a region: " + why);
  }

  absl::Status AddToSlot(const std::vector<CompiledControl>& controls, RunSlot& slot) {
    const graph::Plan& plan = slot.graph().plan();
    const std::vector<DeclId> constructs = ConstructsOf(slot.graph().model());
    const auto control_of = [&](NodeId n) -> const CompiledControl& {
      const auto at = std::lower_bound(constructs.begin(), constructs.end(), plan.nodes[n].decl);
      return controls[static_cast<size_t>(at - constructs.begin())];
    };
    for (const NodeId n : plan.nodes.ids()) {
      if (plan.nodes[n].kind != PlanKind::kConditional) continue;
      auto made = CreateConstruct(slot, n, control_of(n));
      if (!made.ok()) return slot.graph().Describe(n, made.status());
      slot.constructs.push_back(*std::move(made));
    }
    for (const graph::HostStep& step : plan.host_steps) {
      if (plan.nodes[step.node].kind != PlanKind::kControl) continue;
      slot.controls.push_back(std::make_unique<ControlRun>(slot, step.node, control_of(step.node)));
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<RuntimeCore>& runtime_;
  graph::Lowerings& lowerings_;
  const bool traced_, all_regions_;
  bool again_ = false;
};

absl::StatusOr<Lowering> WantedLowering(const Model& model, const CompileOptions& options) {
  const auto name = base::WordOf("PENSTOCK_CONSTRUCTS");
  if (!name) return options.constructs;
  if (name == "host") return Lowering::kHost;
  if (name == "device") return Lowering::kDevice;
  if (name == "auto") return Lowering::kAuto;
  return absl::InvalidArgumentError(graph::Prefix(model) + ": PENSTOCK_CONSTRUCTS is '" +
                                    graph::OneLine(base::Variable("PENSTOCK_CONSTRUCTS").value_or("")) +
                                    "'; it must be host, device or auto");
}

// Why the host drives all constructs; empty: the rule decides.
absl::StatusOr<std::string> WhyHost(Lowering wanted, const CompileOptions& options) {
  if (wanted == Lowering::kHost) return "CompileOptions::constructs asks for it";
  PENSTOCK_ASSIGN_OR_RETURN(const bool checks, base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST"));
  return options.check_against_host || checks ? "the host checks each node" : "";
}

bool HasCuda(const RuntimeCore& runtime) {
  return std::any_of(runtime.devices().begin(), runtime.devices().end(),
                     [](const driver::DeviceRef& d) { return d.info.kind == driver::DeviceKind::kCuda; });
}

// All constructs may be in regions but those with a node of which the model says that it cannot.
void UseRegions(const Model& model, Resident wanted, graph::Lowerings& lowerings) {
  lowerings.UseRegions();
  for (const NodeDecl& node : model.nodes) {
    if (node.body < 0 || RegionChoice::MayBeResident(model, node, wanted)) continue;
    lowerings.LeaveRegion(model.bodies[node.body].of,
                          "node " + graph::Quoted(node.name) + " is no small ParallelFor, fill or copy");
  }
}

absl::Status CheckOnDevice(const Model& model, const graph::Lowerings& lowerings) {
  for (const ControlId c : model.controls.ids()) {
    if (lowerings.OnDevice(c)) continue;
    return absl::InvalidArgumentError(graph::Prefix(model, "construct", model.controls[c].name) +
                                      ": CompileOptions::constructs is kDevice, but the device cannot decide it: " +
                                      lowerings.why(c) + "; take kAuto, or move that out of the construct");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateExecutable(const std::shared_ptr<RuntimeCore>& runtime,
                                                                 const Model& model, const CompileOptions& options) {
  if (model.controls.empty()) return ExecutableCore::Create(runtime, model, options);
  const auto declared = std::make_shared<Model>(model);
  PENSTOCK_ASSIGN_OR_RETURN(const Lowering wanted, WantedLowering(model, options));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string why_host, WhyHost(wanted, options));
  graph::LoweringDevices devices{.by_default = options.device, .no_hostcalls = {}};
  for (const driver::DeviceRef& d : runtime->devices()) {
    devices.no_hostcalls.push_back(HostcallService::UnavailableReason(d.info));
  }
  graph::Lowerings lowerings = graph::ChooseLowerings(model, devices, why_host);
  PENSTOCK_ASSIGN_OR_RETURN(const Resident resident, RegionChoice::Wanted(model, options));
  if (resident != Resident::kOff && HasCuda(*runtime)) UseRegions(model, resident, lowerings);
  for (;;) {
    if (wanted == Lowering::kDevice) PENSTOCK_RETURN_IF_ERROR(CheckOnDevice(model, lowerings));
    const graph::Folded folded = graph::Fold(declared, lowerings);
    declared->mistakes = folded.model->mistakes;
    ControlCompiler compiler(runtime, lowerings, options.trace != nullptr, resident == Resident::kOn);
    auto core = compiler.Compile(folded, options, {.model = declared.get(), .notes = folded.unrolled});
    if (core.ok() || !compiler.again()) return core;
    declared->mistakes = model.mistakes;
  }
}

}  // namespace penstock::runtime
