#include "src/runtime/pipeline/run_queue.h"

#include <algorithm>
#include <utility>

#include "src/runtime/executable/internals.h"
#include "src/runtime/pipeline/stage_runs.h"
#include "src/runtime/pipeline/tuning.h"

namespace penstock::runtime {
namespace {

int64_t NowNs() { return NsOf(std::chrono::steady_clock::now()); }

}  // namespace

RunQueues::RunQueues(PipelineState& state) : state_(state), table_(*state.table) {
  for (const int stage : table_.queues()) {
    queues_.push_back(std::make_unique<RunQueue>(stage, queues_.size()));
    queues_.back()->running.reserve(static_cast<size_t>(state.items.size()));
  }
  FindSubmissionThreads();
}

// A queue with executables on several devices uses the submission threads of the first.
void RunQueues::FindSubmissionThreads() {
  int with_threads = 0;
  for (const auto& queue : queues_) {
    const std::vector<int>& devices = table_.stage(queue->stage).devices;
    const auto first = std::find_if(devices.begin(), devices.end(), [&](int d) { return IsOf(d, *queue); });
    submission_threads_.push_back(state_.runtime().submission().Of(table_.device(*first).device));
    with_threads += submission_threads_.back() != nullptr ? 1 : 0;
  }
  if (with_threads > 1) state_.launching.Enable();
  SetServed(std::vector<bool>(queues_.size()));
}

const void* RunQueues::CurrentThreadId() {
  static thread_local const char me = 0;
  return &me;
}

// The last pass is one in which nothing moved. Queues that others own meanwhile are checked again by their owners.
template <class RunStep>
void RunQueues::PumpEach(RunStep run) {
  state_.Expire();
  if (state_.HasAbandoned()) state_.FreeAbandoned();
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& queue : queues_) {
      const auto step = [&] {
        while (EndRuns(*queue) || BeginHere(*queue)) moved = true;
      };
      run(*queue, step);
    }
    moved = moved && queues_.size() > 1;
  }
}

void RunQueues::Pump() {
  PumpEach([](RunQueue& queue, auto step) { queue.owner.Run(step); });
}

void RunQueues::PumpUnowned() {
  PumpEach([](RunQueue& queue, auto step) { queue.owner.TryRun(step); });
}

// If drivers notify the event count, the notification may have been for any run. Otherwise a check of a CUDA device
// takes about a microsecond and another one follows soon, so only the oldest run and one other are checked.
bool RunQueues::EndRuns(RunQueue& queue) {
  if (state_.cancels_runs() && !std::exchange(queue.cancelled, true)) {
    for (const int i : queue.running) CancelRuns(state_.items.at(i));
  }
  const size_t running = queue.running.size();
  bool any = false;
  if (state_.runtime().notifies_completion()) {
    for (size_t r = 0; r < queue.running.size();) EndRunAt(queue, r) ? any = true : ++r;
  } else if (running > 0) {
    any = EndRunAt(queue, 0);
    if (!any && running > 1) {
      queue.look = queue.look % (static_cast<int32_t>(running) - 1) + 1;
      any = EndRunAt(queue, static_cast<size_t>(queue.look));
    }
  }
  if (any) state_.runtime().event_count().Notify();
  return any;
}

bool RunQueues::EndRunAt(RunQueue& queue, size_t at) {
  PipelineItem& item = state_.items.at(queue.running[at]);
  if (!RunsEnded(item)) return false;  // some ended before, but this is the thread that sees it
  queue.running.erase(queue.running.begin() + static_cast<std::ptrdiff_t>(at));
  EndRun(queue, item, StatusOfRuns(table_.stage(queue.stage), item));
  return true;
}

// An item keeps its slots if its stage keeps them, and work that continues keeps them until it has ended.
void RunQueues::EndRun(RunQueue& queue, PipelineItem& item, const absl::Status& status) {
  const Stage& stage = table_.stage(queue.stage);
  PipelineItem::Part& first = stage.PartOf(item);
  const int device = first.device;
  const bool gives_back = !stage.keeps_slots && IsDrained(item), goes_on = !stage.keeps_slots && !gives_back;
  if (gives_back) GiveSlotsBack(stage, item);
  for (const StageExecutable& executable : stage.executables) {
    // What its bindings keep alive may be released.
    if (status.ok()) detail::Internals<Bindings>::ValuesOf(item.parts[executable.part].bindings).Reset();
  }
  const absl::Status poison = status.ok() ? absl::OkStatus() : PoisonOf(stage, table_.device(device).member, item);
  state_.activity.in_flight.fetch_sub(1);
  const Clock::time_point now = Clock::now();
  NoteMove(queue, now);
  {
    base::MutexLock lock(state_.mu);
    state_.placement.NoteRun(device, static_cast<double>((now - item.begun).count()));
    if (gives_back) state_.placement.Release(first);
    if (goes_on) state_.Abandon(item, queue.stage);
    state_.placement.work(device).End(item, status);
    if (!poison.ok()) state_.NotePoison(queue.stage, poison, item.key);
    // The resetting thread waits for the last run, which may have succeeded.
    if (state_.poisoned.halted(queue.stage)) state_.service.NotifyAll();
    state_.EndStage(item.index, status);
  }
  if (goes_on) BeginActivity();
}

bool RunQueues::BeginRun(RunQueue& queue) {
  const Stage& stage = table_.stage(queue.stage);
  PipelineItem* item = nullptr;
  int device = -1;
  bool starved = false;
  {
    base::MutexLock lock(state_.mu);
    const bool halted = state_.poisoned.halted(queue.stage);
    const auto fits = [&](int candidate) {
      state_.mu.AssertHeld();
      device = DeviceFor(queue, state_.items.at(candidate));
      return device >= 0;
    };
    const int i = halted ? ItemBook::kNone : state_.book.Begin(queue.stage, fits);
    if (i >= 0) {
      item = &state_.items.at(i);
      if (!stage.keeps_slots) state_.placement.Take(stage.PartOf(*item), device);
      item->device = table_.device(device).device;
      state_.placement.work(device).Begin(*item);
    } else {
      starved = !halted && IsStarved(queue);
    }
    if (state_.launching.enabled()) NoteLooked(queue, item);
    if (halted) return false;
  }
  if (item == nullptr) {
    if (starved && state_.Unblock(stage)) return BeginRun(queue);
    NoteStarved(queue, starved);
    return false;
  }
  return LaunchItem(queue, *item, device);
}

// The device on which the item should run; -1: not by this queue, or nowhere yet.
int RunQueues::DeviceFor(const RunQueue& queue, PipelineItem& item) const {
  const Stage& stage = table_.stage(queue.stage);
  const PipelineItem::Part& part = stage.PartOf(item);
  const int device = stage.keeps_slots ? part.device : state_.BestDevice(stage, part.wanted);
  return device >= 0 && IsOf(device, queue) ? device : -1;
}

// Whether items wait while other users hold slots that they could have.
bool RunQueues::IsStarved(const RunQueue& queue) const {
  const Stage& stage = table_.stage(queue.stage);
  return state_.book.waiting(queue.stage) > 0 && std::any_of(stage.devices.begin(), stage.devices.end(), [&](int d) {
           state_.mu.AssertHeld();
           return state_.placement.blocked(d) && IsOf(d, queue);
         });
}

bool RunQueues::NoteStarved(RunQueue& queue, bool starved) {
  if (starved != std::exchange(queue.starved, starved)) {
    state_.activity.starved.fetch_add(starved ? 1 : -1);
    if (starved) BeginActivity();
  }
  return starved;
}

// Returns false if other users hold all slots of an executable.
bool RunQueues::LaunchItem(RunQueue& queue, PipelineItem& item, int device) {
  const Stage& stage = table_.stage(queue.stage);
  const int member = table_.device(device).member;
  SharedLaunching& launching = state_.launching;
  absl::Status status;
  if (!stage.keeps_slots) {
    status = TakeSlots(stage, member, item);
    if (NoteStarved(queue, absl::IsResourceExhausted(status))) {
      launching.CancelLaunch(queue.index);
      PutBack(stage, item, device);
      return false;
    }
  }
  NoteMove(queue, item.begun);
  if (launching.enabled()) NoteInFlight();  // submission threads are called while a launch is slow
  if (status.ok()) status = StartRuns(stage, member, item);
  if (launching.enabled()) {
    launching.NoteLaunch(queue.index, (Clock::now() - item.begun).count());
  } else {
    NoteInFlight();
  }
  if (status.ok()) {
    queue.running.push_back(item.index);
  } else {
    EndRun(queue, item, status);
    state_.runtime().event_count().Notify();
  }
  return true;
}

void RunQueues::PutBack(const Stage& stage, PipelineItem& item, int device) {
  bool ended = false;
  {
    base::MutexLock lock(state_.mu);
    state_.placement.Release(stage.PartOf(item));
    state_.SetBlocked(device, true);
    --state_.placement.work(device).working;
    if (state_.poisoned.halted(table_.device(device).stage)) state_.service.NotifyAll();
    state_.book.PutBack(item.index);
    ended = !state_.ending.with.ok();
    // No other thread will end it: the other waiting items have ended.
    if (ended) state_.FinishItem(item.index, state_.ending.with);
    state_.NoteDue(item);
  }
  if (ended) state_.runtime().event_count().Notify();
}

// Wakes a thread that sleeps because there was nothing to check on devices. The completion thread sleeps for good if
// the previous activity is long over; half the time is the margin.
void RunQueues::BeginActivity() {
  state_.runtime().event_count().Notify();
  // After what made it busy, or it could be seen idle later than now.
  const Clock::time_point now = Clock::now();
  const int64_t before = state_.activity.active_ns.exchange(now.time_since_epoch().count());
  if (now > Clock::time_point(std::chrono::nanoseconds(before)) + tuning::kLinger / 2)
    state_.runtime().completion().Wake();
}

void RunQueues::NoteMove(RunQueue& queue, Clock::time_point now) {
  queue.moved_ns.store(NsOf(now), std::memory_order_relaxed);
  const void* const submitter = queue.submitter.load(std::memory_order_relaxed);
  if (submitter != nullptr && submitter != CurrentThreadId()) queue.submitter.store(nullptr, std::memory_order_relaxed);
}

RunQueues::Clock::time_point RunQueues::StaleAt(const RunQueue& queue, std::chrono::nanoseconds after) {
  return Clock::time_point(std::chrono::nanoseconds(queue.moved_ns.load(std::memory_order_relaxed)) + after);
}

// All threads check a queue whose slots other users hold, since nothing tells when those are freed.
bool RunQueues::LeaveToSubmissionThreads(RunQueue& queue) {
  const SharedLaunching& launching = state_.launching;
  if (queue.starved || !launching.IsSlow(queue.index)) return false;
  const bool before = launching.left_ns(queue.index) != 0;
  {
    base::MutexLock lock(state_.mu);
    if (!served_[queue.index]) return false;
    if (!before || !MayBegin(queue)) Leave(queue, NowNs());
  }
  host::SubmissionThreads& threads = *submission_threads_[queue.index];
  if (launching.left_ns(queue.index) != 0) before ? threads.Wake() : threads.Call();
  return true;
}

// If other users hold the slots, the check finds that out.
bool RunQueues::MayBegin(const RunQueue& queue) const {
  const Stage& stage = table_.stage(queue.stage);
  if (state_.poisoned.halted(queue.stage) || state_.book.waiting(queue.stage) == 0) return false;
  return std::any_of(stage.devices.begin(), stage.devices.end(), [&](int d) {
    state_.mu.AssertHeld();
    return IsOf(d, queue) && (stage.keeps_slots || state_.placement.HasRoom(d));
  });
}

void RunQueues::Leave(RunQueue& queue, int64_t from_ns) {
  state_.launching.Leave(queue.index, MayBegin(queue) ? from_ns : 0);
}

// What it has not begun was better on other devices, or may not begin before other items.
void RunQueues::NoteLooked(RunQueue& queue, const PipelineItem* begun) {
  SharedLaunching& launching = state_.launching;
  if (begun != nullptr) {
    launching.BeginLaunch(queue.index, std::chrono::nanoseconds(begun->begun.time_since_epoch()).count());
  }
  if (begun != nullptr || !served_[queue.index] || !launching.IsSlow(queue.index)) {
    launching.Leave(queue.index, 0);
    return;
  }
  Leave(queue, launching.NextLook(queue.index, NowNs()));
}

RunQueues::Clock::time_point RunQueues::LeftDue() const {
  const int64_t due = state_.launching.FirstDue();
  return due == INT64_MAX ? Clock::time_point::max() : Clock::time_point(std::chrono::nanoseconds(due));
}

bool RunQueues::BeginLeft() {
  if (!state_.launching.AnyLeft()) return false;
  bool any = false;
  for (const auto& queue : queues_) {
    if (!state_.launching.IsDue(queue->index, NowNs())) continue;
    const int64_t left = state_.launching.left_ns(queue->index);
    queue->owner.TryRun([&] {
      any = BeginOneLeft(*queue, left) || any;
      while (EndRuns(*queue) || BeginHere(*queue)) any = true;  // others may have requested another look
    });
  }
  return any;
}

// Begins an item if it has been left since `left_ns`; what waits after it has been left for as long.
bool RunQueues::BeginOneLeft(RunQueue& queue, int64_t left_ns) {
  if (state_.launching.left_ns(queue.index) != left_ns || !BeginRun(queue)) return false;
  base::MutexLock lock(state_.mu);
  if (served_[queue.index] && state_.launching.IsSlow(queue.index)) Leave(queue, left_ns);
  return true;
}

void RunQueues::SetServed(const std::vector<bool>& served) {
  base::MutexLock lock(state_.mu);
  served_ = served;
}

bool RunQueues::MayDismiss() {
  if (!state_.launching.enabled()) return true;
  base::MutexLock lock(state_.mu);
  if (state_.launching.AnyLeft()) return false;
  std::fill(served_.begin(), served_.end(), false);
  return true;
}

// Only a finished run, a rerun request, items that were left, or a slot freed by others can make new work launchable.
template <class Begin>
bool RunQueues::CheckAndBegin(RunQueue& queue, Begin begin) {
  bool moved = false, again = false;
  queue.owner.TryRun([&] {
    const bool left = state_.launching.left_ns(queue.index) != 0;
    const bool may_begin = std::exchange(again, true) || queue.starved || left;
    while (EndRuns(queue) || ((moved || may_begin) && begin())) moved = true;
  });
  if (moved && queues_.size() > 1) Pump();
  return moved;
}

bool RunQueues::Check(RunQueue& queue) {
  return CheckAndBegin(queue, [&] { return BeginHere(queue); });
}

bool RunQueues::CheckAndSubmit(RunQueue& queue) {
  return CheckAndBegin(queue, [&] { return BeginRun(queue); });
}

}  // namespace penstock::runtime
