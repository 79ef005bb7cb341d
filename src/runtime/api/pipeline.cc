// Pipeline and Item: the public handles of PipelineCore and its items.
#include "penstock/pipeline.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/runtime/core/internals.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock {

using runtime::PipelineCore;

// Items

AnyItem::~AnyItem() {
  if (core_ != nullptr && item_ != nullptr) core_->Return(*item_);
}
absl::Status AnyItem::status() const { return item_ == nullptr ? status_ : item_->status; }
uint64_t AnyItem::id() const { return item_ == nullptr ? 0 : item_->id; }
Key AnyItem::key() const { return Key(item_ == nullptr ? 0 : item_->key); }
int AnyItem::device() const { return item_ == nullptr ? -1 : item_->device; }
void* AnyItem::value() const { return item_ == nullptr ? nullptr : item_->value; }
void AnyItem::MarkValue() { item_->has_value = true; }
void AnyItem::SetKey(Key key) { item_->key = key.value; }

Bindings& AnyItem::BindingsOf(uint32_t graph) const {
  static thread_local Bindings none;  // accepts everything
  return item_ == nullptr ? none : item_->core->BindingsOf(*item_, graph);
}

std::pair<void*, size_t> AnyItem::Find(uint32_t graph, int32_t index, TypeInfo type) const {
  if (item_ == nullptr) return {nullptr, 0};
  return item_->core->Find(*item_, graph, index, type);
}

absl::StatusOr<int64_t> AnyItem::Count(uint32_t graph, int32_t output) const {
  if (item_ == nullptr) return status_;
  return item_->core->Count(*item_, graph, output);
}

absl::Status AnyItem::Submit(const ItemOptions& options) {
  if (item_ == nullptr) return status_;
  PENSTOCK_RETURN_IF_ERROR(item_->core->Submit(*item_, options));
  item_ = nullptr;
  core_.reset();
  return absl::OkStatus();
}

// Pipelines

namespace {
absl::Status None() {
  return absl::FailedPreconditionError("this Pipeline was moved from; use the one it was moved to");
}
}  // namespace

AnyPipeline::Closer::~Closer() { core->Close(); }

absl::StatusOr<AnyPipeline> AnyPipeline::Create(detail::StageList stages, const detail::ValueType& value,
                                                PipelineOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(auto core, PipelineCore::Create(std::move(stages), value, std::move(options)));
  return AnyPipeline(std::move(core));
}

absl::StatusOr<AnyItem> AnyPipeline::Acquire(Key key, int device, Deadline deadline, bool wait) {
  if (core_ == nullptr) return None();
  return core_->core->Acquire(key, device, deadline, wait ? runtime::Wait::kYes : runtime::Wait::kNo);
}
AnyItem AnyPipeline::Pop(Deadline deadline) { return core_ == nullptr ? AnyItem() : core_->core->Pop(deadline); }
absl::Status AnyPipeline::Run(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink) {
  return core_ == nullptr ? None() : core_->core->RunAll(pull, sink, runtime::AtEndOfSource::kStop);
}
absl::Status AnyPipeline::RunBatch(const std::function<bool(AnyItem&)>& pull,
                                   const std::function<void(AnyItem&)>& sink) {
  return core_ == nullptr ? None() : core_->core->RunAll(pull, sink, runtime::AtEndOfSource::kLeaveOpen);
}
void AnyPipeline::Stop() {
  if (core_ != nullptr) core_->core->Stop();
}
absl::Status AnyPipeline::Drain(Deadline deadline) { return core_ == nullptr ? None() : core_->core->Drain(deadline); }
void AnyPipeline::Cancel() {
  if (core_ != nullptr) core_->core->Cancel();
}
absl::Status AnyPipeline::status() const { return core_ == nullptr ? None() : core_->core->status(); }
PipelineStats AnyPipeline::stats() const { return core_ == nullptr ? PipelineStats() : core_->core->stats(); }
int AnyPipeline::window() const { return core_ == nullptr ? 0 : core_->core->state().items.size(); }

absl::StatusOr<Executable> AnyPipeline::executable(std::string_view stage) const {
  if (core_ == nullptr) return None();
  auto set = core_->core->state().table->FindExecutable(stage);
  if (set != nullptr) return detail::Internals<Executable>::Make(std::move(set));
  return absl::NotFoundError(absl::StrCat("pipeline: no Run or Then is named '", graph::OneLine(stage),
                                          "'; use the name that it was added with, or that of the pipeline's graph"));
}

absl::StatusOr<detail::StageList> detail::StagesOfGraph(Runtime& runtime, const Graph& graph, int slots) {
  StageDecl stage{graph.model().name, true, nullptr};
  if (const auto& core = Internals<Runtime>::CoreOf(runtime); core != nullptr) {
    slots = core->settings().SlotsOfPipeline(graph.model().name.view(), slots);
  }
  PENSTOCK_ASSIGN_OR_RETURN(stage.executable,
                            runtime.Compile(graph, {.slots = slots, .devices = runtime.all_devices()}));
  StageList stages;
  stages.push_back(std::move(stage));
  return stages;
}

std::string Print(const PipelineStats& stats) {
  std::string text = absl::StrFormat(
      "%d accepted, %d delivered, %d failed, %d dropped, %d refused, %d retries; %d of %d inside, %d ready\n",
      stats.accepted, stats.delivered, stats.failed, stats.dropped, stats.refused, stats.retries, stats.inside,
      stats.window, stats.ready);
  for (size_t s = 0; s < stats.stages.size(); ++s) {
    const StageStats& stage = stats.stages[s];
    absl::StrAppendFormat(&text, "%-24s %5.1f %% busy, %d of %d working, %d waiting, %d done, %d failed%s\n",
                          stage.name, 100 * stage.busy, stage.working, stage.capacity, stage.waiting, stage.done,
                          stage.failed, static_cast<int>(s) == stats.bottleneck ? "  <- bottleneck" : "");
  }
  for (const auto& [name, busy] : stats.engines)
    absl::StrAppendFormat(&text, "%-24s %5.1f %% busy\n", name, 100 * busy);
  for (const auto& [name, busy] : stats.threads) {
    absl::StrAppendFormat(&text, "%-24s %5.1f %% of a processor\n", name, 100 * busy);
  }
  return text;
}

}  // namespace penstock
