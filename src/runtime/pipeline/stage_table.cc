#include "src/runtime/pipeline/stage_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/core/device_allocation.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/internals.h"

namespace penstock::runtime {
namespace {

constexpr int kMostWorkers = 1024;

absl::Status Invalid(const std::string& text) { return absl::InvalidArgumentError(text); }

std::string PrefixOf(const Name& name) { return absl::StrCat("pipeline stage ", graph::Quoted(name)); }

// The bytes that a link's buffer has in each run, or why the buffer cannot be linked.
absl::StatusOr<size_t> BytesOf(const Model& model, int32_t index, BufferRole as) {
  if (index < 0 || static_cast<size_t>(index) >= model.buffers.size()) {
    return absl::InvalidArgumentError("a link names no buffer of " + graph::Prefix(model));
  }
  const BufferDecl& decl = model.buffers[index];
  const auto refuse = [&](const char* why) {
    return absl::InvalidArgumentError(graph::Prefix(model, "buffer", decl.name) + ": " + why);
  };
  const bool fits = decl.role == as || decl.role == BufferRole::kInOut;
  if (!fits || decl.is_alias || decl.where != Where::kDevice || decl.pitch != 0) {
    return refuse("a link goes from an Output to an Input, both kDevice and without a pitch");
  }
  size_t bytes = decl.type.size;
  for (int i = 0; i < decl.extent.rank; ++i) {
    const Dim& dim = decl.extent.dims[i];
    if (!dim.is_constant()) return refuse("a link has one size in all runs; give it constant dimensions");
    bytes *= static_cast<size_t>(dim.value);
  }
  return bytes;
}

// The device that its memory is on; -1: no node uses it.
DeviceId HomeOf(const ExecutableCore& core, int32_t buffer) {
  const InstanceId instance = core.graph().program().buffers.bound[buffer];
  return instance < 0 ? DeviceId() : core.graph().plan().instances[instance].device;
}

// By the key, if the stage has keyed States.
absl::Status FindByKey(const Stage& stage, PipelineItem& item) {
  PipelineItem::Part& part = stage.PartOf(item);
  for (const StageExecutable& executable : stage.executables) {
    if (executable.set->keyed() == nullptr) continue;
    const absl::StatusOr<KeyedHome> home = executable.set->FindHome(item.key, part.wanted);
    if (!home.ok()) return base::Prefixed(executable.prefix, home.status());
    part.wanted = home->member;
  }
  return absl::OkStatus();
}

}  // namespace

bool Stage::IsKeyed() const {
  return std::any_of(executables.begin(), executables.end(),
                     [](const StageExecutable& executable) { return executable.set->keyed() != nullptr; });
}

absl::Status StageTable::Check(const detail::StageList& stages) {
  std::string text;
  const auto note = [&](const detail::StageDecl& stage, const std::string& what) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", PrefixOf(stage.name), ": ", what);
  };
  bool any_run = false, before_runs = false;
  for (const detail::StageDecl& stage : stages) {
    const bool first = !any_run || !before_runs;
    before_runs = stage.run;
    any_run = any_run || stage.run;
    if (stage.is_null) {
      note(stage, "its function is null; give one that can be called");
    } else if (!stage.links.empty() && first) {
      note(stage, "a Then comes right behind a Run, or another Then");
    } else if (!stage.run && (stage.workers < 0 || stage.workers > kMostWorkers)) {
      note(stage, absl::StrCat("HostStageOptions::workers is ", stage.workers, "; it must be from 1 to ", kMostWorkers,
                               ", or 0 to leave it to the settings"));
    }
  }
  if (text.empty() && !any_run) text = "pipeline: no stage is a Run; a pipeline has at least one";
  return text.empty() ? absl::OkStatus() : Invalid(text);
}

absl::StatusOr<std::unique_ptr<StageTable>> StageTable::Create(detail::StageList stages) {
  auto table = std::make_unique<StageTable>();
  PENSTOCK_RETURN_IF_ERROR(table->MakeStages(std::move(stages)));
  return table;
}

absl::Status StageTable::MakeStages(detail::StageList stages) {
  for (detail::StageDecl& decl : stages) {
    if (!decl.links.empty()) {
      PENSTOCK_RETURN_IF_ERROR(AddExecutable(std::move(decl), stages_.back()));
      continue;
    }
    Stage& stage = stages_.emplace_back();
    stage.prefix = PrefixOf(decl.name);
    stage.name = std::string(decl.name.view());
    if (decl.run) {
      PENSTOCK_RETURN_IF_ERROR(AddExecutable(std::move(decl), stage));
      continue;
    }
    stage.call = std::move(decl.call);
    stage.workers = decl.workers;
    stage.annotation = base::AnnotationOf(stage.name);
  }
  for (Stage& stage : stages_) {
    if (!stage.executables.empty()) continue;
    stage.workers = std::max(1, runtime_->settings().StageWorkers(stage.name, stage.workers));
  }
  for (Stage& stage : stages_) in_order_.push_back(FinishStage(stage));
  return absl::OkStatus();
}

std::vector<bool> StageTable::keyed() const {
  std::vector<bool> keyed;
  for (const Stage& stage : stages_) keyed.push_back(stage.IsKeyed());
  return keyed;
}

std::shared_ptr<ExecutableSet> StageTable::FindExecutable(std::string_view name) const {
  for (const Stage& stage : stages_) {
    for (const StageExecutable& executable : stage.executables) {
      if (executable.name == name) return executable.set;
    }
  }
  return nullptr;
}

std::string_view StageTable::first_run() const {
  const auto runs = [](const Stage& stage) { return !stage.executables.empty(); };
  return std::find_if(stages_.begin(), stages_.end(), runs)->executables[0].name;
}

int64_t StageTable::default_window() const {
  int64_t places = 0;
  for (const Stage& stage : stages_) places += stage.workers;
  for (const StageDevice& device : devices_) places += device.slots;
  return 2 * places;
}

std::vector<PipelineItem::Part> StageTable::MakeParts() const {
  std::vector<PipelineItem::Part> parts(static_cast<size_t>(parts_));
  for (const Stage& stage : stages_) {
    for (const StageExecutable& executable : stage.executables) {
      parts[executable.part].bindings = executable.set->first().MakeBindings();
    }
  }
  return parts;
}

int StageTable::PartOfGraph(uint32_t graph) const {
  for (const Stage& stage : stages_) {
    for (const StageExecutable& executable : stage.executables) {
      if (executable.set->first().model().serial == graph) return executable.part;
    }
  }
  return -1;
}

// One trace serves all members.
BusyShares StageTable::MakeShares() const {
  std::vector<std::string> devices;
  for (const driver::DeviceRef& device : runtime_->devices()) devices.push_back(device.info.name);
  std::vector<std::shared_ptr<const Trace>> traces;
  for (const Stage& stage : stages_) {
    for (const StageExecutable& executable : stage.executables) {
      traces.push_back(executable.set->first().graph().trace());
    }
  }
  return BusyShares(std::move(devices), std::move(traces));
}

absl::Status StageTable::AddExecutable(detail::StageDecl decl, Stage& stage) {
  StageExecutable executable{.prefix = PrefixOf(decl.name),
                             .name = std::string(decl.name.view()),
                             .call = std::move(decl.call),
                             .set = detail::Internals<Executable>::SetOf(decl.executable),
                             .part = parts_++,
                             .links = std::move(decl.links)};
  PENSTOCK_RETURN_IF_ERROR(CheckExecutable(stage, executable));
  if (!executable.links.empty()) PENSTOCK_RETURN_IF_ERROR(MakeLinks(stage, executable));
  if (!stage.executables.empty()) stage.name += ", " + std::string(decl.name.view());
  stage.keeps_slots = stage.keeps_slots || executable.set->first().graph().program().buffers.leased >= 0;
  stage.executables.push_back(std::move(executable));
  return absl::OkStatus();
}

absl::Status StageTable::CheckExecutable(const Stage& stage, const StageExecutable& executable) {
  const auto refuse = [&](const std::string& text) { return Invalid(executable.prefix + ": " + text); };
  if (executable.set == nullptr) {
    return refuse("the executable was default-constructed or moved from; use Runtime::Compile");
  }
  const std::shared_ptr<RuntimeCore>& runtime = executable.set->first().shared_runtime();
  if (runtime_ == nullptr) {
    runtime_ = runtime;
    PENSTOCK_RETURN_IF_ERROR(runtime_->CheckOpen());
  }
  if (runtime_ != runtime) return refuse("the executable is of another runtime; a pipeline has one");
  if (PartOfGraph(executable.set->first().model().serial) >= 0) {
    return refuse(
        "an earlier Run is of the same graph, and what an item sets is told apart by the graph's handles; "
        "declare the graph again for this one");
  }
  const size_t devices = executable.set->members().size();
  if (stage.executables.empty() || devices == stage.executables[0].set->members().size()) return absl::OkStatus();
  return refuse(absl::StrCat("has ", devices, " devices, and the Run before it ",
                             stage.executables[0].set->members().size(),
                             "; the first goes with the first and so on; compile both for as many"));
}

// Whether any stage writes the State.
bool StageTable::IsWritten(const StateRecord* state) const {
  for (const Stage& stage : stages_) {
    for (const StageExecutable& executable : stage.executables) {
      const ExecutableCore& core = executable.set->first();
      for (const graph::StateUse& use : core.graph().plan().states) {
        if (use.written && core.model().buffers[use.buffer].state.get() == state) return true;
      }
    }
  }
  return false;
}

// A State that is written fixes the order of all items, so one run queue begins them. Keyed States fix only the order
// of the items of each key, which are all on one device. A State with a replica on each device, or one that is only
// read, fixes none.
bool StageTable::FinishStage(Stage& stage) {
  bool shared = false, keyed = false;
  for (const StageExecutable& executable : stage.executables) {
    const ExecutableCore& core = executable.set->first();
    for (const graph::StateUse& use : core.graph().plan().states) {
      const auto buffer = static_cast<size_t>(use.buffer);
      const BufferDecl& decl = core.model().buffers[buffer];
      const auto has_it = [&](const auto& m) { return m.core->model().buffers[buffer].state == decl.state; };
      if (decl.keys != 0) {
        keyed = true;
      } else if (std::all_of(executable.set->members().begin(), executable.set->members().end(), has_it)) {
        shared = shared || IsWritten(decl.state.get());
      }
    }
  }
  const auto index = static_cast<int>(&stage - stages_.data());
  const size_t devices = stage.executables.empty() ? 0 : stage.executables[0].set->members().size();
  for (size_t m = 0; m < devices; ++m) {
    const DeviceShare& share = stage.executables[0].set->members()[m].share;
    if (m == 0 || !shared) queues_.push_back(index);
    int slots = INT32_MAX;
    for (const StageExecutable& executable : stage.executables)
      slots = std::min(slots, executable.set->members()[m].core->slots());
    std::string name = stage.name;
    if (devices > 1) {
      absl::StrAppend(&name, " on ", runtime_->devices()[share.device].info.name);
    }
    stage.devices.push_back(static_cast<int>(devices_.size()));
    devices_.push_back({.stage = index,
                        .member = static_cast<int>(m),
                        .queue = static_cast<int>(queues_.size()) - 1,
                        .device = share.device,
                        .name = std::move(name),
                        .slots = slots,
                        .weight = share.weight});
  }
  return shared || keyed;
}

absl::Status StageTable::MakeLinks(const Stage& stage, StageExecutable& executable) {
  const ExecutableSet& from = *stage.executables.back().set;
  executable.between.resize(executable.set->members().size());
  for (const Link& link : executable.links) {
    const Model& writes = from.first().model();
    const Model& reads = executable.set->first().model();
    if (link.from_graph != writes.serial || link.to_graph != reads.serial) {
      return absl::InvalidArgumentError(executable.prefix +
                                        ": a link goes from a buffer of the graph of the Run before to one "
                                        "of this Run's graph");
    }
    const absl::StatusOr<size_t> bytes = BytesOf(writes, link.from_index, BufferRole::kOutput);
    const absl::StatusOr<size_t> wanted = BytesOf(reads, link.to_index, BufferRole::kInput);
    if (!bytes.ok()) return base::Prefixed(executable.prefix, bytes.status());
    if (!wanted.ok()) return base::Prefixed(executable.prefix, wanted.status());
    if (*bytes != *wanted) {
      return absl::InvalidArgumentError(absl::StrCat(executable.prefix, ": a link joins ", *bytes, " bytes with ",
                                                     *wanted, "; both buffers have one size"));
    }
    for (size_t m = 0; m < executable.between.size(); ++m) {
      const ExecutableCore& writer = *from.members()[m].core;
      const ExecutableCore& reader = *executable.set->members()[m].core;
      const int device = HomeOf(writer, link.from_index), to = HomeOf(reader, link.to_index);
      if (device < 0 || device != to) {
        return absl::InvalidArgumentError(absl::StrCat(
            executable.prefix, ": the two buffers of a link are on different devices (", device, " and ", to,
            "; -1: no node uses it); declare the Input or the Output on the other's device (Graph::Input)"));
      }
      executable.between[m].resize(static_cast<size_t>(writer.slots()));
      for (auto& of_slot : executable.between[m]) {
        absl::StatusOr<std::shared_ptr<void>> memory = AllocateDeviceBlock(runtime_, device, *bytes);
        if (!memory.ok()) return base::Prefixed(executable.prefix + ": the memory of a link", memory.status());
        of_slot.push_back(*std::move(memory));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status StageTable::CheckMayPull() const {
  for (const Stage& stage : stages_) {
    if (!stage.keeps_slots || stage.devices.size() == 1 || !stage.IsKeyed()) continue;
    return absl::FailedPreconditionError(
        stage.prefix +
        ": Run or RunBatch of a pipeline in which an item has a slot on one of several devices before its key is "
        "known, by which "
        "it has to be on one (kSlot buffers and a KeyedState); use Push or Acquire, which are told the key");
  }
  return absl::OkStatus();
}

absl::Status StageTable::FindDevices(PipelineItem& item, At at) const {
  const bool kept = at == At::kAcquire;
  bool pinned = item.pin == kAnyDevice;
  for (const Stage& stage : stages_) {
    if (stage.executables.empty() || (kept && !stage.keeps_slots)) continue;
    PipelineItem::Part& part = stage.PartOf(item);
    part.wanted = item.pin == kAnyDevice ? -1 : stage.executables[0].set->MemberOn(item.pin);
    pinned = pinned || part.wanted >= 0;
    // With one device there is nothing to find early, when the key may not be known yet.
    if (!kept || stage.devices.size() > 1) PENSTOCK_RETURN_IF_ERROR(FindByKey(stage, item));
    if (kept || part.wanted < 0 || part.device < 0) continue;
    const StageDevice& has = device(part.device);
    if (has.member == part.wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(stage.prefix, ": the item has had its slot on device ", has.device,
                     " since Acquire, and has to be on another one, where its key's States are or that Submit names; "
                     "tell Acquire the key and the device"));
  }
  if (pinned || kept) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline: the item is to be on device ", item.pin, "; no stage has it"));
}

void StageTable::DropCallables() {
  for (Stage& stage : stages_) {
    stage.call = nullptr;
    for (StageExecutable& executable : stage.executables) executable.call = nullptr;
  }
}

}  // namespace penstock::runtime
