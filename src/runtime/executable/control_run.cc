#include "src/runtime/executable/control_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/slot/box_shapes.h"

namespace penstock::runtime {
namespace {

// A compiled part, for all slots.
struct CompiledPart {
  std::shared_ptr<ExecutableCore> core;
  const graph::FoldedPart* folded;
};
struct CompiledControl {
  std::shared_ptr<const graph::FoldedControl> folded;
  std::vector<CompiledPart> condition, bodies;
};

CompileOptions OptionsOfPart(const ExecutableCore& outer, const CompileOptions& options) {
  CompileOptions part;
  part.slots = outer.slots();
  part.device = options.device;
  part.mode = options.mode;
  part.max_lanes = options.max_lanes;
  part.trace = options.trace;
  part.check_against_host = options.check_against_host;
  part.host_tolerance = options.host_tolerance;
  return part;
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateFolded(const std::shared_ptr<RuntimeCore>& runtime,
                                                             const graph::Folded& folded, const CompileOptions& options,
                                                             const DeclaredGraph& declared);

absl::StatusOr<std::vector<CompiledPart>> CompileParts(const std::shared_ptr<RuntimeCore>& runtime,
                                                       const std::vector<graph::FoldedPart>& parts,
                                                       const CompileOptions& options) {
  std::vector<CompiledPart> compiled;
  for (const graph::FoldedPart& part : parts) {
    PENSTOCK_ASSIGN_OR_RETURN(auto core, CreateFolded(runtime, part.folded, options, {}));
    compiled.push_back({std::move(core), &part});
  }
  return compiled;
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

// The slot's own memory for what a condition writes.
const int32_t* WordOf(const ExecutableCore& core, const RunSlot& slot, BufferId word) {
  const auto& instances = core.graph().plan().instances;
  for (const InstanceId i : instances.ids()) {
    if (word >= 0 && instances[i].buffer == word && instances[i].leased) {
      return static_cast<const int32_t*>(slot.tables.pointers[i]);
    }
  }
  return nullptr;
}

std::vector<ControlRun::Part> PartsOf(const std::vector<CompiledPart>& compiled) {
  std::vector<ControlRun::Part> parts;
  for (const CompiledPart& part : compiled) {
    RunSlot* const slot = part.core->TakeFree();  // there are as many as slots around it
    part.core->MarkLeased(slot);
    parts.push_back({.core = part.core,
                     .slot = slot,
                     .bound = part.folded->bound,
                     .word = WordOf(*part.core, *slot, part.folded->word),
                     .values = detail::BoundValues(part.core->graph().shared_model())});
  }
  return parts;
}

// The elements of a buffer in this run, from the first to the last.
int64_t ElementsOf(const RunSlot& slot, BufferId buffer) {
  const BoxInRun& box = slot.tables.boxes[int32_t{buffer}];
  const detail::Range size = RangeOf(box.shape);
  if (size.width == 0 || size.height == 0 || size.depth == 0) return 0;
  return ((size.depth - 1) * box.slice + (size.height - 1) * box.row) / box.element + size.width;
}

// For each node of a model: which of its constructs it is, or -1.
Table<DeclId, int32_t> NumbersOfControls(const Model& model) {
  Table<DeclId, int32_t> numbers(model.nodes.size(), -1);
  int32_t next = 0;
  for (const DeclId n : model.nodes.ids()) {
    if (model.nodes[n].kind == NodeKind::kControl) numbers[n] = next++;
  }
  return numbers;
}

// Compiles the parts of all constructs of an executable that has just been made, and gives them to its slots.
absl::Status MakeControls(ExecutableCore& core,
                          const std::vector<std::shared_ptr<const graph::FoldedControl>>& controls,
                          const CompileOptions& options) {
  const CompileOptions of_part = OptionsOfPart(core, options);
  std::vector<CompiledControl> compiled;
  for (const auto& control : controls) {
    CompiledControl& made = compiled.emplace_back();
    made.folded = control;
    PENSTOCK_ASSIGN_OR_RETURN(made.condition, CompileParts(core.shared_runtime(), made.folded->condition, of_part));
    PENSTOCK_ASSIGN_OR_RETURN(made.bodies, CompileParts(core.shared_runtime(), made.folded->bodies, of_part));
  }
  const Table<DeclId, int32_t> numbers = NumbersOfControls(core.model());
  const graph::Plan& plan = core.graph().plan();
  for (int s = 0; s < core.slots(); ++s) {
    RunSlot& slot = core.slot(s);
    for (const graph::HostStep& step : plan.host_steps) {
      const graph::PlanNode& node = plan.nodes[step.node];
      if (node.kind != graph::PlanKind::kControl) continue;
      const CompiledControl& control = compiled[static_cast<size_t>(numbers[node.decl])];
      slot.controls.push_back(std::make_unique<ControlRun>(
          slot, step.node, control.folded, ControlRun::Parts{PartsOf(control.condition), PartsOf(control.bodies)}));
    }
  }
  std::vector<ControlPart> parts;
  for (const DeclId n : core.model().nodes.ids()) {
    if (numbers[n] >= 0) AddParts(n, compiled[static_cast<size_t>(numbers[n])], parts);
  }
  core.SetParts(std::move(parts));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateFolded(const std::shared_ptr<RuntimeCore>& runtime,
                                                             const graph::Folded& folded, const CompileOptions& options,
                                                             const DeclaredGraph& declared) {
  PENSTOCK_ASSIGN_OR_RETURN(auto core, ExecutableCore::Create(runtime, *folded.model, options, declared));
  if (!folded.controls.empty()) PENSTOCK_RETURN_IF_ERROR(MakeControls(*core, folded.controls, options));
  return core;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateExecutable(const std::shared_ptr<RuntimeCore>& runtime,
                                                                 const Model& model, const CompileOptions& options) {
  if (model.controls.empty()) return ExecutableCore::Create(runtime, model, options);
  const auto declared = std::make_shared<Model>(model);
  const graph::Folded folded = graph::Fold(declared);
  declared->mistakes = folded.model->mistakes;
  return CreateFolded(runtime, folded, options, {declared.get(), folded.unrolled});
}

ControlRun::ControlRun(RunSlot& outer, NodeId node, std::shared_ptr<const graph::FoldedControl> control, Parts parts)
    : outer_(outer), node_(node), control_(std::move(control)), parts_(std::move(parts)) {
  for (Part& part : parts_.condition) part.slot->follower = this;
  for (Part& part : parts_.bodies) part.slot->follower = this;
}

void ControlRun::Begin(void (*done)(void* context, int64_t arg), void* context, int64_t arg) {
  done_ = done;
  context_ = context;
  arg_ = arg;
  running_ = nullptr;
  absl::Status ready = CountTrips();
  for (Part& part : parts_.condition) ready.Update(Bind(part));
  for (Part& part : parts_.bodies) ready.Update(Bind(part));
  if (!ready.ok()) Fail(ready);
  Drive();
}

// The memory of the construct's slot is where it was in the run before, unless a launch has bound other memory. So the
// values change only then.
absl::Status ControlRun::Bind(Part& part) {
  const CompiledGraph& graph = outer_.graph();
  const Model& model = part.core->model();
  for (const ParamId p : model.params.ids()) {
    part.values.SetParam(model.serial, p, model.params[p].type,
                         outer_.tables.param_bytes.data() + graph.program().params.at[p]);
  }
  for (const graph::BoundByControl& bound : part.bound) {
    const InstanceId instance = graph.plan().nodes[node_].uses[static_cast<size_t>(bound.access)].instance;
    const TypeInfo type = model.buffers[bound.inner].type;
    const int64_t elements = ElementsOf(outer_, graph.plan().instances[instance].buffer);
    void* const data = outer_.tables.pointers[instance];
    const BoundMemory& is = part.values.Memory(static_cast<size_t>(bound.inner));
    if (is.data == data && is.elements == elements) continue;
    BoundMemory memory;
    memory.data = data;
    memory.elements = elements;
    part.values.SetBuffer(model.serial, bound.inner, type, std::move(memory));
  }
  return part.values.mistake() != nullptr ? *part.values.mistake() : absl::OkStatus();
}

absl::Status ControlRun::CountTrips() {
  left_ = control_->max;
  if (control_->kind != ControlKind::kRepeat) return absl::OkStatus();
  const Dim& trips = control_->trips;
  left_ = trips.is_constant() ? trips.value : outer_.tables.param_values[trips.param];
  if (left_ >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError("its body would be repeated " + std::to_string(left_) +
                                    " times; set the parameter to a number that is not negative");
}

void ControlRun::OnRunEnded(RunSlot&) { Drive(); }

// Whoever finds a call unanswered goes on with it: a part that ends at once must not be followed by a deeper call.
void ControlRun::Drive() {
  if (turns_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  do {
    Part* const next = Next();
    if (next == nullptr) {
      turns_.store(0, std::memory_order_release);  // nothing runs, so nobody else calls
      return done_(context_, arg_);  // this may be gone now
    }
    Start(*next);
  } while (turns_.fetch_sub(1, std::memory_order_acq_rel) != 1);
}

// The part that runs next; null if the construct ends.
ControlRun::Part* ControlRun::Next() {
  if (running_ != nullptr && running_->slot->fault.failed()) {
    const driver::RunFault& fault = running_->slot->fault;
    Fail(running_->core->Describe(fault.node(), fault.status()));
  }
  if (outer_.fault.failed()) return nullptr;
  if (control_->kind == ControlKind::kRepeat) return left_-- > 0 ? parts_.bodies.data() : nullptr;
  if (running_ == nullptr) return parts_.condition.data();
  return running_->word != nullptr ? AfterCondition(*running_->word) : nullptr;
}

ControlRun::Part* ControlRun::AfterCondition(int32_t word) {
  size_t body = 0;
  switch (control_->kind) {
    case ControlKind::kIf: body = word != 0 ? 0 : 1; break;
    case ControlKind::kSwitch: body = static_cast<size_t>(static_cast<uint32_t>(word)); break;
    default:
      if (word == 0 || left_-- <= 0) return nullptr;
  }
  return body < parts_.bodies.size() ? &parts_.bodies[body] : nullptr;
}

void ControlRun::Start(Part& part) {
  running_ = &part;
  const absl::StatusOr<Run> run =
      part.core->Start(part.slot, part.values, Deadline(), ExecutableCore::Kind::kPartOfARun);
  if (run.ok()) return;  // without its handle the completion thread advances it
  Fail(run.status());
  running_ = nullptr;
  turns_.fetch_add(1, std::memory_order_acq_rel);  // there is no end to wait for
}

void ControlRun::Fail(const absl::Status& status) { outer_.fault.Fail(node_, status); }

}  // namespace penstock::runtime
