// How a pipeline is made: checks, stations and feeds, items, threads.
#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostPlaces = 1 << 20;

absl::Status Invalid(const std::string& text) { return absl::InvalidArgumentError(text); }

std::string PrefixOf(const Name& name) { return absl::StrCat("pipeline stage ", graph::Quoted(name)); }

// Every mistake, a line each.
absl::Status CheckStages(const detail::StageList& stages) {
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
    } else if (!stage.run && (stage.workers < 1 || stage.workers > kMostWorkers)) {
      note(stage,
           absl::StrCat("HostStageOptions::workers is ", stage.workers, "; it must be from 1 to ", kMostWorkers));
    }
  }
  if (text.empty() && !any_run) text = "pipeline: no stage is a Run; a pipeline has at least one";
  return text.empty() ? absl::OkStatus() : Invalid(text);
}

absl::Status CheckOptions(const PipelineOptions& options) {
  if (options.window < 0 || options.window > kMostPlaces) {
    return Invalid(absl::StrCat("pipeline: PipelineOptions::window is ", options.window, "; give 1 to ", kMostPlaces,
                                ", or 0 for twice the threads and slots of all stages"));
  }
  if (options.retries < 0) {
    return Invalid(absl::StrCat("pipeline: PipelineOptions::retries is ", options.retries, "; give 0 or more"));
  }
  if (options.progress && options.progress_every.count() <= 0) {
    return Invalid(absl::StrCat("pipeline: PipelineOptions::progress_every is ", options.progress_every.count(),
                                " ms; give 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<PipelineCore>> PipelineCore::Create(detail::StageList stages,
                                                                   const detail::ValueType& value,
                                                                   PipelineOptions options) {
  PENSTOCK_RETURN_IF_ERROR(CheckStages(stages));
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<PipelineCore> core(new PipelineCore(value, std::move(options)), base::DeleteUnlessForked());
  try {
    PENSTOCK_RETURN_IF_ERROR(core->MakeStages(std::move(stages)));
    PENSTOCK_RETURN_IF_ERROR(core->MakeItems());
    core->MakeShares();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipeline: no memory for all its places of ", value.size,
                     " bytes each; give a smaller PipelineOptions::window, or have items point at their data"));
  }
  const absl::Status started = core->StartThreads();
  if (!started.ok()) core->EndThreads();
  PENSTOCK_RETURN_IF_ERROR(started);
  core->FindSubmissionThreads();
  core->runtime_->Watch(core.get());
  return core;
}

PipelineCore::PipelineCore(const detail::ValueType& value, PipelineOptions options)
    : value_(value), options_(std::move(options)), made_(Clock::now()) {}

absl::Status PipelineCore::MakeStages(detail::StageList stages) {
  for (detail::StageDecl& decl : stages) {
    if (!decl.links.empty()) {
      PENSTOCK_RETURN_IF_ERROR(AddLeg(std::move(decl), stages_.back()));
      continue;
    }
    Stage& stage = stages_.emplace_back();
    stage.prefix = PrefixOf(decl.name);
    stage.name = std::string(decl.name.view());
    if (decl.run) {
      PENSTOCK_RETURN_IF_ERROR(AddLeg(std::move(decl), stage));
      continue;
    }
    stage.call = std::move(decl.call);
    stage.host = std::make_unique<HostStage>();
    stage.host->workers = decl.workers;
  }
  std::vector<bool> in_order;
  for (Stage& stage : stages_) in_order.push_back(FinishStage(stage));
  int64_t places = options_.window;
  for (const Stage& stage : stages_) {
    if (options_.window > 0) break;
    if (stage.host != nullptr) places += int64_t{2} * stage.host->workers;
    for (const int s : stage.stations) places += int64_t{2} * stations_[static_cast<size_t>(s)]->load.slots;
  }
  base::MutexLock lock(mu_);
  book_ = std::make_unique<ItemBook>(static_cast<int>(std::min<int64_t>(places, kMostPlaces)), std::move(in_order),
                                     options_.order);
  return absl::OkStatus();
}

void PipelineCore::MakeShares() {
  std::vector<std::string> devices;
  for (const driver::DeviceRef& device : runtime_->devices()) devices.push_back(device.info.name);
  std::vector<std::shared_ptr<const Trace>> traces;
  for (const Stage& stage : stages_) {
    for (const Leg& leg : stage.legs) traces.push_back(leg.set->first().graph().trace());  // one for all members
  }
  shares_ = std::make_unique<const BusyShares>(std::move(devices), std::move(traces));
}

absl::Status PipelineCore::AddLeg(detail::StageDecl decl, Stage& stage) {
  Leg leg{.prefix = PrefixOf(decl.name),
          .call = std::move(decl.call),
          .set = decl.executable.set_,
          .part = parts_++,
          .links = std::move(decl.links)};
  PENSTOCK_RETURN_IF_ERROR(CheckLeg(stage, leg));
  if (!leg.links.empty()) PENSTOCK_RETURN_IF_ERROR(MakeLinks(stage, leg));
  if (!stage.legs.empty()) stage.name += ", " + std::string(decl.name.view());
  stage.keeps_slots = stage.keeps_slots || leg.set->first().graph().program().buffers.leased >= 0;
  stage.legs.push_back(std::move(leg));
  return absl::OkStatus();
}

bool PipelineCore::HasLegOf(uint32_t graph) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
    return std::any_of(stage.legs.begin(), stage.legs.end(),
                       [&](const Leg& leg) { return leg.set->first().model().serial == graph; });
  });
}

absl::Status PipelineCore::CheckLeg(const Stage& stage, const Leg& leg) {
  const auto refuse = [&](const std::string& text) { return Invalid(leg.prefix + ": " + text); };
  if (leg.set == nullptr) {
    return refuse("the executable was default-constructed or moved from; use Runtime::Compile");
  }
  const std::shared_ptr<RuntimeCore>& runtime = leg.set->first().shared_runtime();
  if (runtime_ == nullptr) {
    runtime_ = runtime;
    PENSTOCK_RETURN_IF_ERROR(runtime_->CheckOpen());
  }
  if (runtime_ != runtime) return refuse("the executable is of another runtime; a pipeline has one");
  if (HasLegOf(leg.set->first().model().serial)) {
    return refuse(
        "an earlier Run is of the same graph, and what an item sets is told apart by the graph's handles; "
        "declare the graph again for this one");
  }
  const size_t devices = leg.set->members().size();
  if (stage.legs.empty() || devices == stage.legs[0].set->members().size()) return absl::OkStatus();
  return refuse(absl::StrCat("has ", devices, " devices, and the Run before it ", stage.legs[0].set->members().size(),
                             "; the first goes with the first and so on; compile both for as many"));
}

// Whether any stage writes the State.
bool PipelineCore::IsWritten(const StateRecord* state) const {
  for (const Stage& stage : stages_) {
    for (const Leg& leg : stage.legs) {
      const ExecutableCore& core = leg.set->first();
      for (const graph::StateUse& use : core.graph().plan().states) {
        if (use.written && core.model().buffers[static_cast<size_t>(use.buffer)].state.get() == state) return true;
      }
    }
  }
  return false;
}

// A State that is written decides the order of all items, so one feed begins them; those by key that of the items of a
// key, which are all on one device. One of which each device has a replica decides none, nor does one that is only
// read.
bool PipelineCore::FinishStage(Stage& stage) {
  bool shared = false, keyed = false;
  for (const Leg& leg : stage.legs) {
    const ExecutableCore& core = leg.set->first();
    for (const graph::StateUse& use : core.graph().plan().states) {
      const auto buffer = static_cast<size_t>(use.buffer);
      const BufferDecl& decl = core.model().buffers[buffer];
      const auto has_it = [&](const auto& m) { return m.core->model().buffers[buffer].state == decl.state; };
      if (decl.keys != 0) {
        keyed = true;
      } else if (std::all_of(leg.set->members().begin(), leg.set->members().end(), has_it)) {
        shared = shared || IsWritten(decl.state.get());
      }
    }
  }
  const auto index = static_cast<int>(&stage - stages_.data());
  const size_t devices = stage.legs.empty() ? 0 : stage.legs[0].set->members().size();
  for (size_t m = 0; m < devices; ++m) {
    const DeviceShare& share = stage.legs[0].set->members()[m].share;
    if (m == 0 || !shared) feeds_.push_back(std::make_unique<Feed>(this, index));
    int slots = INT32_MAX;
    for (const Leg& leg : stage.legs) slots = std::min(slots, leg.set->members()[m].core->slots());
    std::string name = stage.name;
    if (devices > 1) {
      absl::StrAppend(&name, " on ", runtime_->devices()[static_cast<size_t>(share.device)].info.name);
    }
    stage.stations.push_back(static_cast<int>(stations_.size()));
    stations_.push_back(std::make_unique<Station>(Station{.stage = index,
                                                          .member = static_cast<int>(m),
                                                          .feed = static_cast<int>(feeds_.size()) - 1,
                                                          .device = share.device,
                                                          .name = std::move(name),
                                                          .load = {.slots = slots, .weight = share.weight}}));
  }
  return shared || keyed;
}

absl::Status PipelineCore::MakeItems() {
  size_t places = 0;
  {
    base::MutexLock lock(mu_);
    places = static_cast<size_t>(book_->items());
    quarantine_.reserve(places);
  }
  const size_t stride = (value_.size + value_.align - 1) / value_.align * value_.align;
  values_.reset(static_cast<std::byte*>(::operator new(places * stride, std::align_val_t(value_.align))));
  items_.resize(places);
  for (Stage& stage : stages_) stage.poisoned.reserve(places);
  for (size_t i = 0; i < places; ++i) {
    PipelineItem& item = items_[i];
    item.index = static_cast<int>(i);
    item.core = this;
    item.value = values_.get() + i * stride;
    item.parts.resize(static_cast<size_t>(parts_));
    for (const Stage& stage : stages_) {
      for (const Leg& leg : stage.legs) {
        item.parts[static_cast<size_t>(leg.part)].bindings = leg.set->first().MakeBindings();
      }
    }
  }
  for (const auto& feed : feeds_) feed->running.reserve(places);
  return absl::OkStatus();
}

absl::Status PipelineCore::StartThreads() {
  const auto start = [this](const std::string& name, auto loop) { threads_.push_back(base::StartThread(name, loop)); };
  try {
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].host == nullptr) continue;
      for (int w = 0; w < stages_[s].host->workers; ++w) start("ps-" + stages_[s].name, [this, s] { WorkOnHost(s); });
    }
    if (options_.reset || options_.progress) start("ps-pipeline", [this] { Serve(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipeline: the system refuses its threads: ", error.what(), "; ask for fewer workers"));
  }
  return absl::OkStatus();
}

void PipelineCore::EndThreads() {
  {
    base::MutexLock lock(mu_);
    end_threads_ = true;
    for (const Stage& stage : stages_) {
      if (stage.host != nullptr) stage.host->waiting.NotifyAll();
    }
    service_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace penstock::runtime
