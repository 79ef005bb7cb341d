#include "src/runtime/pipeline/pipeline_core.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/process_life.h"
#include "src/base/reaper.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/hostcall_poller.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/pipeline/pull_loop.h"
#include "src/runtime/pipeline/stage_runs.h"
#include "src/runtime/pipeline/tuning.h"
#include "src/runtime/pipeline/wait_and_pump.h"
#include "src/runtime/pipeline/waiting.h"

namespace penstock::runtime {
namespace {

absl::Status CheckOptions(const PipelineOptions& options) {
  if (options.window < 0 || options.window > PipelineState::kMostPlaces) {
    return absl::InvalidArgumentError(absl::StrCat("pipeline: PipelineOptions::window is ", options.window,
                                                   "; give 1 to ", PipelineState::kMostPlaces,
                                                   ", or 0 for twice the threads and slots of all stages"));
  }
  if (options.retries < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline: PipelineOptions::retries is ", options.retries, "; give 0 or more"));
  }
  if (options.progress && options.progress_every.count() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("pipeline: PipelineOptions::progress_every is ",
                                                   options.progress_every.count(), " ms; give 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<PipelineCore>> PipelineCore::Create(detail::StageList stages,
                                                                   const detail::ValueType& value,
                                                                   PipelineOptions options) {
  PENSTOCK_RETURN_IF_ERROR(StageTable::Check(stages));
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<PipelineCore> core;
  try {
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<StageTable> table, StageTable::Create(std::move(stages)));
    options.window = table->runtime()->settings().Window(table->first_run(), options.window);
    core.reset(new PipelineCore(std::move(table), value, std::move(options)), base::DeleteUnlessForked());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipeline: no memory for all its places of ", value.size,
                     " bytes each; give a smaller PipelineOptions::window, or have items point at their data"));
  }
  absl::Status started = core->hosts_.Start();
  if (started.ok()) started = core->reset_.Start();
  if (!started.ok()) core->EndThreads();
  PENSTOCK_RETURN_IF_ERROR(started);
  core->state_.runtime().Watch(core.get());
  observe::ProfileRecorder& profile = core->state_.runtime().observed().profile;
  if (profile.records_all()) profile.pipelines().Add(core, profile.trace()->Now());
  return core;
}

PipelineCore::PipelineCore(std::unique_ptr<StageTable> table, const detail::ValueType& value, PipelineOptions options)
    : state_(std::move(table), value, std::move(options)), shares_(state_.table->MakeShares()) {
  for (PipelineItem& item : state_.items.all()) item.core = this;
}

void PipelineCore::Ref() {
  if (refs_.fetch_add(1, std::memory_order_acq_rel) == 0) self_ = shared_from_this();
}

void PipelineCore::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  wakeup_.Dismiss();
  std::exchange(self_, nullptr).reset();
}

host::TimePoint PipelineCore::due() const {
  const host::TimePoint due = state_.ItemDue();
  const host::TimePoint now = Clock::now();
  if (!queues_.Busy() && !state_.launching.AnyLeft() && now > queues_.active() + tuning::kLinger) return due;
  return std::min(due, now + tuning::kLookAfter);
}

void PipelineCore::Advance() {
  if (state_.activity.waiting.load() == 0) {  // otherwise a waiting thread does
    queues_.Pump();
    queues_.BeginLeft();
  }
  wakeup_.Call();
}

void PipelineCore::Poll() {
  if (wakeup_.Poll()) Advance();
}

// Waiting

absl::Status PipelineCore::CheckMayWait(const char* what) const {
  if (state_.runtime().forked()) return RuntimeCore::Forked();
  if (!base::InUserCode() && InsideScope::current() != this) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("pipeline: ", what,
                   " inside a stage, source, sink or callback, where it could wait for itself; use what does not "
                   "wait (TryPush, TryAcquire, Stop), or call it outside"));
}

// Filling items

absl::StatusOr<AnyItem> PipelineCore::Acquire(Key key, int device, Deadline deadline, Wait wait) {
  if (state_.runtime().forked()) return RuntimeCore::Forked();
  if (wait == Wait::kYes) PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Push or Acquire"));
  absl::StatusOr<int> place = TakePlace(key, device);
  const auto settled = [&] { return !place.ok() || *place >= 0; };
  const auto again = [&] {
    if (!settled()) place = TakePlace(key, device);
    return settled();
  };
  if (!settled() && wait == Wait::kYes) {
    WaitAndPump(state_, queues_, deadline, again);
  } else if (!settled()) {
    PumpHere();
    again();
  }
  PENSTOCK_RETURN_IF_ERROR(place.status());
  if (*place >= 0) return ItemAt(*place);
  const std::string full = absl::StrCat("pipeline: all ", state_.items.size(), " places are taken, or no slot is free");
  if (wait == Wait::kYes) return absl::DeadlineExceededError(full + ", and none came free before the deadline");
  base::MutexLock lock(state_.mu);
  ++state_.counts.refused;
  return absl::ResourceExhaustedError(full + "; take items out, wait (Push, Acquire), or give it a larger window");
}

absl::StatusOr<int> PipelineCore::TakePlace(Key key, int device) {
  const bool may_drop = state_.options().when_full != WhenFull::kWait;
  for (;;) {
    MissingSlot missing;
    int i = ItemBook::kNone;
    {
      base::MutexLock lock(state_.mu);
      PENSTOCK_RETURN_IF_ERROR(state_.CheckOpen());
      i = state_.book.Hold();
    }
    if (i >= 0) {
      PipelineItem& item = state_.items.at(i);
      item.key = key.value;
      item.pin = device;
      const absl::Status found = state_.table->FindDevices(item, StageTable::At::kAcquire);
      const absl::StatusOr<bool> taken = found.ok() ? TakeKeptSlots(item, missing) : found;
      if (taken.ok() && *taken) return i;
      Free(item);
      PENSTOCK_RETURN_IF_ERROR(taken.status());
    }
    if (!may_drop || !DropOne(missing)) return ItemBook::kNone;
  }
}

// Whether each executable of the stages that keep slots has a free one. Taking a slot and giving it back, because
// another stage has none, would notify the event count, and a thread that waits for the other stage would never sleep.
bool PipelineCore::SlotsAreFree(PipelineItem& item, MissingSlot& missing) {
  const std::vector<Stage>& stages = state_.table->stages();
  for (size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    if (!stage.keeps_slots) continue;
    missing = {static_cast<int>(s), stage.PartOf(item).wanted};
    state_.Unblock(stage);
    int device = -1;
    for (bool free = false; !free;) {
      {
        base::MutexLock lock(state_.mu);
        if (device >= 0) state_.SetBlocked(device, true);
        device = state_.BestDevice(stage, missing.wanted);
      }
      if (device < 0) return false;
      free = HaveFreeSlots(stage, state_.table->device(device).member);
    }
  }
  return true;
}

absl::StatusOr<bool> PipelineCore::TakeKeptSlots(PipelineItem& item, MissingSlot& missing) {
  if (item.parts.size() > 1 && !SlotsAreFree(item, missing)) return false;
  const std::vector<Stage>& stages = state_.table->stages();
  for (size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    if (!stage.keeps_slots) continue;
    PipelineItem::Part& part = stage.PartOf(item);
    missing = {static_cast<int>(s), part.wanted};
    state_.Unblock(stage);
    for (;;) {
      int device = -1;
      {
        base::MutexLock lock(state_.mu);
        device = state_.BestDevice(stage, part.wanted);
        if (device < 0) return false;
        state_.placement.Take(part, device);
      }
      absl::Status taken = TakeSlots(stage, state_.table->device(device).member, item);
      if (taken.ok()) break;
      if (!absl::IsResourceExhausted(taken)) return taken;
      base::MutexLock lock(state_.mu);
      state_.placement.Release(part);
      state_.SetBlocked(device, true);
    }
  }
  return true;
}

bool PipelineCore::DropOne(const MissingSlot& missing) {
  const auto has_missing = [&](int candidate) {
    if (missing.stage < 0) return true;
    const Stage& stage = state_.table->stage(missing.stage);
    const int at = stage.PartOf(state_.items.at(candidate)).device;
    return at >= 0 && (missing.wanted < 0 || state_.table->device(at).member == missing.wanted);
  };
  int i = ItemBook::kNone;
  {
    base::MutexLock lock(state_.mu);
    if (state_.options().when_full == WhenFull::kDropOldest) {
      i = state_.book.OldestIdle(has_missing);
    } else {  // an item that is tried again has begun its work
      i = state_.book.OldestUnbegun([&](int item) { return state_.items.at(item).tries == 0 && has_missing(item); });
    }
    if (i < 0) return false;
    state_.book.Drop(i);
    ++state_.counts.dropped;
  }
  Free(state_.items.at(i));
  state_.runtime().event_count().Notify();  // later items may be ready now
  return true;
}

absl::Status PipelineCore::Submit(PipelineItem& item, const ItemOptions& options) {
  if (state_.runtime().forked()) return RuntimeCore::Forked();
  const int pin = item.pin;
  if (options.device != kAnyDevice) item.pin = options.device;
  absl::Status entered = state_.table->FindDevices(item, StageTable::At::kSubmit);
  if (entered.ok()) entered = Enter(item, options);
  if (!entered.ok()) {  // it still belongs to the caller
    item.pin = pin;
    return entered;
  }
  PumpHere();
  return absl::OkStatus();
}

absl::Status PipelineCore::Enter(PipelineItem& item, const ItemOptions& options) {
  base::MutexLock lock(state_.mu);
  if (state_.book.state(item.index) != ItemBook::State::kHeld) {
    return absl::FailedPreconditionError(
        "pipeline: Submit of an item that was popped, or that a stage has; submit what Acquire has returned");
  }
  PENSTOCK_RETURN_IF_ERROR(state_.CheckOpen());
  item.id = options.id;
  item.deadline = options.deadline;
  state_.NoteDue(item);
  ++state_.counts.accepted;
  state_.book.Submit(item.index, item.key, InsideScope::BatchOf(this, state_.book));
  state_.WakeStage(item.index);
  // A thread that waits to replace an item may replace this one.
  if (state_.options().when_full != WhenFull::kWait) state_.runtime().event_count().Notify();
  return absl::OkStatus();
}

// If nothing may be launched on this thread, tells others to do it.
void PipelineCore::PumpHere() {
  if (!base::InDeviceCode() && !host::HostcallPoller::IsCurrent()) return queues_.Pump();
  state_.runtime().event_count().Notify();
  state_.runtime().completion().Wake();
}

// Taking items out

int PipelineCore::TakeReady(ItemBook::Batch* batch) {
  int item = ItemBook::kNone;
  {
    base::MutexLock lock(state_.mu);
    item = state_.book.Take(batch);
    if (item >= 0) ++state_.counts.delivered;
  }
  observe::RunMeter& meter = state_.runtime().observed().meter;
  if (item >= 0 && meter.on()) meter.ItemEnded(Clock::now());
  return item;
}

bool PipelineCore::AtEnd() const {
  base::MutexLock lock(state_.mu);
  return state_.ending.stopped && state_.book.inside() == 0;
}

AnyItem PipelineCore::Pop(Deadline deadline) {
  if (absl::Status may = CheckMayWait("Pop"); !may.ok()) return detail::Internals<AnyItem>::Make(std::move(may));
  int item = ItemBook::kNone;
  bool end = false;
  WaitAndPump(state_, queues_, deadline, [&] {
    item = TakeReady();
    end = item < 0 && AtEnd();
    return item >= 0 || end;
  });
  if (item >= 0) return ItemAt(item);
  if (end)
    return detail::Internals<AnyItem>::Make(
        absl::OutOfRangeError("pipeline: it has been stopped, and every item was popped"));
  return detail::Internals<AnyItem>::Make(
      absl::DeadlineExceededError("pipeline: no item ended before the deadline of Pop; it goes on"));
}

absl::Status PipelineCore::RunAll(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink,
                                  AtEndOfSource at_end) {
  const bool stops = at_end == AtEndOfSource::kStop;
  const char* const call = stops ? "Run" : "RunBatch";
  PENSTOCK_RETURN_IF_ERROR(CheckMayWait(call));
  if (pull == nullptr || sink == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("pipeline: ", call, ": the ", pull == nullptr ? "source" : "sink",
                                                   " is null; give one that can be called"));
  }
  PENSTOCK_RETURN_IF_ERROR(state_.table->CheckMayPull());
  const std::shared_ptr<PipelineCore> keep = shared_from_this();  // the handle may go inside
  ItemBook::Batch batch;
  PullLoop loop(*this, pull, sink, stops ? nullptr : &batch);
  base::WhenThreadEnds dissolve([&] {
    base::MutexLock lock(state_.mu);
    state_.book.Dissolve(batch);
  });
  const InsideScope scope(this, stops ? nullptr : &batch);
  loop.Run();
  dissolve.Cancel();
  PENSTOCK_RETURN_IF_ERROR(loop.error());
  PENSTOCK_RETURN_IF_ERROR(status());
  if (stops || !loop.cut_short()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "pipeline: RunBatch: the pipeline was stopped (Stop, Drain, Cancel, or the end of Run) before the source had no "
      "more; the sink has seen what came in; make another pipeline for the rest");
}

void PipelineCore::Return(PipelineItem& item) {
  if (state_.runtime().forked()) return;
  if (Free(item)) return state_.runtime().event_count().Notify();
  if (closed_.load()) base::LeakOnPurpose(shared_from_this());  // otherwise Close does
}

bool PipelineCore::Free(PipelineItem& item) {
  if (state_.Free(item)) return true;
  queues_.BeginActivity();
  return false;
}

// The end

void PipelineCore::Stop() {
  if (state_.runtime().forked()) return;
  {
    base::MutexLock lock(state_.mu);
    state_.ending.stopped = true;
  }
  state_.runtime().event_count().Notify();
}

void PipelineCore::Cancel() {
  if (state_.runtime().forked()) return;
  {
    base::MutexLock lock(state_.mu);
    state_.EndAll(absl::CancelledError("pipeline: it was cancelled before the item had been through all stages"));
  }
  state_.runtime().event_count().Notify();
  state_.runtime().completion().Wake();
  PumpHere();
}

bool PipelineCore::IsQuiet() const {
  base::MutexLock lock(state_.mu);
  return state_.book.open() == 0;
}

absl::Status PipelineCore::Drain(Deadline deadline) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Drain"));
  Stop();
  if (WaitAndPump(state_, queues_, deadline, [&] { return IsQuiet(); })) return status();
  base::MutexLock lock(state_.mu);
  return absl::DeadlineExceededError(
      absl::StrCat("pipeline: ", state_.book.open(), " items had not ended at the deadline of Drain; they go on"));
}

absl::Status PipelineCore::status() const {
  if (state_.runtime().forked()) return RuntimeCore::Forked();
  base::MutexLock lock(state_.mu);
  return state_.ending.failure;
}

void PipelineCore::EndThreads() {
  {
    base::MutexLock lock(state_.mu);
    state_.ending.threads = true;
    for (base::CondVar& waiting : state_.host_waiting) waiting.NotifyAll();
    state_.service.NotifyAll();
  }
  hosts_.Join();
  reset_.Join();
}

// If this thread cannot wait, another one does. While the process exits, everything stays as it is.
void PipelineCore::Close() {
  if (state_.runtime().forked()) return base::LeakOnPurpose(shared_from_this());
  Cancel();
  if (base::Exiting()) {
    state_.runtime().Log(LogLevel::kError, "a Pipeline was destroyed while the process exits; its memory is not freed");
    return base::LeakOnPurpose(shared_from_this());
  }
  if (!base::MustNotAwaitEnds() && InsideScope::current() != this) return CloseHere();
  if (base::EndElsewhere(shared_from_this(), [this] { CloseHere(); })) return;
  state_.runtime().Log(
      LogLevel::kError,
      "a Pipeline was dropped where it cannot be waited for, and the system refuses a thread that would; "
      "its memory is not freed");
}

// If work of runs continues, everything stays alive for it.
void PipelineCore::CloseHere() {
  WaitAndPump(state_, queues_, Deadline(), [&] { return IsQuiet(); });
  EndThreads();
  for (int i; (i = TakeReady()) >= 0;) Free(state_.items.at(i));
  observe::ProfileRecorder& profile = state_.runtime().observed().profile;
  if (profile.records_all()) profile.pipelines().End(*this, profile.trace()->Now());
  state_.DropCallables();
  closed_.store(true);  // before checking abandoned items: Return leaks what has to stay for later ones
  state_.FreeAbandoned();
  if (state_.HasAbandoned()) base::LeakOnPurpose(shared_from_this());
  state_.runtime().completion().Wake();
}

PipelineStats PipelineCore::stats() const {
  PipelineStats stats;
  if (state_.runtime().forked()) return stats;
  stats.engines = shares_.Engines();
  stats.threads = shares_.Threads();
  base::MutexLock lock(state_.mu);
  const double elapsed = static_cast<double>((Clock::now() - made_).count());
  const auto add = [&](const std::string& name, int capacity, size_t stage, const StageWork& work) {
    state_.mu.AssertHeld();
    const double busy = static_cast<double>(work.busy_ns) / (elapsed * capacity);
    stats.stages.push_back({name, capacity, state_.book.waiting(static_cast<int>(stage)), work.working, work.done,
                            work.failed, std::min(1.0, busy)});
  };
  const PipelineCounts& counts = state_.counts;
  const std::vector<Stage>& stages = state_.table->stages();
  for (size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].workers > 0) add(stages[s].name, stages[s].workers, s, counts.hosts[s]);
    for (const int d : stages[s].devices) {
      const StageDevice& device = state_.table->device(d);
      add(device.name, device.slots, s, state_.placement.work(d));
    }
  }
  stats.accepted = counts.accepted;
  stats.delivered = counts.delivered;
  stats.dropped = counts.dropped;
  stats.refused = counts.refused;
  stats.failed = counts.failed;
  stats.retries = counts.retries;
  stats.inside = state_.book.inside();
  stats.ready = state_.book.ready();
  stats.window = state_.book.items();
  double most = 0;
  for (size_t s = 0; s < stats.stages.size(); ++s) {
    if (stats.stages[s].busy > most) most = stats.stages[s].busy, stats.bottleneck = static_cast<int>(s);
  }
  return stats;
}

Bindings& PipelineCore::BindingsOf(PipelineItem& item, uint32_t graph) {
  const int part = state_.table->PartOfGraph(graph);
  return item.parts[std::max(part, 0)].bindings;  // for another graph's, records the mistake
}

std::pair<void*, size_t> PipelineCore::Find(const PipelineItem& item, uint32_t graph, int32_t index,
                                            TypeInfo type) const {
  for (const PipelineItem::Part& part : item.parts) {
    const auto found = detail::Internals<Lease>::Find(part.slot, graph, index, type);
    if (found.first != nullptr) return found;
  }
  return {nullptr, 0};
}

absl::StatusOr<int64_t> PipelineCore::Count(const PipelineItem& item, uint32_t graph, int32_t output) const {
  if (!item.status.ok()) return item.status;
  const int part = state_.table->PartOfGraph(graph);
  return FindCount(part < 0 ? ReturnedCounts() : item.parts[static_cast<size_t>(part)].counts, graph, output);
}

}  // namespace penstock::runtime
