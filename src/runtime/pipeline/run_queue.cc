// How a pipeline's runs begin and end: feeds, poisoned States. Which device an item goes to is in placement.cc.
#include <algorithm>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/pipeline_core.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

// A pass in which nothing moved is the last. What others own meanwhile they look at again.
void PipelineCore::Pump(bool news) {
  Expire();
  if (quarantined_.load(std::memory_order_relaxed) > 0) FreeQuarantined();
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& feed : feeds_) {
      const auto step = [&] {
        while (EndRuns(*feed) || BeginHere(*feed)) moved = true;
      };
      news ? feed->notes.Run(step) : feed->notes.TryRun(step);
    }
    moved = moved && feeds_.size() > 1;
  }
}

// Where drivers notify the event count, that may have been for any run. A look at a CUDA device takes about a
// microsecond, and another one comes soon: at the oldest run, and at one other.
bool PipelineCore::EndRuns(Feed& feed) {
  if (cancel_runs_.load() && !std::exchange(feed.cancelled, true)) {
    for (const int i : feed.running) {
      PipelineItem& item = items_[static_cast<size_t>(i)];
      for (const PipelineItem::Part& part : item.parts) part.run.Cancel();
      item.run.Cancel();
    }
  }
  const size_t running = feed.running.size();
  bool any = false;
  if (runtime_->notifies_completion()) {
    for (size_t r = 0; r < feed.running.size();) EndRunAt(feed, r) ? any = true : ++r;
  } else if (running > 0) {
    any = EndRunAt(feed, 0);
    if (!any && running > 1) {
      feed.look = feed.look % (static_cast<int32_t>(running) - 1) + 1;
      any = EndRunAt(feed, static_cast<size_t>(feed.look));
    }
  }
  if (any) runtime_->event_count().Notify();
  return any;
}

bool PipelineCore::EndRunAt(Feed& feed, size_t at) {
  PipelineItem& item = items_[static_cast<size_t>(feed.running[at])];
  if (!item.run.done()) return false;
  for (const PipelineItem::Part& part : item.parts) {
    if (!part.run.done()) return false;  // ended before, but this is who sees it
  }
  feed.running.erase(feed.running.begin() + static_cast<std::ptrdiff_t>(at));
  EndRun(feed, item, StatusOfRuns(stages_[static_cast<size_t>(feed.stage)], item));
  return true;
}

// It goes on with the slots that it keeps, if it does. Work that goes on keeps them too, until it has ended.
void PipelineCore::EndRun(Feed& feed, PipelineItem& item, const absl::Status& status) {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  PipelineItem::Part& first = PartOf(stage, item);
  Station& station = *stations_[static_cast<size_t>(first.station)];
  const bool gives_back = !stage.keeps_slots && IsDrained(item), goes_on = !stage.keeps_slots && !gives_back;
  for (const Leg& leg : stage.legs) {
    PipelineItem::Part& part = item.parts[static_cast<size_t>(leg.part)];
    if (gives_back) part.slot = Lease();
    if (status.ok()) part.bindings.Reset();  // what they keep alive may go
  }
  const absl::Status poison = status.ok() ? absl::OkStatus() : PoisonOf(stage, station, item);
  in_flight_.fetch_sub(1);
  const Clock::time_point now = Clock::now();
  NoteMove(feed, now);
  {
    base::MutexLock lock(mu_);
    const auto took = static_cast<double>((now - item.begun).count());
    double& mean = station.load.mean_ns;
    mean = mean == 0 ? took : mean + (took - mean) / 8;
    if (gives_back) ReleaseStation(first);
    if (goes_on) Quarantine(item, feed.stage);
    NoteEnd(station.work, item, !status.ok());
    if (!poison.ok()) NotePoison(feed.stage, poison, item.key);
    if (stage.halted) service_.NotifyAll();  // who resets waits for the last run, which may have been a good one
    EndStage(item.index, status);
  }
  if (goes_on) BeginActivity();
}

// The first failure in the row; those behind it only say that they came behind.
absl::Status PipelineCore::StatusOfRuns(const Stage& stage, PipelineItem& item) {
  for (size_t l = 0; l + 1 < stage.legs.size(); ++l) {
    const Run& run = item.parts[static_cast<size_t>(stage.legs[l].part)].run;
    if (run.state_ == nullptr) break;  // the last that was launched is item.run
    if (absl::Status status = run.status(); !status.ok() && run.done()) return status;
  }
  absl::Status status = item.run.status();
  if (status.ok()) status = item.cut_short;
  item.cut_short = absl::OkStatus();
  return status;
}

bool PipelineCore::IsDrained(const PipelineItem& item) {
  return item.run.drained() &&
         std::all_of(item.parts.begin(), item.parts.end(), [](const auto& part) { return part.run.drained(); });
}

bool PipelineCore::BeginRun(Feed& feed) {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  PipelineItem* item = nullptr;
  Station* station = nullptr;
  bool starved = false;
  {
    base::MutexLock lock(mu_);
    int at = -1;
    const auto fits = [&](int candidate) {
      mu_.AssertHeld();
      at = StationFor(feed, items_[static_cast<size_t>(candidate)]);
      return at >= 0;
    };
    const int i = stage.halted ? ItemBook::kNone : book_->Begin(feed.stage, fits);
    if (i >= 0) {
      item = &items_[static_cast<size_t>(i)];
      station = stations_[static_cast<size_t>(at)].get();
      if (!stage.keeps_slots) TakeStation(PartOf(stage, *item), at);
      item->device = station->device;
      NoteBegin(station->work, *item);
    } else {
      starved = !stage.halted && IsStarved(feed);
    }
    if (shares_launches_) NoteLooked(feed, item);
    if (stage.halted) return false;
  }
  if (item == nullptr) {
    if (starved && Unblock(stage)) return BeginRun(feed);
    NoteStarved(feed, starved);
    return false;
  }
  return LaunchItem(feed, *item, *station);
}

// Items wait, and others have slots that they could have.
bool PipelineCore::IsStarved(const Feed& feed) const {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  return book_->waiting(feed.stage) > 0 && std::any_of(stage.stations.begin(), stage.stations.end(), [&](int s) {
           const Station& station = *stations_[static_cast<size_t>(s)];
           return station.blocked && feeds_[static_cast<size_t>(station.feed)].get() == &feed;
         });
}

bool PipelineCore::NoteStarved(Feed& feed, bool starved) {
  if (starved != std::exchange(feed.starved, starved)) {
    starved_.fetch_add(starved ? 1 : -1);
    if (starved) BeginActivity();
  }
  return starved;
}

// False: others have all slots of an executable.
bool PipelineCore::LaunchItem(Feed& feed, PipelineItem& item, Station& station) {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  absl::Status status;
  if (!stage.keeps_slots) {
    status = TakeSlotsOf(stage, station, item);
    if (NoteStarved(feed, absl::IsResourceExhausted(status))) {
      feed.launching_ns.store(0, std::memory_order_relaxed);
      PutBack(stage, item, station);
      return false;
    }
  }
  NoteMove(feed, item.begun);
  if (shares_launches_) NoteInFlight();  // submission threads are called while a launch takes long
  if (status.ok()) status = StartRuns(stage, station.member, item);
  shares_launches_ ? NoteLaunch(feed, (Clock::now() - item.begun).count()) : NoteInFlight();
  if (status.ok()) {
    feed.running.push_back(item.index);
  } else {
    EndRun(feed, item, status);
    runtime_->event_count().Notify();
  }
  return true;
}

void PipelineCore::PutBack(const Stage& stage, PipelineItem& item, Station& station) {
  bool ended = false;
  {
    base::MutexLock lock(mu_);
    ReleaseStation(PartOf(stage, item));
    SetBlocked(station, true);
    --station.work.working;
    if (stage.halted) service_.NotifyAll();
    book_->PutBack(item.index);
    ended = !end_.ok();
    if (ended) FinishItem(item.index, end_);  // nobody else will: the others that waited have ended
    NoteDue(item);
  }
  if (ended) runtime_->event_count().Notify();
}

// Where one behind the first cannot be launched, those before it end first.
absl::Status PipelineCore::StartRuns(const Stage& stage, int member, PipelineItem& item) {
  for (const Leg& leg : stage.legs) {
    item.parts[static_cast<size_t>(leg.part)].run = Run();  // of a try before
    if (leg.call) PENSTOCK_RETURN_IF_ERROR(CallOnItem(leg.prefix, leg.call, item));
  }
  for (size_t l = 0; l < stage.legs.size(); ++l) {
    absl::Status started = StartLeg(stage, l, member, item);
    if (started.ok()) continue;
    if (l == 0) return started;
    item.cut_short = std::move(started);
    break;
  }
  return absl::OkStatus();
}

absl::Status PipelineCore::StartLeg(const Stage& stage, size_t l, int member, PipelineItem& item) {
  const Leg& leg = stage.legs[l];
  PipelineItem::Part& part = item.parts[static_cast<size_t>(leg.part)];
  if (leg.set->keyed() != nullptr) part.bindings.SetKey(Key(item.key));
  if (stage.legs.size() > 1) BindLinks(stage, l, member, item);
  absl::StatusOr<Run> run = part.slot.Launch(part.bindings, item.deadline);
  if (!run.ok()) return run.status();
  if (l > 0) item.parts[static_cast<size_t>(stage.legs[l - 1].part)].run = std::move(item.run);
  item.run = *std::move(run);
  return absl::OkStatus();
}

absl::Status PipelineCore::PoisonOf(const Stage& stage, const Station& station, const PipelineItem& item) const {
  for (const Leg& leg : stage.legs) {
    const ExecutableCore& core = *leg.set->members()[static_cast<size_t>(station.member)].core;
    for (const graph::StateUse& use : core.graph().plan().states) {
      const BufferDecl& decl = core.model().buffers[static_cast<size_t>(use.buffer)];
      if (decl.keys != 0) continue;
      if (absl::Status poison = StateCore::Of(*decl.state).status(); !poison.ok()) return poison;
    }
    if (core.binder().keyed() == nullptr) continue;
    if (absl::Status poison = core.binder().keyed()->PoisonOf(item.key); !poison.ok()) return poison;
  }
  return absl::OkStatus();
}

bool PipelineCore::IsKeyed(const Stage& stage) {
  return std::any_of(stage.legs.begin(), stage.legs.end(), [](const Leg& leg) { return leg.set->keyed() != nullptr; });
}

void PipelineCore::NotePoison(int s, const absl::Status& poison, uint64_t key) {
  if (!end_.ok()) return;
  if (options_.reset) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    stage.halted = true;
    std::vector<uint64_t>& keys = stage.poisoned;
    if (keys.empty() || (IsKeyed(stage) && std::find(keys.begin(), keys.end(), key) == keys.end())) keys.push_back(key);
    return;
  }
  Fail(base::Suffixed(poison, "; the pipeline ends, since it has no PipelineOptions::reset"));
}

}  // namespace penstock::runtime
