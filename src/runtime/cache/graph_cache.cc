#include "src/runtime/cache/graph_cache.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "graph/declare/returned_counts.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/environment.h"
#include "src/base/process_life.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/test_hook.h"
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
namespace {

// Marks that this thread launches on a cache; scopes nest if the function that declares launches on another one.
class CacheLaunchScope {
 public:
  explicit CacheLaunchScope(const void* cache) : cache_(cache), outer_(std::exchange(current_, this)) {}
  ~CacheLaunchScope() { current_ = outer_; }
  CacheLaunchScope(const CacheLaunchScope&) = delete;
  CacheLaunchScope& operator=(const CacheLaunchScope&) = delete;
  static bool IsIn(const void* cache) {
    const CacheLaunchScope* scope = current_;
    while (scope != nullptr && scope->cache_ != cache) scope = scope->outer_;
    return scope != nullptr;
  }

 private:
  static inline thread_local const CacheLaunchScope* current_ = nullptr;
  const void* const cache_;
  const CacheLaunchScope* const outer_;
};

}  // namespace

GraphCacheCore::GraphCacheCore(std::shared_ptr<RuntimeCore> runtime, GraphCacheOptions options)
    : runtime_(std::move(runtime)),
      options_(std::move(options)),
      // An invalid value is refused when the first executable is compiled.
      checks_against_host_(options_.compile.check_against_host ||
                           base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST").value_or(false)) {}

GraphCacheCore::Step::Step(size_t at)
    : index(at), pending(std::make_shared<PendingBindings>()), io(detail::Internals<Bindings>::Make(pending)) {}

void GraphCacheCore::Entry::FindPlaces() {
  nodes.resize(declared->nodes.size());
  const Program& program = core->graph().program();
  for (size_t c = 0; c < program.calls.size(); ++c) {
    nodes[core->graph().DeclaredNode(program.calls[c].decl)].call = static_cast<int32_t>(c);
  }
  for (size_t f = 0; f < program.fills.size(); ++f) {
    const int32_t decl = core->graph().plan().nodes[program.fills[f].node].decl;
    nodes[core->graph().DeclaredNode(decl)].fill = static_cast<int32_t>(f);
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

GraphCacheCounts GraphCacheCore::counts() const {
  base::MutexLock lock(mu_);
  return counts_;
}

SubmissionReport GraphCacheCore::submission_report() const {
  std::shared_ptr<Entry> last;
  {
    base::MutexLock lock(mu_);
    if (!entries_.empty()) last = entries_.front();
  }
  return last == nullptr ? SubmissionReport() : last->core->submission_report();
}

absl::Status GraphCacheCore::CheckMayLaunch() const {
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(std::string("GraphCache: ") + why); };
  if (runtime_ == nullptr) return refuse("made with a Runtime that was moved from; give the one it became");
  if (base::InUserCode()) {
    return refuse("Launch inside a host node or callback; it could wait for the worker it runs on; launch outside");
  }
  if (CacheLaunchScope::IsIn(this)) return refuse("Launch inside the function that declares; let it return first");
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
  const CacheLaunchScope scope(this);
  Step& step = TakeStep();
  absl::StatusOr<Run> run = LaunchStep(step, declaration, deadline);
  GiveBack(step);
  return run;
}

GraphCacheCore::Step& GraphCacheCore::TakeStep() {
  base::MutexLock lock(mu_);
  if (idle_steps_.empty()) {
    idle_steps_.push_back(steps_.emplace_back(std::make_unique<Step>(steps_.size())).get());
  }
  Step& step = *idle_steps_.back();
  idle_steps_.pop_back();
  return step;
}

void GraphCacheCore::GiveBack(Step& step) {
  step.pending->Clear();
  base::MutexLock lock(mu_);
  counts_.found += std::exchange(step.found, 0);
  counts_.calls += std::exchange(step.calls, 0);
  counts_.nodes_changed += std::exchange(step.nodes_changed, 0);
  idle_steps_.push_back(&step);
}

absl::StatusOr<Run> GraphCacheCore::LaunchStep(Step& step, const Declaration& declaration, Deadline deadline) {
  for (;;) {
    int64_t added = 0;
    if (!checks_against_host_) {
      PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, LaunchKnown(step, declaration, deadline, added));
      if (run) {
        ++step.found;
        return *std::move(run);
      }
    }
    Graph graph(options_.name);
    PENSTOCK_RETURN_IF_ERROR(CallDeclaration(step, declaration, graph));
    PENSTOCK_ASSIGN_OR_RETURN(const bool turn, TakeCompileTurn(added, deadline));
    if (!turn) continue;
    const absl::StatusOr<std::shared_ptr<Entry>> entry = MakeEntry(graph.model_, deadline);
    EndCompileTurn();
    PENSTOCK_RETURN_IF_ERROR(entry.status());
    return LaunchNew(step, *entry, declaration, deadline);
  }
}

absl::StatusOr<std::optional<Run>> GraphCacheCore::LaunchKnown(Step& step, const Declaration& declaration,
                                                               Deadline deadline, int64_t& added) {
  const std::shared_ptr<Entry> last = step.last.lock();
  std::shared_ptr<Entry> expected;
  {
    base::MutexLock lock(mu_);
    if (last != nullptr) expected = last->next.lock();
  }
  if (expected != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, TryEntry(step, expected, declaration, deadline));
    if (run) return run;
  }
  {
    base::MutexLock lock(mu_);
    step.others.assign(entries_.begin(), entries_.end());
    added = added_;
  }
  for (const std::weak_ptr<Entry>& other : step.others) {
    const std::shared_ptr<Entry> entry = other.lock();
    if (entry == nullptr || entry == expected) continue;
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, TryEntry(step, entry, declaration, deadline));
    if (run) return run;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Run>> GraphCacheCore::TryEntry(Step& step, const std::shared_ptr<Entry>& entry,
                                                            const Declaration& declaration, Deadline deadline) {
  Comparison& with = ComparisonOf(step, *entry);
  absl::StatusOr<RunSlot*> slot = entry->core->Lease(deadline, Wait::kNo);
  if (absl::IsResourceExhausted(slot.status())) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool same, Compare(step, *entry, with, nullptr, declaration));
    if (!same) return std::nullopt;
    slot = entry->core->Lease(deadline, Wait::kYes);
  }
  PENSTOCK_RETURN_IF_ERROR(slot.status());
  absl::StatusOr<std::optional<Run>> run = TryIn(**slot, step, *entry, with, declaration, deadline);
  entry->core->GiveBack(*slot);
  if (run.ok() && *run) MarkUsed(step, entry);
  return run;
}

absl::StatusOr<std::optional<Run>> GraphCacheCore::TryIn(RunSlot& slot, Step& step, const Entry& entry,
                                                         Comparison& with, const Declaration& declaration,
                                                         Deadline deadline) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool same, Compare(step, entry, with, &slot, declaration));
  if (!same) return std::nullopt;
  step.pending->ApplyTo(detail::Internals<Bindings>::ValuesOf(with.io));
  PENSTOCK_ASSIGN_OR_RETURN(Run run, entry.core->LaunchIn(&slot, with.io, deadline));
  return std::optional<Run>(std::move(run));
}

absl::StatusOr<bool> GraphCacheCore::Compare(Step& step, const Entry& entry, Comparison& with, RunSlot* slot,
                                             const Declaration& declaration) {
  with.matcher.Begin(slot == nullptr ? std::span<const detail::DeclarationMatcher::Place>()
                                     : entry.places[slot->index]);
  Graph graph(with.declared, &with.matcher);
  const absl::Status called = CallDeclaration(step, declaration, graph);
  if (slot != nullptr) TakeChanges(step, entry, with, *slot);
  PENSTOCK_RETURN_IF_ERROR(called);
  return with.matcher.Matches();
}

// Called even if the comparison has failed: the values are set, and none is found to differ a second time.
void GraphCacheCore::TakeChanges(Step& step, const Entry& entry, const Comparison& with, RunSlot& slot) {
  for (const detail::DeclarationMatcher::Change& change : with.matcher.changes()) {
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
  step.nodes_changed += static_cast<int64_t>(with.matcher.changes().size());
}

absl::Status GraphCacheCore::CallDeclaration(Step& step, const Declaration& declaration, Graph& graph) {
  step.pending->Clear();
  ++step.calls;
  return base::CatchAll("GraphCache: the function that declares",
                        [&] { return declaration.call(declaration.function, graph, step.io); });
}

// Other steps have comparisons of their own, so only this thread makes it.
GraphCacheCore::Comparison& GraphCacheCore::ComparisonOf(const Step& step, Entry& entry) {
  {
    base::MutexLock lock(mu_);
    if (step.index < entry.comparisons.size() && entry.comparisons[step.index] != nullptr) {
      return *entry.comparisons[step.index];
    }
  }
  auto made = std::make_unique<Comparison>(std::make_shared<Model>(*entry.declared), entry.core->MakeBindings());
  base::MutexLock lock(mu_);
  if (entry.comparisons.size() <= step.index) entry.comparisons.resize(step.index + 1);
  return *(entry.comparisons[step.index] = std::move(made));
}

absl::StatusOr<bool> GraphCacheCore::TakeCompileTurn(int64_t added, Deadline deadline) {
  base::MutexLock lock(mu_);
  while (compiling_) {
    if (turn_ended_.WaitUntil(mu_, deadline.at()) || !compiling_) continue;
    return absl::DeadlineExceededError(
        "GraphCache: the graph is a new one, and another thread was compiling one until the deadline; nothing was "
        "started");
  }
  if (!checks_against_host_ && added != added_) return false;
  return compiling_ = true;
}

void GraphCacheCore::EndCompileTurn() {
  {
    base::MutexLock lock(mu_);
    compiling_ = false;
  }
  turn_ended_.NotifyAll();
}

absl::StatusOr<std::shared_ptr<GraphCacheCore::Entry>> GraphCacheCore::MakeEntry(const std::shared_ptr<Model>& model,
                                                                                 Deadline deadline) {
  if (!checks_against_host_) {
    for (NodeDecl& node : model->nodes) {  // slots have their own
      node.code.callable.reset();
      node.code.fallback.reset();
    }
  }
  PENSTOCK_RETURN_IF_ERROR(AwaitRoom(deadline));
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<ExecutableCore> core, Compile(*model));
  auto entry = std::make_shared<Entry>(std::move(core), model);
  if (!checks_against_host_) entry->FindPlaces();
  AddEntry(entry);
  return entry;
}

absl::StatusOr<Run> GraphCacheCore::LaunchNew(Step& step, const std::shared_ptr<Entry>& entry,
                                              const Declaration& declaration, Deadline deadline) {
  if (checks_against_host_) {
    MarkUsed(step, entry);
    Bindings& io = ComparisonOf(step, *entry).io;
    step.pending->ApplyTo(detail::Internals<Bindings>::ValuesOf(io));
    return entry->core->Launch(io, deadline, Wait::kYes);
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Run> run, TryEntry(step, entry, declaration, deadline));
  if (run) return *std::move(run);
  Evict(entry);
  return absl::FailedPreconditionError(graph::Prefix(*entry->declared) +
                                       ": the function that declares did not declare the same when it was called "
                                       "again; it is called several times for one launch, and each time must "
                                       "declare the same");
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> GraphCacheCore::Compile(const Model& model) {
  if (!model.controls.empty()) {
    return absl::UnimplementedError(graph::Prefix(model, "construct", model.controls[0].name) +
                                    ": a step that is declared again has no constructs yet; compile the graph once, "
                                    "with Runtime::Compile, and bind what differs");
  }
  for (const BufferDecl& buffer : model.buffers) {
    if (buffer.keys == 0) continue;
    return absl::InvalidArgumentError(graph::Prefix(model, "state", buffer.name) +
                                      ": there is one for each key, and they live with an executable, which a "
                                      "GraphCache may drop; use Runtime::Compile, or a State");
  }
  CompileOptions options = options_.compile;
  options.progress = PacedByHook(options.progress);
  runtime_->settings().Fill(model.name.view(), options);
  UseProfile(*runtime_, options);
  std::optional<Model> with_counts;
  if (graph::HasCounts(model)) with_counts = graph::WithReturnedCounts(model);
  for (;;) {
    auto core = ExecutableCore::Create(runtime_, with_counts ? *with_counts : model, options);
    if (core.ok() && (*core)->graph().program().buffers.leased >= 0) {
      const auto leased = static_cast<size_t>((*core)->graph().program().buffers.leased);
      return absl::InvalidArgumentError(graph::Prefix(model, "buffer", model.buffers[leased].name) +
                                        ": declared kSlot, and a GraphCache leases no slots to fill; declare it "
                                        "kPinned, or use Executable::Acquire");
    }
    if (core.ok()) {
      AddToProfile(*core);
      return ExecutableCore::HandleOn(*std::move(core));
    }
    const std::shared_ptr<Entry> idle = absl::IsResourceExhausted(core.status()) ? LeastRecentlyUsedIdle() : nullptr;
    if (idle == nullptr) return core.status();
    Evict(idle);
  }
}

absl::Status GraphCacheCore::AwaitRoom(Deadline deadline) {
  const auto may_go_on = [&] { return !IsFull() || LeastRecentlyUsedIdle() != nullptr || !runtime_->CheckOpen().ok(); };
  if (host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(), deadline.at(), may_go_on)) {
    return runtime_->CheckOpen();
  }
  return absl::DeadlineExceededError("GraphCache: the graph is a new one, and all " + std::to_string(entries().size()) +
                                     " executables had runs in flight until the deadline; nothing was started; wait "
                                     "for runs, or give the cache a higher limit");
}

// Since AwaitRoom another thread may have launched what was idle. Then the least recently used one goes, which its runs
// keep for as long as they need it.
void GraphCacheCore::AddEntry(std::shared_ptr<Entry> entry) {
  while (IsFull()) {
    const std::shared_ptr<Entry> idle = LeastRecentlyUsedIdle();
    Evict(idle != nullptr ? idle : entries().back());
  }
  base::MutexLock lock(mu_);
  entries_.insert(entries_.begin(), std::move(entry));
  ++counts_.compiled;
  ++added_;
}

bool GraphCacheCore::IsFull() const {
  base::MutexLock lock(mu_);
  return entries_.size() >= static_cast<size_t>(options_.limit);
}

void GraphCacheCore::MarkUsed(Step& step, const std::shared_ptr<Entry>& entry) {
  const std::shared_ptr<Entry> last = step.last.lock();
  step.last = entry;
  base::MutexLock lock(mu_);
  if (last != nullptr) last->next = entry;
  const auto at = std::find(entries_.begin(), entries_.end(), entry);
  if (at != entries_.end()) std::rotate(entries_.begin(), at, at + 1);
}

GraphCacheCore::Entries GraphCacheCore::entries() const {
  base::MutexLock lock(mu_);
  return entries_;
}

std::shared_ptr<GraphCacheCore::Entry> GraphCacheCore::LeastRecentlyUsedIdle() const {
  const Entries all = entries();
  const auto idle = std::find_if(all.rbegin(), all.rend(), [](const auto& e) { return e->core->IsIdle(); });
  return idle == all.rend() ? nullptr : *idle;
}

// The caller's reference outlives the lock, so nothing is freed under it.
void GraphCacheCore::Evict(const std::shared_ptr<Entry>& entry) {
  base::MutexLock lock(mu_);
  counts_.evicted += static_cast<int64_t>(std::erase(entries_, entry));
}

}  // namespace penstock::runtime
