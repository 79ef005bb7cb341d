#include "src/runtime/pipeline/pipeline_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/runtime/pipeline/stage_runs.h"

namespace penstock::runtime {
namespace {

int PlacesOf(const StageTable& table, const PipelineOptions& options) {
  return static_cast<int>(options.window > 0 ? options.window
                                             : std::min<int64_t>(table.default_window(), PipelineState::kMostPlaces));
}

}  // namespace

PipelineState::PipelineState(std::unique_ptr<StageTable> stages, const detail::ValueType& value, PipelineOptions from)
    : table(std::move(stages)),
      book(PlacesOf(*table, from), table->in_order(), from.order),
      placement(*table),
      poisoned(table->keyed(), static_cast<size_t>(PlacesOf(*table, from))),
      counts(*table),
      host_waiting(table->stages().size()),
      items(*table, value, static_cast<size_t>(PlacesOf(*table, from))),
      launching(table->queues().size()),
      runtime_(table->runtime()),
      options_(std::move(from)) {
  base::MutexLock lock(mu);
  abandoned_.Reserve(static_cast<size_t>(items.size()));
}

absl::Status PipelineState::CheckOpen() const {
  if (!ending.failure.ok()) return base::Prefixed("pipeline: it has failed, nothing more comes in", ending.failure);
  if (!ending.stopped) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "pipeline: it has been stopped (Stop, Drain, Cancel, the end of Run, or its destructor); nothing more comes in; "
      "make another one");
}

void PipelineState::EndStage(int i, absl::Status status) {
  PipelineItem& item = items.at(i);
  const bool last = book.stage(i) + 1 == book.stages();
  const bool cut_short = absl::IsCancelled(status) || (status.ok() && !last);
  if (!ending.with.ok() && cut_short) status = ending.with;
  if (status.ok() && item.deadline.passed() && !last) {
    status = absl::DeadlineExceededError("pipeline: the item's deadline passed before it had been through all stages");
  }
  if (status.ok()) {
    item.tries = 0;
    book.End(i);
    return WakeStage(i);
  }
  const bool again = ending.with.ok() && !base::IsFatal(status) && item.tries < options_.retries &&
                     !item.deadline.passed() && IsDrained(item) &&
                     !abandoned_.Has(i);  // abandoned work continues with what is in it
  if (!again) return FinishItem(i, status);
  ++item.tries;
  ++counts.retries;
  book.PutBack(i);
  WakeStage(i);
}

void PipelineState::FinishItem(int i, const absl::Status& status) {
  ++counts.failed;
  book.Finish(i);
  const bool fails = base::IsFatal(status) || options_.on_error == OnError::kFail;
  items.at(i).status = status;
  if (fails) Fail(status);
}

void PipelineState::WakeStage(int item) {
  if (book.state(item) != ItemBook::State::kWaiting) return;
  const int stage = book.stage(item);
  if (table->stage(stage).workers > 0) host_waiting[stage].NotifyOne();
}

void PipelineState::Fail(const absl::Status& why) {
  if (!ending.failure.ok()) return;
  ending.failure = why;
  const std::string_view what = "pipeline: it has failed before the item had been through all stages";
  const absl::Status with = base::Prefixed(what, why);
  EndAll(base::IsFatal(why) ? with : absl::CancelledError(with.message()));
}

void PipelineState::EndAll(const absl::Status& with) {
  ending.stopped = true;
  if (!ending.with.ok()) return;
  ending.with = with;
  for (int s = 0; s < book.stages(); ++s) {
    for (int i; (i = book.first_waiting(s)) >= 0;) FinishItem(i, ending.with);
  }
  if (!base::IsFatal(with)) cancel_runs_.store(true);  // otherwise the runtime ends them, with the fault
  service.NotifyAll();
}

void PipelineState::NotePoison(int stage, const absl::Status& poison, uint64_t key) {
  if (!ending.with.ok()) return;
  if (options_.reset) return poisoned.Note(stage, key);
  Fail(base::Suffixed(poison, "; the pipeline ends, since it has no PipelineOptions::reset"));
}

// Launches in progress count only if launches are slow somewhere.
int PipelineState::BestDevice(const Stage& stage, int wanted) const {
  if (!launching.AnySlow()) return placement.Best(stage, wanted, [](int) { return int64_t{0}; });
  const int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  return placement.Best(stage, wanted, [&](int device) {
    return launching.UntilLaunched(static_cast<size_t>(table->device(device).queue), now);
  });
}

void PipelineState::SetBlocked(int device, bool blocked) {
  if (placement.SetBlocked(device, blocked)) activity.blocked.fetch_add(blocked ? 1 : -1);
}

bool PipelineState::Unblock(const Stage& stage) {
  if (activity.blocked.load(std::memory_order_relaxed) == 0) return false;
  bool any = false;
  for (const int d : stage.devices) {
    {
      base::MutexLock lock(mu);
      if (!placement.blocked(d)) continue;
    }
    if (!HaveFreeSlots(stage, table->device(d).member)) continue;
    base::MutexLock lock(mu);
    SetBlocked(d, false);
    any = true;
  }
  return any;
}

void PipelineState::Abandon(const PipelineItem& item, int stage) {
  abandoned_.Add(item.index, stage);
  activity.abandoned.store(abandoned_.size());
}

// Wakes threads that wait for longer than that, so that they check again.
void PipelineState::NoteDue(const PipelineItem& item) {
  const int64_t due = std::chrono::nanoseconds(item.deadline.at().time_since_epoch()).count();
  if (due >= due_ns_.load(std::memory_order_relaxed)) return;
  due_ns_.store(due, std::memory_order_relaxed);
  runtime_->event_count().Notify();
  runtime_->completion().Wake();
}

void PipelineState::Expire() {
  const int64_t first = due_ns_.load(std::memory_order_relaxed);
  if (first == INT64_MAX || first > Clock::now().time_since_epoch().count()) return;
  base::MutexLock lock(mu);
  int64_t due = INT64_MAX;
  for (PipelineItem& item : items.all()) {
    const ItemBook::State state = book.state(item.index);
    const bool waits = state == ItemBook::State::kWaiting;
    if (item.deadline.is_never() || (!waits && state != ItemBook::State::kWorking)) continue;
    if (waits && item.deadline.passed()) {
      FinishItem(item.index,
                 absl::DeadlineExceededError(absl::StrCat("pipeline: the item's deadline passed while it waited for ",
                                                          table->stages()[book.stage(item.index)].prefix)));
    } else if (!item.deadline.passed()) {  // otherwise the thread that works on it sees that
      due = std::min<int64_t>(due, std::chrono::nanoseconds(item.deadline.at().time_since_epoch()).count());
    }
  }
  due_ns_.store(due, std::memory_order_relaxed);
  runtime_->event_count().Notify();
}

host::TimePoint PipelineState::ItemDue() const {
  const int64_t ns = due_ns_.load(std::memory_order_relaxed);
  return ns == INT64_MAX ? host::TimePoint::max() : host::TimePoint(std::chrono::nanoseconds(ns));
}

bool PipelineState::Free(PipelineItem& item) {
  const bool drained = IsDrained(item);
  if (!drained || HasAbandoned()) {
    base::MutexLock lock(mu);
    abandoned_.RemoveItem(item.index);
    if (!drained) abandoned_.Add(item.index, AbandonedItems::kWholeItem);
    activity.abandoned.store(abandoned_.size());
  }
  if (!drained) return false;
  items.Clear(item);
  base::MutexLock lock(mu);
  for (PipelineItem::Part& part : item.parts) placement.Release(part);
  book.Free(item.index);
  return true;
}

bool PipelineState::FreeAbandoned() {
  std::vector<int> drained;
  std::vector<Lease> slots;
  {
    base::MutexLock lock(mu);
    abandoned_.RemoveDrained([&](const AbandonedItems::Entry& entry) {
      mu.AssertHeld();
      PipelineItem& of = items.at(entry.item);
      if (!IsDrained(of)) return false;
      if (entry.stage == AbandonedItems::kWholeItem) {
        drained.push_back(entry.item);
        return true;
      }
      const Stage& stage = table->stage(entry.stage);
      for (const StageExecutable& executable : stage.executables) {
        slots.push_back(std::move(of.parts[executable.part].slot));
      }
      placement.Release(stage.PartOf(of));
      return true;
    });
    activity.abandoned.store(abandoned_.size());
  }
  for (const int i : drained) Free(items.at(i));
  if (drained.empty() && slots.empty()) return false;
  slots.clear();
  runtime_->event_count().Notify();
  return true;
}

// Destroyed on the thread that closes: the last count is often the completion thread's, and that could not end a
// runtime of which the callables held the last reference.
void PipelineState::DropCallables() {
  table->DropCallables();
  base::MutexLock lock(mu);
  options_.reset = nullptr;
  options_.progress = nullptr;
}

}  // namespace penstock::runtime
