// The pipeline's producers, consumers, host stages and end. See pipeline_core.h; feeds are in run_queue.cc.
#include "src/runtime/pipeline/pipeline_core.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/process_life.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/hostcall_poller.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/waiting.h"

namespace penstock::runtime {
PipelineCore::~PipelineCore() {
  for (PipelineItem& item : items_) Clear(item);
  ::operator delete(values_.release(), std::align_val_t(value_.align));
}

void PipelineCore::Ref() {
  if (refs_.fetch_add(1, std::memory_order_acq_rel) == 0) self_ = shared_from_this();
}

void PipelineCore::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  DismissSubmissionThreads();
  std::exchange(self_, nullptr).reset();
}

namespace {
constexpr std::chrono::milliseconds kLookAfter{1};
// For so long after runs have come to be in flight the completion thread goes on looking when there are none any more,
// so that it need not be woken for each item of a stream that pauses.
constexpr std::chrono::milliseconds kLinger{100};

host::TimePoint TimeOf(int64_t ns) {
  return ns == INT64_MAX ? host::TimePoint::max() : host::TimePoint(std::chrono::nanoseconds(ns));
}
}  // namespace

host::TimePoint PipelineCore::ItemDue() const { return TimeOf(due_ns_.load(std::memory_order_relaxed)); }

host::TimePoint PipelineCore::due() const {
  const host::TimePoint due = ItemDue();
  const host::TimePoint now = Clock::now();
  if (!Busy() && !AnyLeft() && now > TimeOf(active_ns_.load()) + kLinger) return due;
  return std::min(due, now + kLookAfter);
}

// Who waits asleep, since there was nothing to be seen of devices, looks again. The completion thread is asleep for
// good where the activity before is long over; half the time is the margin.
void PipelineCore::BeginActivity() {
  runtime_->event_count().Notify();
  const Clock::time_point now =
      Clock::now();  // behind what has made it busy, or it could be seen at rest later than now
  const int64_t before = active_ns_.exchange(now.time_since_epoch().count());
  if (now > TimeOf(before) + kLinger / 2) runtime_->WakeCompletion();
}

// Waiting

bool PipelineCore::Polls() const { return !runtime_->notifies_completion() && Busy(); }

absl::Status PipelineCore::CheckMayWait(const char* what) const {
  if (runtime_->forked()) return RuntimeCore::Forked();
  if (!base::InUserCode() && InsideScope::current() != this) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("pipeline: ", what,
                   " inside a stage, source, sink or callback, where it could wait for itself; use what does not "
                   "wait (TryPush, TryAcquire, Stop), or call it outside"));
}

absl::Status PipelineCore::CheckMayPull() const {
  for (const Stage& stage : stages_) {
    if (!stage.keeps_slots || stage.stations.size() == 1 || !IsKeyed(stage)) continue;
    return absl::FailedPreconditionError(
        stage.prefix +
        ": Run of a pipeline in which an item has a slot on one of several devices before its key is known, by which "
        "it has to be on one (kSlot buffers and a KeyedState); use Push or Acquire, which are told the key");
  }
  return absl::OkStatus();
}

absl::Status PipelineCore::CheckOpen() const {
  if (!failure_.ok()) return base::Prefixed("pipeline: it has failed, nothing more comes in", failure_);
  if (!stopped_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "pipeline: it has been stopped (Stop, Drain, Cancel, the end of Run, or its destructor); nothing more comes in; "
      "make another one");
}

// Who fills items

absl::StatusOr<AnyItem> PipelineCore::Acquire(Key key, int device, Deadline deadline, bool wait) {
  if (runtime_->forked()) return RuntimeCore::Forked();
  if (wait) PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Push or Acquire"));
  absl::StatusOr<int> place = TakePlace(key, device);
  const auto settled = [&] { return !place.ok() || *place >= 0; };
  const auto again = [&] {
    if (!settled()) place = TakePlace(key, device);
    return settled();
  };
  if (!settled() && wait) {
    WaitFor(deadline, again);
  } else if (!settled()) {
    PumpHere();
    again();
  }
  PENSTOCK_RETURN_IF_ERROR(place.status());
  if (*place >= 0) return AnyItem(shared_from_this(), &items_[static_cast<size_t>(*place)]);
  const std::string full = absl::StrCat("pipeline: all ", window(), " places are taken, or no slot is free");
  if (wait) return absl::DeadlineExceededError(full + ", and none came free before the deadline");
  base::MutexLock lock(mu_);
  ++refused_;
  return absl::ResourceExhaustedError(full + "; take items out, wait (Push, Acquire), or give it a larger window");
}

absl::StatusOr<int> PipelineCore::TakePlace(Key key, int device) {
  const bool may_drop = options_.when_full == WhenFull::kDropOldest;
  for (;;) {
    Lack lack;
    int i = ItemBook::kNone;
    {
      base::MutexLock lock(mu_);
      PENSTOCK_RETURN_IF_ERROR(CheckOpen());
      i = book_->Hold();
    }
    if (i >= 0) {
      PipelineItem& item = items_[static_cast<size_t>(i)];
      item.key = key.value;
      item.pin = device;
      const absl::Status found = FindDevices(item, /*kept=*/true);
      const absl::StatusOr<bool> taken = found.ok() ? TakeSlots(item, lack) : found;
      if (taken.ok() && *taken) return i;
      Free(item);
      PENSTOCK_RETURN_IF_ERROR(taken.status());
    }
    if (!may_drop || !DropOldest(lack)) return ItemBook::kNone;
  }
}

// Whether each executable of the stages that keep slots has a free one. A slot that is taken and given back, since
// another stage has none, notifies the event count, and who waits for that one would never sleep.
bool PipelineCore::SlotsAreFree(PipelineItem& item, Lack& lack) {
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    if (!stage.keeps_slots) continue;
    lack = {static_cast<int>(s), PartOf(stage, item).wanted};
    Unblock(stage);
    int at = -1;
    for (bool free = false; !free;) {
      {
        base::MutexLock lock(mu_);
        if (at >= 0) SetBlocked(*stations_[static_cast<size_t>(at)], true);
        at = BestStation(stage, lack.wanted);
      }
      if (at < 0) return false;
      free = HaveFreeSlots(stage, stations_[static_cast<size_t>(at)]->member);
    }
  }
  return true;
}

absl::StatusOr<bool> PipelineCore::TakeSlots(PipelineItem& item, Lack& lack) {
  if (parts_ > 1 && !SlotsAreFree(item, lack)) return false;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    if (!stage.keeps_slots) continue;
    PipelineItem::Part& part = PartOf(stage, item);
    lack = {static_cast<int>(s), part.wanted};
    Unblock(stage);
    for (;;) {
      {
        base::MutexLock lock(mu_);
        const int at = BestStation(stage, part.wanted);
        if (at < 0) return false;
        TakeStation(part, at);
      }
      Station& station = *stations_[static_cast<size_t>(part.station)];
      absl::Status taken = TakeSlotsOf(stage, station, item);
      if (taken.ok()) break;
      if (!absl::IsResourceExhausted(taken)) return taken;
      base::MutexLock lock(mu_);
      ReleaseStation(part);
      SetBlocked(station, true);
    }
  }
  return true;
}

bool PipelineCore::DropOldest(const Lack& lack) {
  int i = ItemBook::kNone;
  {
    base::MutexLock lock(mu_);
    i = book_->OldestIdle([&](int candidate) {
      mu_.AssertHeld();
      if (lack.stage < 0) return true;
      const Stage& stage = stages_[static_cast<size_t>(lack.stage)];
      const int at = PartOf(stage, items_[static_cast<size_t>(candidate)]).station;
      return at >= 0 && (lack.wanted < 0 || stations_[static_cast<size_t>(at)]->member == lack.wanted);
    });
    if (i < 0) return false;
    book_->Drop(i);
    ++dropped_;
  }
  Free(items_[static_cast<size_t>(i)]);
  runtime_->event_count().Notify();  // those that came behind it may be ready now
  return true;
}

absl::Status PipelineCore::Submit(PipelineItem& item, const ItemOptions& options) {
  if (runtime_->forked()) return RuntimeCore::Forked();
  const int pin = item.pin;
  if (options.device != kAnyDevice) item.pin = options.device;
  absl::Status entered = FindDevices(item, /*kept=*/false);
  if (entered.ok()) entered = Enter(item, options);
  if (!entered.ok()) {  // it still is the caller's
    item.pin = pin;
    return entered;
  }
  PumpHere();
  return absl::OkStatus();
}

absl::Status PipelineCore::Enter(PipelineItem& item, const ItemOptions& options) {
  base::MutexLock lock(mu_);
  if (book_->state(item.index) != ItemBook::State::kHeld) {
    return absl::FailedPreconditionError(
        "pipeline: Submit of an item that was popped, or that a stage has; submit what Acquire has returned");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  item.id = options.id;
  item.deadline = options.deadline;
  NoteDue(item);
  ++accepted_;
  book_->Submit(item.index, item.key);
  WakeStage(item.index);
  return absl::OkStatus();
}

// Who waits, for longer than that, looks again.
void PipelineCore::NoteDue(const PipelineItem& item) {
  const int64_t due = std::chrono::nanoseconds(item.deadline.at().time_since_epoch()).count();
  if (due >= due_ns_.load(std::memory_order_relaxed)) return;
  due_ns_.store(due, std::memory_order_relaxed);
  runtime_->event_count().Notify();
  runtime_->WakeCompletion();
}

// Where nothing may be launched, others are told to.
void PipelineCore::PumpHere() {
  if (!base::InDeviceCode() && !host::HostcallPoller::IsCurrent()) return Pump();
  runtime_->event_count().Notify();
  runtime_->WakeCompletion();
}

// Who takes items out

int PipelineCore::TakeReady() {
  base::MutexLock lock(mu_);
  const int item = book_->Take();
  if (item >= 0) ++delivered_;
  return item;
}

bool PipelineCore::IsStopped() const {
  base::MutexLock lock(mu_);
  return stopped_;
}

bool PipelineCore::AtEnd() const {
  base::MutexLock lock(mu_);
  return stopped_ && book_->inside() == 0;
}

AnyItem PipelineCore::Pop(Deadline deadline) {
  if (absl::Status may = CheckMayWait("Pop"); !may.ok()) return AnyItem(std::move(may));
  int item = ItemBook::kNone;
  bool end = false;
  WaitFor(deadline, [&] {
    item = TakeReady();
    end = item < 0 && AtEnd();
    return item >= 0 || end;
  });
  if (item >= 0) return AnyItem(shared_from_this(), &items_[static_cast<size_t>(item)]);
  if (end) return AnyItem(absl::OutOfRangeError("pipeline: it has been stopped, and every item was popped"));
  return AnyItem(absl::DeadlineExceededError("pipeline: no item ended before the deadline of Pop; it goes on"));
}

// Whether the source had one more. An item that cannot enter goes to `refused` with the reason, so that what the source
// gave is not lost; that the pipeline has been stopped is no error of the item.
absl::StatusOr<bool> PipelineCore::PullInto(int place, const std::function<bool(AnyItem&)>& pull, AnyItem& refused) {
  AnyItem item(shared_from_this(), &items_[static_cast<size_t>(place)]);
  absl::StatusOr<bool> pulled =
      base::CatchAll("pipeline: source", [&]() -> absl::StatusOr<bool> { return pull(item); });
  if (!pulled.ok() || !*pulled) return pulled;
  absl::Status entered = FindDevices(*item.item_, /*kept=*/false);
  if (entered.ok()) entered = Enter(*item.item_, {});
  if (entered.ok()) {
    item.item_ = nullptr;
    return true;
  }
  item.item_->status = entered;
  refused = std::move(item);
  if (IsStopped()) return false;
  return entered;
}

absl::Status PipelineCore::RunAll(const std::function<bool(AnyItem&)>& pull,
                                  const std::function<void(AnyItem&)>& sink) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Run"));
  if (pull == nullptr || sink == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("pipeline: Run: the ", pull == nullptr ? "source" : "sink",
                                                   " is null; give one that can be called"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckMayPull());
  const std::shared_ptr<PipelineCore> keep = shared_from_this();  // the handle may go inside
  const InsideScope scope(this);
  absl::Status thrown;
  bool more = true, sinks = true;
  const auto show = [&](AnyItem& item) {
    const absl::Status sunk = sinks ? base::CatchAll("pipeline: sink", [&] { sink(item); }) : absl::OkStatus();
    if (sunk.ok()) return;
    thrown.Update(sunk);
    sinks = more = false;
    Cancel();
  };
  AnyItem refused;  // the source gave it and nothing took it in: the sink sees it after all others
  for (bool end = false; !end;) {
    int place = ItemBook::kNone, ready = ItemBook::kNone;
    WaitFor(Deadline(), [&] {
      if (more) {
        const absl::StatusOr<int> taken = TakePlace(Key(), kAnyDevice);
        more = taken.ok();
        place = more ? *taken : ItemBook::kNone;
        if (!more && !IsStopped()) {
          thrown.Update(taken.status());
          Stop();
        }
      }
      ready = TakeReady();
      end = place < 0 && ready < 0 && !more && AtEnd();
      return place >= 0 || ready >= 0 || end;
    });
    if (place >= 0) {
      const absl::StatusOr<bool> pulled = PullInto(place, pull, refused);
      more = pulled.ok() && *pulled;
      if (!pulled.ok()) thrown.Update(pulled.status());
      if (!more) Stop();
    }
    if (ready >= 0) {
      AnyItem item(shared_from_this(), &items_[static_cast<size_t>(ready)]);
      show(item);
    }
  }
  if (refused) show(refused);
  return thrown.ok() ? status() : thrown;
}

void PipelineCore::Return(PipelineItem& item) {
  if (runtime_->forked()) return;
  if (Free(item)) return runtime_->event_count().Notify();
  if (closed_.load()) base::LeakOnPurpose(shared_from_this());  // else Close does
}

// False: its run goes on, and may use what is in it. Then its place comes free when that has ended.
bool PipelineCore::Free(PipelineItem& item) {
  const bool drained = IsDrained(item);
  if (!drained || quarantined_.load() > 0) {
    base::MutexLock lock(mu_);
    std::erase_if(quarantine_, [&](const Quarantined& q) { return q.item == item.index; });
    if (!drained) Quarantine(item, -1);
    quarantined_.store(static_cast<int>(quarantine_.size()));
  }
  if (!drained) {
    BeginActivity();
    return false;
  }
  Clear(item);
  base::MutexLock lock(mu_);
  for (PipelineItem::Part& part : item.parts) ReleaseStation(part);
  book_->Free(item.index);
  return true;
}

void PipelineCore::Clear(PipelineItem& item) {
  const base::LetGoScope scope;
  for (PipelineItem::Part& part : item.parts) {
    part.slot = Lease();
    part.bindings.Reset();
    part.run = Run();
    part.wanted = -1;
  }
  item.run = Run();
  item.cut_short = absl::OkStatus();
  item.pin = kAnyDevice;
  if (std::exchange(item.has_value, false)) {
    const absl::Status gone =
        base::CatchAll("pipeline: the destructor of a value", [&] { value_.destroy(item.value); });
    if (!gone.ok()) runtime_->Log(LogLevel::kError, base::Str(gone.message()));
  }
  item.status = absl::OkStatus();
  item.deadline = Deadline();
  item.tries = 0;
  item.device = -1;
}

void PipelineCore::FreeQuarantined() {
  std::vector<int> drained;
  std::vector<Lease> slots;
  {
    base::MutexLock lock(mu_);
    std::erase_if(quarantine_, [&](const Quarantined& q) {
      mu_.AssertHeld();
      PipelineItem& item = items_[static_cast<size_t>(q.item)];
      if (!IsDrained(item)) return false;
      if (q.stage < 0) {
        drained.push_back(q.item);
        return true;
      }
      const Stage& stage = stages_[static_cast<size_t>(q.stage)];
      for (const Leg& leg : stage.legs) slots.push_back(std::move(item.parts[static_cast<size_t>(leg.part)].slot));
      ReleaseStation(PartOf(stage, item));
      return true;
    });
    quarantined_.store(static_cast<int>(quarantine_.size()));
  }
  for (const int i : drained) Free(items_[static_cast<size_t>(i)]);
  if (drained.empty() && slots.empty()) return;
  slots.clear();
  runtime_->event_count().Notify();
}

bool PipelineCore::IsQuarantined(int item) const {
  return std::any_of(quarantine_.begin(), quarantine_.end(), [&](const Quarantined& q) { return q.item == item; });
}

void PipelineCore::Quarantine(const PipelineItem& item, int stage) {
  quarantine_.push_back({item.index, stage});
  quarantined_.store(static_cast<int>(quarantine_.size()));
}

// What items do

void PipelineCore::WakeStage(int item) {
  if (book_->state(item) != ItemBook::State::kWaiting) return;
  const Stage& stage = stages_[static_cast<size_t>(book_->stage(item))];
  if (stage.host != nullptr) stage.host->waiting.NotifyOne();
}

void PipelineCore::NoteBegin(Work& work, PipelineItem& item) {
  item.begun = Clock::now();
  ++work.working;
}

void PipelineCore::NoteEnd(Work& work, const PipelineItem& item, bool failed) {
  work.busy_ns += (Clock::now() - item.begun).count();
  --work.working;
  ++work.done;
  work.failed += failed ? 1 : 0;
}

void PipelineCore::EndStage(int i, absl::Status status) {
  PipelineItem& item = items_[static_cast<size_t>(i)];
  const bool last = book_->stage(i) + 1 == book_->stages();
  const bool cut_short = absl::IsCancelled(status) || (status.ok() && !last);
  if (!end_.ok() && cut_short) status = end_;
  if (status.ok() && item.deadline.passed() && !last) {
    status = absl::DeadlineExceededError("pipeline: the item's deadline passed before it had been through all stages");
  }
  if (status.ok()) {
    item.tries = 0;
    book_->End(i);
    return WakeStage(i);
  }
  const bool again = end_.ok() && !base::IsFatal(status) && item.tries < options_.retries && !item.deadline.passed() &&
                     IsDrained(item) && !IsQuarantined(i);  // what is abandoned goes on with what is in it
  if (!again) return FinishItem(i, status);
  ++item.tries;
  ++retries_;
  book_->PutBack(i);
  WakeStage(i);
}

void PipelineCore::FinishItem(int i, const absl::Status& status) {
  ++failed_;
  book_->Finish(i);
  const bool fails = base::IsFatal(status) || options_.on_error == OnError::kFail;
  items_[static_cast<size_t>(i)].status = status;
  if (fails) Fail(status);
}

void PipelineCore::WorkOnHost(size_t s) {
  Stage& stage = stages_[s];
  for (;;) {
    int i = ItemBook::kNone;
    {
      base::MutexLock lock(mu_);
      while (!end_threads_ && (i = book_->Begin(static_cast<int>(s), [](int) { return true; })) < 0) {
        stage.host->waiting.Wait(mu_);
      }
      if (i < 0) return;
      NoteBegin(stage.host->work, items_[static_cast<size_t>(i)]);
    }
    base::WhenThreadEnds go_on([&] {
      EndOnHost(stage, i, base::Prefixed(stage.prefix, base::EndedItsThread("its function")));
      base::GoOnElsewhere([&] { WorkOnHost(s); });
    });
    absl::Status status = CallOnItem(stage.prefix, stage.call, items_[static_cast<size_t>(i)]);
    go_on.Cancel();
    EndOnHost(stage, i, std::move(status));
  }
}

void PipelineCore::EndOnHost(Stage& stage, int i, absl::Status status) {
  {
    base::MutexLock lock(mu_);
    NoteEnd(stage.host->work, items_[static_cast<size_t>(i)], !status.ok());
    EndStage(i, std::move(status));
  }
  runtime_->event_count().Notify();
  Pump();
}

absl::Status PipelineCore::CallOnItem(const std::string& prefix, const detail::StageFunction& call,
                                      PipelineItem& item) {
  const base::UserCodeScope scope;
  AnyItem any(nullptr, &item);
  const absl::Status status = base::CatchAll("its function", [&] { return call(any); });
  return status.ok() ? status : base::Prefixed(prefix, status);
}

void PipelineCore::Expire() {
  const int64_t first = due_ns_.load(std::memory_order_relaxed);
  if (first == INT64_MAX || first > Clock::now().time_since_epoch().count()) return;
  base::MutexLock lock(mu_);
  int64_t due = INT64_MAX;
  for (PipelineItem& item : items_) {
    const ItemBook::State state = book_->state(item.index);
    const bool waits = state == ItemBook::State::kWaiting;
    if (item.deadline.is_never() || (!waits && state != ItemBook::State::kWorking)) continue;
    if (waits && item.deadline.passed()) {
      FinishItem(item.index, absl::DeadlineExceededError(
                                 absl::StrCat("pipeline: the item's deadline passed while it waited for ",
                                              stages_[static_cast<size_t>(book_->stage(item.index))].prefix)));
    } else if (!item.deadline.passed()) {  // else who works on it sees that
      due = std::min<int64_t>(due, std::chrono::nanoseconds(item.deadline.at().time_since_epoch()).count());
    }
  }
  due_ns_.store(due, std::memory_order_relaxed);
  runtime_->event_count().Notify();
}

Bindings& PipelineCore::BindingsOf(PipelineItem& item, uint32_t graph) {
  for (const Stage& stage : stages_) {
    for (const Leg& leg : stage.legs) {
      if (leg.set->first().model().serial == graph) return item.parts[static_cast<size_t>(leg.part)].bindings;
    }
  }
  return item.parts[0].bindings;  // which notes the mistake
}

std::pair<void*, size_t> PipelineCore::Find(const PipelineItem& item, uint32_t graph, int32_t index,
                                            TypeInfo type) const {
  for (const PipelineItem::Part& part : item.parts) {
    const Lease::Memory memory = part.slot.Find(graph, index, type);
    if (memory.data != nullptr) return {memory.data, memory.elements};
  }
  return {nullptr, 0};
}

}  // namespace penstock::runtime
