// Who launches where that takes long: with several feeds, the submission threads of each one's device, so that each is
// launched to by a thread of its own, all at once.
//
// Whoever pushes a pipeline on launches what can begin, itself: nothing is faster where a launch takes a few
// microseconds, and handing over to another thread costs about as much. Where launches take longer than kDear one
// thread could not feed several devices. So each owner measures its feed's launches, and where those are dear an owner
// that is none of the feed's submission threads *leaves* what waits to them, and goes on with what else it has to do:
// fills places, sees runs end, takes items out. They begin it at once; where others than this device are better for it
// they look again a little later.
//
// Nobody may rely on submission threads to come. What has been left for kTooLong is launched by who waits in a call of
// the pipeline and has nothing else to do, or by the completion thread, one item a time until a submission thread
// comes. (So who pulls items has filled all places before it goes into a launch, and the other devices' submission
// threads have something to do meanwhile.)
//
// Threads: NoteLaunch, NoteLooked, LeaveToSubmissionThreads, BeginOneLeft: the feed's owner. NoteFed, MayDismiss: the
// completion
//          thread. The rest: any.
#include <algorithm>
#include <chrono>

#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {
namespace {

constexpr std::chrono::nanoseconds kDear = std::chrono::microseconds(20);
constexpr std::chrono::microseconds kTooLong{200};  // to wake a submission thread takes 50 us
// How soon a submission thread looks again at items that others were better for, as a part of a launch, and within
// these.
constexpr int kLooksALaunch = 16;
constexpr std::chrono::nanoseconds kSoonest = std::chrono::microseconds(10), kLatest = std::chrono::microseconds(100);

int64_t NowNs() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

// One launch may have taken long for other reasons, so short ones count more.
void PipelineCore::NoteLaunch(Feed& feed, int64_t took_ns) {
  const int64_t before = feed.launch_ns.load(std::memory_order_relaxed);
  int64_t mean = took_ns;
  if (before > 0) mean = before + (took_ns - before) / (took_ns < before ? 2 : 8);
  feed.launch_ns.store(std::max<int64_t>(mean, 1), std::memory_order_relaxed);
  feed.launching_ns.store(0, std::memory_order_relaxed);
  const bool dear = mean > kDear.count(), was_dear = before > kDear.count();
  if (dear != was_dear) dear_.fetch_add(dear ? 1 : -1, std::memory_order_relaxed);
}

// One that has launched nothing yet is as others are.
bool PipelineCore::IsSlowToLaunch(const Feed& feed) const {
  const int64_t mean = feed.launch_ns.load(std::memory_order_relaxed);
  return mean > kDear.count() || (mean == 0 && dear_.load(std::memory_order_relaxed) > 0);
}

// What has taken longer than usual will as a rule go on for as long again. (So nobody waits for one that hangs.)
int64_t PipelineCore::UntilLaunched(const Feed& feed) {
  const int64_t since = feed.launching_ns.load(std::memory_order_relaxed);
  return since == 0 ? 0 : std::max(feed.launch_ns.load(std::memory_order_relaxed), NowNs() - since);
}

// One whose slots others have is looked at by all, as nobody is told when those come free.
bool PipelineCore::LeaveToSubmissionThreads(Feed& feed) {
  if (feed.starved || !IsSlowToLaunch(feed)) return false;
  const bool before = feed.left_ns.load(std::memory_order_relaxed) != 0;
  {
    base::MutexLock lock(mu_);
    if (!feed.fed) return false;
    if (!before || !MayBegin(feed)) NoteLeft(feed, NowNs());
  }
  const bool left = feed.left_ns.load(std::memory_order_relaxed) != 0;
  if (left) before ? feed.help.submission_threads->Wake() : feed.help.submission_threads->Call();
  return true;
}

// Where others have the slots the look finds it out.
bool PipelineCore::MayBegin(const Feed& feed) const {
  const Stage& stage = stages_[static_cast<size_t>(feed.stage)];
  if (stage.halted || book_->waiting(feed.stage) == 0) return false;
  return std::any_of(stage.stations.begin(), stage.stations.end(), [&](int s) {
    mu_.AssertHeld();
    const Station& station = *stations_[static_cast<size_t>(s)];
    if (feeds_[static_cast<size_t>(station.feed)].get() != &feed) return false;
    return stage.keeps_slots || station.load.taken < station.load.slots;
  });
}

void PipelineCore::NoteLeft(Feed& feed, int64_t from_ns) {
  feed.left_ns.store(MayBegin(feed) ? from_ns : 0, std::memory_order_relaxed);
}

// What it has not begun others were better for, or it may not begin before others.
void PipelineCore::NoteLooked(Feed& feed, const PipelineItem* begun) {
  if (begun != nullptr) {
    const int64_t now = std::chrono::nanoseconds(begun->begun.time_since_epoch()).count();
    feed.launching_ns.store(now, std::memory_order_relaxed);
  }
  if (begun != nullptr || !feed.fed || !IsSlowToLaunch(feed)) {
    if (feed.left_ns.load(std::memory_order_relaxed) != 0) feed.left_ns.store(0, std::memory_order_relaxed);
    return;
  }
  const int64_t part = feed.launch_ns.load(std::memory_order_relaxed) / kLooksALaunch;
  NoteLeft(feed, NowNs() + std::clamp(part, kSoonest.count(), kLatest.count()));
}

bool PipelineCore::AnyLeft() const {
  return shares_launches_ && std::any_of(feeds_.begin(), feeds_.end(), [](const auto& feed) {
           return feed->left_ns.load(std::memory_order_relaxed) != 0;
         });
}

PipelineCore::Clock::time_point PipelineCore::FirstLeftDue() const {
  Clock::time_point due = Clock::time_point::max();
  for (const auto& feed : feeds_) {
    const int64_t left = feed->left_ns.load(std::memory_order_relaxed);
    if (left != 0) due = std::min(due, Clock::time_point(std::chrono::nanoseconds(left)) + kTooLong);
  }
  return due;
}

// True: it has begun some.
bool PipelineCore::BeginLeft() {
  if (!AnyLeft()) return false;
  bool any = false;
  for (const auto& feed : feeds_) {
    const int64_t left = feed->left_ns.load(std::memory_order_relaxed);
    if (left == 0 || NowNs() < left + std::chrono::nanoseconds(kTooLong).count()) continue;
    feed->notes.TryRun([&] {
      any = BeginOneLeft(*feed, left) || any;
      while (EndRuns(*feed) || BeginHere(*feed)) any = true;  // others may have left a note
    });
  }
  return any;
}

// What waits behind it has been left for as long.
bool PipelineCore::BeginOneLeft(Feed& feed, int64_t left_ns) {
  if (feed.left_ns.load(std::memory_order_relaxed) != left_ns || !BeginRun(feed)) return false;
  base::MutexLock lock(mu_);
  if (feed.fed && IsSlowToLaunch(feed)) NoteLeft(feed, left_ns);
  return true;
}

void PipelineCore::NoteFed() {
  base::MutexLock lock(mu_);
  for (const auto& feed : feeds_) feed->fed = feed->help.added;
}

// Unless something has been left to them until now; what comes behind is not.
bool PipelineCore::MayDismiss() {
  if (!shares_launches_) return true;
  base::MutexLock lock(mu_);
  if (AnyLeft()) return false;
  for (const auto& feed : feeds_) feed->fed = false;
  return true;
}

}  // namespace penstock::runtime
