// The public handles: Runtime, Executable, Run and Bindings, each a thin face of its core.
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "graph/message.h"
#include "penstock/executable.h"
#include "penstock/run.h"
#include "penstock/runtime.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/executable_core.h"
#include "src/runtime/run_state.h"
#include "src/runtime/runtime_core.h"

namespace penstock {

// Runtime

absl::StatusOr<Runtime> Runtime::Create(const RuntimeOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(auto core, runtime::RuntimeCore::Create(options));
  return Runtime(std::move(core));
}

Runtime::~Runtime() {
  if (core_ == nullptr || core_->shut_down()) return;
  if (const absl::Status status = core_->Shutdown({}); !status.ok()) {
    core_->Log(LogLevel::kError, base::Str(status.message()));
    new std::shared_ptr<runtime::RuntimeCore>(std::move(core_));  // its threads still run: leaked on purpose
  }
}

const std::vector<Device>& Runtime::devices() const { return core_->public_devices(); }

absl::StatusOr<Executable> Runtime::Compile(const Graph& graph, const CompileOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(auto core, runtime::ExecutableCore::Create(core_, graph.model(), options));
  return Executable(std::move(core));
}

absl::StatusOr<std::shared_ptr<void>> Runtime::AllocateHost(int64_t elements, size_t element_size) {
  if (elements < 0 || static_cast<uint64_t>(elements) > std::numeric_limits<int64_t>::max() / element_size) {
    return absl::InvalidArgumentError("MakeHostBuffer: " + std::to_string(elements) + " elements of " +
                                      std::to_string(element_size) + " bytes; the size is negative or overflows");
  }
  PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock block,
                            core_->pinned(0).Allocate(static_cast<size_t>(elements) * element_size));
  // The core keeps the driver the memory came from.
  struct Held {
    std::shared_ptr<runtime::RuntimeCore> core;
    memory::PinnedBlock block;
  };
  auto held = std::make_shared<Held>(Held{core_, std::move(block)});
  void* data = held->block.data();
  return std::shared_ptr<void>(std::move(held), data);
}

absl::Status Runtime::Shutdown(Deadline deadline) { return core_->Shutdown(deadline); }

// Executable

namespace {
absl::Status NoExecutable() {
  return absl::FailedPreconditionError("this Executable was default-constructed or moved from; use Runtime::Compile");
}
}  // namespace

Bindings Executable::bindings() const { return core_->MakeBindings(); }
absl::StatusOr<Run> Executable::Launch(const Bindings& bindings, Deadline deadline) {
  return core_ == nullptr ? NoExecutable() : core_->Launch(bindings, deadline, /*wait=*/true);
}
absl::StatusOr<Run> Executable::TryLaunch(const Bindings& bindings, Deadline deadline) {
  return core_ == nullptr ? NoExecutable() : core_->Launch(bindings, deadline, /*wait=*/false);
}
int Executable::slots() const { return core_ == nullptr ? 0 : core_->slots(); }
int64_t Executable::launches() const { return core_ == nullptr ? 0 : core_->launches(); }
std::string Executable::PlanText() const { return core_ ? graph::PrintText(core_->plan(), core_->model()) : ""; }
std::string Executable::PlanDot() const { return core_ ? graph::PrintDot(core_->plan(), core_->model()) : ""; }

// Run

namespace {
absl::Status NoRun() { return absl::FailedPreconditionError("this Run was default-constructed or moved from"); }
}  // namespace

Run::Run(runtime::RunState* state) : state_(state) {}
Run::Run(const Run& other) : state_(other.state_) {
  if (state_ != nullptr) state_->AddHandle();
}
Run::~Run() {
  if (state_ != nullptr) state_->DropHandle();
}
absl::Status Run::Wait(Deadline deadline) const { return state_ == nullptr ? NoRun() : state_->Wait(deadline); }
bool Run::done() const {
  if (state_ == nullptr || state_->ended()) return true;
  state_->Advance();
  return state_->ended();
}
absl::Status Run::status() const { return state_ == nullptr ? NoRun() : state_->status(); }
void Run::OnDone(std::function<void(const absl::Status&)> callback) const {
  if (state_ != nullptr) state_->OnDone(std::move(callback));
}

// Bindings

Bindings::Bindings(std::shared_ptr<const Model> model)
    : model_(std::move(model)), param_set_(model_->params.size(), false), buffers_(model_->buffers.size()) {
  uint32_t size = 0;
  for (const ParamDecl& p : model_->params) {
    param_offsets_.push_back(size);
    size += p.type.size;
  }
  params_.resize(size);
}

void Bindings::ClearBuffers() {
  for (BoundMemory& memory : buffers_) memory = {};
}

void Bindings::Note(absl::Status mistake) {
  if (mistake_.ok()) mistake_ = std::move(mistake);
}

void Bindings::SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value) {
  if (graph != model_->serial || index < 0 || static_cast<size_t>(index) >= model_->params.size()) {
    return Note(absl::InvalidArgumentError(graph::Prefix(*model_) +
                                           ": Set was given a parameter of another graph; use this graph's handle"));
  }
  const auto i = static_cast<size_t>(index);
  if (!(model_->params[i].type == type)) {
    return Note(absl::InvalidArgumentError(graph::Prefix(*model_, "param", model_->params[i].name) +
                                           ": Set with a handle of another type"));
  }
  std::memcpy(params_.data() + param_offsets_[i], value, type.size);
  param_set_[i] = true;
}

void Bindings::SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory) {
  if (graph != model_->serial || index < 0 || static_cast<size_t>(index) >= model_->buffers.size()) {
    return Note(absl::InvalidArgumentError(graph::Prefix(*model_) +
                                           ": Set was given a buffer of another graph; use this graph's handle"));
  }
  const auto i = static_cast<size_t>(index);
  const BufferDecl& decl = model_->buffers[i];
  if (!(decl.type == type)) {
    return Note(absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) +
                                           ": Set with a handle of another type"));
  }
  if (decl.role == BufferRole::kInternal) {
    return Note(absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) +
                                           ": lives inside the run and cannot be bound; declare it Input, Output or "
                                           "InOut"));
  }
  buffers_[i] = std::move(memory);
}

}  // namespace penstock
