#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/environment.h"
#include "src/base/process_life.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/cache/graph_cache.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/internals.h"

namespace penstock {

GraphCache::GraphCache(const Runtime& runtime, GraphCacheOptions options)
    : core_(new runtime::GraphCacheCore(runtime.core_, std::move(options)), base::DeleteUnlessForked()) {}

absl::StatusOr<Run> GraphCache::LaunchDeclared(Declare call, void* function, Deadline deadline) {
  if (core_ == nullptr) return absl::FailedPreconditionError("this GraphCache was moved from; use the one it became");
  return core_->Launch({call, function}, deadline);
}

GraphCacheCounts GraphCache::counts() const { return core_ == nullptr ? GraphCacheCounts() : core_->counts(); }
SubmissionReport GraphCache::submission_report() const {
  return core_ == nullptr ? SubmissionReport() : core_->submission_report();
}

}  // namespace penstock

namespace penstock::runtime {
GraphCacheCore::GraphCacheCore(std::shared_ptr<RuntimeCore> runtime, GraphCacheOptions options)
    : runtime_(std::move(runtime)),
      options_(std::move(options)),
      // An invalid value is refused when the first executable is compiled.
      checks_against_host_(options_.compile.check_against_host ||
                           base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST").value_or(false)),
      pending_(std::make_shared<PendingBindings>()),
      io_(detail::Internals<Bindings>::Make(pending_)) {}

GraphCacheCore::Entry::Entry(std::shared_ptr<ExecutableCore> executable, std::shared_ptr<Model> model)
    : core(std::move(executable)), declared(std::move(model)), matcher(*declared), io(core->MakeBindings()) {}

void GraphCacheCore::Entry::FindPlaces() {
  nodes.resize(declared->nodes.size());
  const Program& program = core->graph().program();
  for (size_t c = 0; c < program.calls.size(); ++c) {
    nodes[program.calls[c].decl].call = static_cast<int32_t>(c);
  }
  for (size_t f = 0; f < program.fills.size(); ++f) {
    const int32_t decl = core->graph().plan().nodes[program.fills[f].node].decl;
    nodes[decl].fill = static_cast<int32_t>(f);
  }
  for (int s = 0; s < core->slots(); ++s) {
    RunSlot& slot = core->slot(s);
    slot.tables.callables = std::vector<detail::Replaceable>(program.calls.size());
    slot.tables.fallbacks = std::vector<detail::Replaceable>(program.calls.size());
    std::vector<detail::DeclarationMatcher::Place>& of_nodes = places.emplace_back(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].fill >= 0) of_nodes[n].values = slot.tables.fills[nodes[n].fill].pattern.data();
      if (nodes[n].call < 0) continue;
      const auto call = static_cast<size_t>(nodes[n].call);
      of_nodes[n] = {slot.tables.args.data() + program.calls[call].block, &slot.tables.callables[call],
                     &slot.tables.fallbacks[call]};
    }
  }
}

absl::Status GraphCacheCore::CheckMayLaunch() const {
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(std::string("GraphCache: ") + why); };
  if (runtime_ == nullptr) return refuse("made with a Runtime that was moved from; give the one it became");
  if (base::InUserCode()) {
    return refuse("Launch inside a host node or callback; it could wait for the worker it runs on; launch outside");
  }
  if (launching_) return refuse("Launch inside the function that declares; let it return first");
  if (options_.limit < 1) {
    return absl::InvalidArgumentError("GraphCache: the limit is " + std::to_string(options_.limit) +
                                      "; it must be at least 1");
  }
  if (!options_.compile.devices.empty()) {
    return absl::InvalidArgumentError(
        "GraphCache: CompileOptions::devices is given; a cache is for one device, CompileOptions::device");
  }
  return runtime_->CheckOpen();
}

absl::StatusOr<Run> GraphCacheCore::Launch(const Declaration& declaration, Deadline deadline) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch());
  if (declaration.call == nullptr) {
    return absl::InvalidArgumentError("GraphCache: the function that declares is null; give one that can be called");
  }
  launching_ = true;
  absl::StatusOr<Run> run = LaunchChecked(declaration, deadline);
  launching_ = false;
  pending_->Clear();
  return run;
}

absl::StatusOr<Run> GraphCacheCore::LaunchChecked(const Declaration& declaration, Deadline deadline) {
  if (checks_against_host_) return LaunchNew(declaration, deadline);
  Entry* const expected = last_ != nullptr ? last_->next : nullptr;
  const auto launch = [&](Entry& entry) -> absl::StatusOr<std::optional<Run>> {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, TryEntry(entry, declaration, deadline));
    if (run) ++counts_.found;
    if (run) MarkUsed(entry);
    return run;
  };
  if (expected != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Run> run, launch(*expected));
    if (run) return *run;
  }
  for (size_t e = 0; e < entries_.size(); ++e) {
    if (entries_[e].get() == expected) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Run> run, launch(*entries_[e]));
    if (run) return *run;
  }
  return LaunchNew(declaration, deadline);
}

absl::StatusOr<std::optional<Run>> GraphCacheCore::TryEntry(Entry& entry, const Declaration& declaration,
                                                            Deadline deadline) {
  absl::StatusOr<RunSlot*> slot = entry.core->Lease(deadline, Wait::kNo);
  if (absl::IsResourceExhausted(slot.status())) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool same, Compare(entry, nullptr, declaration));
    if (!same) return std::nullopt;
    slot = entry.core->Lease(deadline, Wait::kYes);
  }
  PENSTOCK_RETURN_IF_ERROR(slot.status());
  absl::StatusOr<std::optional<Run>> run = TryIn(**slot, entry, declaration, deadline);
  entry.core->GiveBack(*slot);
  return run;
}

absl::StatusOr<std::optional<Run>> GraphCacheCore::TryIn(RunSlot& slot, Entry& entry, const Declaration& declaration,
                                                         Deadline deadline) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool same, Compare(entry, &slot, declaration));
  if (!same) return std::nullopt;
  pending_->ApplyTo(detail::Internals<Bindings>::ValuesOf(entry.io));
  PENSTOCK_ASSIGN_OR_RETURN(Run run, entry.core->LaunchIn(&slot, entry.io, deadline));
  return std::optional<Run>(std::move(run));
}

absl::StatusOr<bool> GraphCacheCore::Compare(Entry& entry, RunSlot* slot, const Declaration& declaration) {
  entry.matcher.Begin(slot == nullptr ? std::span<const detail::DeclarationMatcher::Place>()
                                      : entry.places[slot->index]);
  Graph graph(entry.declared, &entry.matcher);
  const absl::Status called = CallDeclaration(declaration, graph);
  if (slot != nullptr) TakeChanges(entry, *slot);
  PENSTOCK_RETURN_IF_ERROR(called);
  return entry.matcher.Matches();
}

// Called even if the comparison has failed: the values are set, and none is found to differ a second time.
void GraphCacheCore::TakeChanges(const Entry& entry, RunSlot& slot) {
  for (const detail::DeclarationMatcher::Change& change : entry.matcher.changes()) {
    const NodeAt& at = entry.nodes[change.node];
    if (at.call >= 0 && change.callable) {  // everything that has the callable baked in learns here that it changed
      const auto call = static_cast<size_t>(at.call);
      slot.tables.kernels[call].callable = slot.tables.fallbacks[call].object();
    }
    if (slot.replay == nullptr) continue;
    if (at.call >= 0) slot.replay->ValueDiffers(at.call);
    if (at.call >= 0 && change.callable) slot.replay->CallableDiffers(at.call);
    if (at.fill >= 0) slot.replay->FillDiffers(at.fill);
  }
  counts_.nodes_changed += static_cast<int64_t>(entry.matcher.changes().size());
}

absl::Status GraphCacheCore::CallDeclaration(const Declaration& declaration, Graph& graph) {
  pending_->Clear();
  ++counts_.calls;
  return base::CatchAll("GraphCache: the function that declares",
                        [&] { return declaration.call(declaration.function, graph, io_); });
}

absl::StatusOr<Run> GraphCacheCore::LaunchNew(const Declaration& declaration, Deadline deadline) {
  Graph graph(options_.name);
  PENSTOCK_RETURN_IF_ERROR(CallDeclaration(declaration, graph));
  if (!checks_against_host_) {
    for (NodeDecl& node : graph.model_->nodes) {  // slots have their own
      node.code.callable.reset();
      node.code.fallback.reset();
    }
  }
  PENSTOCK_RETURN_IF_ERROR(AwaitRoom(deadline));
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<ExecutableCore> core, Compile(*graph.model_));
  ++counts_.compiled;
  while (IsFull()) Evict(*LeastRecentlyUsedIdle());
  Entry& entry = **entries_.insert(entries_.begin(), std::make_unique<Entry>(std::move(core), graph.model_));
  if (checks_against_host_) {
    MarkUsed(entry);
    pending_->ApplyTo(detail::Internals<Bindings>::ValuesOf(entry.io));
    return entry.core->Launch(entry.io, deadline, Wait::kYes);
  }
  entry.FindPlaces();
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, TryEntry(entry, declaration, deadline));
  if (!run) {
    Evict(entry);
    return absl::FailedPreconditionError(graph::Prefix(*graph.model_) +
                                         ": the function that declares did not declare the same when it was called "
                                         "again; it is called several times for one launch, and each time must "
                                         "declare the same");
  }
  MarkUsed(entry);
  return *std::move(run);
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> GraphCacheCore::Compile(const Model& model) {
  for (const BufferDecl& buffer : model.buffers) {
    if (buffer.keys == 0) continue;
    return absl::InvalidArgumentError(graph::Prefix(model, "state", buffer.name) +
                                      ": there is one for each key, and they live with an executable, which a "
                                      "GraphCache may drop; use Runtime::Compile, or a State");
  }
  for (;;) {
    auto core = ExecutableCore::Create(runtime_, model, options_.compile);
    if (core.ok() && (*core)->graph().program().buffers.leased >= 0) {
      const auto leased = static_cast<size_t>((*core)->graph().program().buffers.leased);
      return absl::InvalidArgumentError(graph::Prefix(model, "buffer", model.buffers[leased].name) +
                                        ": declared kSlot, and a GraphCache leases no slots to fill; declare it "
                                        "kPinned, or use Executable::Acquire");
    }
    if (core.ok()) return ExecutableCore::HandleOn(*std::move(core));
    const Entry* const idle = absl::IsResourceExhausted(core.status()) ? LeastRecentlyUsedIdle() : nullptr;
    if (idle == nullptr) return core.status();
    Evict(*idle);
  }
}

absl::Status GraphCacheCore::AwaitRoom(Deadline deadline) {
  const auto may_go_on = [&] { return !IsFull() || LeastRecentlyUsedIdle() != nullptr || !runtime_->CheckOpen().ok(); };
  if (host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(), deadline.at(), may_go_on)) {
    return runtime_->CheckOpen();
  }
  return absl::DeadlineExceededError("GraphCache: the graph is a new one, and all " + std::to_string(entries_.size()) +
                                     " executables had runs in flight until the deadline; nothing was started; wait "
                                     "for runs, or give the cache a higher limit");
}

GraphCacheCore::Entry* GraphCacheCore::LeastRecentlyUsedIdle() const {
  const auto idle = std::find_if(entries_.rbegin(), entries_.rend(), [](const auto& e) { return e->core->IsIdle(); });
  return idle == entries_.rend() ? nullptr : idle->get();
}

void GraphCacheCore::MarkUsed(Entry& entry) {
  if (last_ != nullptr) last_->next = &entry;
  last_ = &entry;
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.get() == &entry; });
  std::rotate(entries_.begin(), at, at + 1);
}

void GraphCacheCore::Evict(const Entry& entry) {
  ++counts_.evicted;
  if (last_ == &entry) last_ = nullptr;
  for (const auto& e : entries_) {
    if (e->next == &entry) e->next = nullptr;
  }
  std::erase_if(entries_, [&](const auto& e) { return e.get() == &entry; });
}

}  // namespace penstock::runtime
