// How a pipeline ends, fails, resets States and tells of itself. See pipeline_core.h.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/process_life.h"
#include "src/base/reaper.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/pipeline_core.h"
#include "src/runtime/pipeline/waiting.h"

namespace penstock::runtime {

// The end

void PipelineCore::Fail(const absl::Status& failure) {
  if (!failure_.ok()) return;
  failure_ = failure;
  const std::string_view what = "pipeline: it has failed before the item had been through all stages";
  const absl::Status end = base::Prefixed(what, failure);
  EndAll(base::IsFatal(failure) ? end : absl::CancelledError(end.message()));
}

void PipelineCore::EndAll(const absl::Status& end) {
  stopped_ = true;
  if (!end_.ok()) return;
  end_ = end;
  for (int s = 0; s < book_->stages(); ++s) {
    for (int i; (i = book_->first_waiting(s)) >= 0;) FinishItem(i, end_);
  }
  if (!base::IsFatal(end)) cancel_runs_.store(true);  // else the runtime ends them, with the fault
  service_.NotifyAll();
}

void PipelineCore::Stop() {
  if (runtime_->forked()) return;
  {
    base::MutexLock lock(mu_);
    stopped_ = true;
  }
  runtime_->event_count().Notify();
}

void PipelineCore::Cancel() {
  if (runtime_->forked()) return;
  {
    base::MutexLock lock(mu_);
    EndAll(absl::CancelledError("pipeline: it was cancelled before the item had been through all stages"));
  }
  runtime_->event_count().Notify();
  runtime_->WakeCompletion();
  PumpHere();
}

bool PipelineCore::IsQuiet() const {
  base::MutexLock lock(mu_);
  return book_->open() == 0;
}

absl::Status PipelineCore::Drain(Deadline deadline) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Drain"));
  Stop();
  if (WaitFor(deadline, [&] { return IsQuiet(); })) return status();
  base::MutexLock lock(mu_);
  return absl::DeadlineExceededError(
      absl::StrCat("pipeline: ", book_->open(), " items had not ended at the deadline of Drain; they go on"));
}

absl::Status PipelineCore::status() const {
  if (runtime_->forked()) return RuntimeCore::Forked();
  base::MutexLock lock(mu_);
  return failure_;
}

// With nothing inside. What they hold goes on the thread that closes: the last count is often the completion thread's,
// which could not end a runtime that has come to be theirs alone.
void PipelineCore::DropCallables() {
  for (Stage& stage : stages_) {
    stage.call = nullptr;
    for (Leg& leg : stage.legs) leg.call = nullptr;
  }
  base::MutexLock lock(mu_);
  options_.reset = nullptr;
  options_.progress = nullptr;
}

// Where it cannot wait, another thread does. While the process exits all stays as it is.
void PipelineCore::Close() {
  if (runtime_->forked()) return base::LeakOnPurpose(shared_from_this());
  Cancel();
  if (base::Exiting()) {
    runtime_->Log(LogLevel::kError, "a Pipeline was destroyed while the process exits; what it has is kept for good");
    return base::LeakOnPurpose(shared_from_this());
  }
  if (!base::MustNotAwaitEnds() && InsideScope::current() != this) return CloseHere();
  if (base::EndElsewhere(shared_from_this(), [this] { CloseHere(); })) return;
  runtime_->Log(LogLevel::kError,
                "a Pipeline was dropped where it cannot be waited for, and the system refuses a thread that would; "
                "what it has is kept for good");
}

// Where the work of runs goes on, all stays for them.
void PipelineCore::CloseHere() {
  WaitFor(Deadline(), [&] { return IsQuiet(); });
  EndThreads();
  for (int i; (i = TakeReady()) >= 0;) Free(items_[static_cast<size_t>(i)]);
  DropCallables();
  closed_.store(true);  // before the look at the quarantine: who comes to it later leaks what has to stay (Return)
  FreeQuarantined();
  if (quarantined_.load() > 0) base::LeakOnPurpose(shared_from_this());
  runtime_->WakeCompletion();
}

// Resets and progress

bool PipelineCore::MayReset() const {
  if (!end_.ok()) return false;
  bool any = false, busy = false;
  for (const Stage& stage : stages_) {
    any = any || stage.halted;
    for (const int s : stage.stations) {
      busy = busy || (stage.halted && stations_[static_cast<size_t>(s)]->work.working > 0);
    }
  }
  return any && !busy;
}

void PipelineCore::Serve() {
  Clock::time_point tell = options_.progress ? Deadline(options_.progress_every).at() : Clock::time_point::max();
  for (;;) {
    bool reset = false;
    {
      base::MutexLock lock(mu_);
      while (!end_threads_ && !(reset = MayReset()) && Clock::now() < tell) service_.WaitUntil(mu_, tell);
      if (end_threads_) return;
    }
    if (reset) ResetStates();
    if (Clock::now() < tell) continue;
    const base::UserCodeScope scope;
    const absl::Status told = base::CatchAll("pipeline: progress", [&] { options_.progress(stats()); });
    if (!told.ok()) runtime_->Log(LogLevel::kError, base::Str(told.message()));
    tell = Deadline(options_.progress_every).at();
  }
}

// Of the stages that are halted now: one that halts meanwhile may have poisoned its State behind what the user sets.
void PipelineCore::ResetStates() {
  std::vector<Stage*> halted;
  std::vector<uint64_t> keys;  // the user is called for each once, and once for all States without a key
  {
    base::MutexLock lock(mu_);
    for (Stage& stage : stages_) {
      if (!stage.halted) continue;
      halted.push_back(&stage);
      for (const uint64_t key : std::exchange(stage.poisoned, {})) {
        const bool known = std::find(keys.begin(), keys.end(), key) != keys.end();
        if (keys.empty() || (IsKeyed(stage) && !known)) keys.push_back(key);
      }
    }
  }
  const InsideScope scope(this);
  absl::Status reset;
  for (const uint64_t key : keys) {
    if (reset.ok()) reset = base::CatchAll("pipeline: reset", [&] { return options_.reset(Key(key)); });
  }
  {
    base::MutexLock lock(mu_);
    for (Stage* const stage : halted) stage->halted = false;
    if (!reset.ok()) Fail(base::Prefixed("pipeline: a State is poisoned, and PipelineOptions::reset failed", reset));
  }
  runtime_->event_count().Notify();
  Pump();
}

PipelineStats PipelineCore::stats() const {
  PipelineStats stats;
  if (runtime_->forked()) return stats;
  stats.engines = shares_->Engines();
  stats.threads = shares_->Threads();
  base::MutexLock lock(mu_);
  const double elapsed = static_cast<double>((Clock::now() - made_).count());
  const auto add = [&](const std::string& name, int capacity, int stage, const Work& work) {
    mu_.AssertHeld();
    const double busy = static_cast<double>(work.busy_ns) / (elapsed * capacity);
    stats.stages.push_back(
        {name, capacity, book_->waiting(stage), work.working, work.done, work.failed, std::min(1.0, busy)});
  };
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const int index = static_cast<int>(s);
    if (stage.host != nullptr) add(stage.name, stage.host->workers, index, stage.host->work);
    for (const int at : stage.stations) {
      const Station& station = *stations_[static_cast<size_t>(at)];
      add(station.name, station.load.slots, index, station.work);
    }
  }
  stats.accepted = accepted_;
  stats.delivered = delivered_;
  stats.dropped = dropped_;
  stats.refused = refused_;
  stats.failed = failed_;
  stats.retries = retries_;
  stats.inside = book_->inside();
  stats.ready = book_->ready();
  stats.window = book_->items();
  double most = 0;
  for (size_t s = 0; s < stats.stages.size(); ++s) {
    if (stats.stages[s].busy > most) most = stats.stages[s].busy, stats.bottleneck = static_cast<int>(s);
  }
  return stats;
}

}  // namespace penstock::runtime
