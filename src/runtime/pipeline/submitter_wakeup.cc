// How the submission threads of a feed's device help a pipeline, while it has runs in flight.
//
// They look whether a run has ended, and go on with what can begin then; all else (items that come in, host stages that
// have ended one) has somebody who pumps. A submission thread takes a feed over when nothing has moved in it for 30 us
// though runs are in flight, and keeps to it until others move something. For a stream of tiny items, which its callers
// push on themselves, each look of another thread at what they write costs them: so submission threads look when a feed
// may have come to a stop, then once in 5 us, and where as many threads wait in calls of the pipeline as it has feeds
// not at all. (With submission threads that looked all the time an item of an empty graph took 7.2 us in place of 5.0.)
//
// A thread that polls looks oftener and has no other rules.
//
// Threads: FindSubmissionThreads: who makes the pipeline. CallSubmissionThreads: the completion thread.
// DismissSubmissionThreads: whoever takes its
//          last count, which is never a submission thread. PollAsSubmitter, Look: any.
#include <algorithm>
#include <chrono>
#include <utility>

#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {
namespace {

constexpr std::chrono::milliseconds kCalledFor{5};  // when nothing is in flight any more
constexpr std::chrono::microseconds kLookEvery{5}, kStaleForSubmissionThreads{30};
constexpr std::chrono::milliseconds kStaleForOthers{1};  // what another submission thread keeps to
constexpr std::chrono::milliseconds kMovesOften{1};  // then submission threads that sleep are woken
constexpr std::chrono::microseconds kPollEvery{1}, kStaleForPolls{20};
constexpr std::chrono::milliseconds kAdvanceEvery{1};  // by a thread that polls: what has a deadline, and the like

// Of the calling thread.
const void* CurrentThreadId() {
  static thread_local const char me = 0;
  return &me;
}

int64_t Ns(std::chrono::steady_clock::time_point at) { return std::chrono::nanoseconds(at.time_since_epoch()).count(); }

}  // namespace

// A feed with executables on several devices has those of the first.
void PipelineCore::FindSubmissionThreads() {
  for (const auto& feed : feeds_) {
    const Stage& stage = stages_[static_cast<size_t>(feed->stage)];
    for (const int s : stage.stations) {
      const Station& station = *stations_[static_cast<size_t>(s)];
      if (feeds_[static_cast<size_t>(station.feed)] != feed) continue;
      feed->help.submission_threads = runtime_->submission().Of(station.device);
      break;
    }
  }
  const auto has_submission_threads = [](const auto& feed) { return feed->help.submission_threads != nullptr; };
  shares_launches_ = std::count_if(feeds_.begin(), feeds_.end(), has_submission_threads) > 1;
}

// Where there is no room for one more it goes on as without submission threads, and is tried again.
void PipelineCore::CallSubmissionThreads() {
  const Clock::time_point now = Clock::now();
  const bool busy = Busy() || AnyLeft();
  if (busy) helped_ = now;
  const bool over = now > helped_ + kCalledFor;
  if (!busy && (!over || !MayDismiss())) return;
  bool more = false;
  for (const auto& feed : feeds_) {
    Help& help = feed->help;
    if (help.submission_threads == nullptr) continue;
    if (help.added == busy) {
      const bool left = feed->left_ns.load(std::memory_order_relaxed) != 0;
      const bool theirs = busy && waiting_.load() < static_cast<int>(feeds_.size());
      if (left || (theirs && now < StaleAt(*feed, kMovesOften))) help.submission_threads->Wake();
    } else if (busy) {
      feed->submitter.store(nullptr, std::memory_order_relaxed);
      help.added = help.submission_threads->Add(&help);
      more = more || help.added;
    } else {
      help.submission_threads->Withdraw(&help);
      help.added = false;
    }
  }
  if (more && shares_launches_) NoteFed();
}

void PipelineCore::DismissSubmissionThreads() {
  for (const auto& feed : feeds_) {
    if (feed->help.submission_threads != nullptr) feed->help.submission_threads->Remove(&feed->help);
  }
}

void PipelineCore::NoteMove(Feed& feed, Clock::time_point now) {
  feed.moved_ns.store(Ns(now), std::memory_order_relaxed);
  const void* const submitter = feed.submitter.load(std::memory_order_relaxed);
  if (submitter != nullptr && submitter != CurrentThreadId()) feed.submitter.store(nullptr, std::memory_order_relaxed);
}

PipelineCore::Clock::time_point PipelineCore::StaleAt(const Feed& feed, std::chrono::nanoseconds after) {
  return Clock::time_point(std::chrono::nanoseconds(feed.moved_ns.load(std::memory_order_relaxed)) + after);
}

bool PipelineCore::PollAsSubmitter(Feed& feed) {
  const int64_t left = feed.left_ns.load(std::memory_order_relaxed);
  const bool has_items = left != 0 && Ns(Clock::now()) >= left;
  const void* const submitter = feed.submitter.load(std::memory_order_relaxed);
  if (!has_items && submitter != CurrentThreadId()) {
    const Clock::time_point now = Clock::now();
    if (Ns(now) < feed.next_look_ns.load(std::memory_order_relaxed)) return false;
    const Clock::time_point stale_at =
        StaleAt(feed, submitter == nullptr ? std::chrono::nanoseconds(kStaleForSubmissionThreads) : kStaleForOthers);
    feed.next_look_ns.store(Ns(std::max(now + kLookEvery, stale_at)), std::memory_order_relaxed);
    if (now < stale_at) return false;
  }
  if (!has_items && (!Busy() || waiting_.load() >= static_cast<int>(feeds_.size()))) return false;
  const bool moved = Look(feed, /*as_submitter=*/true);
  if (moved) feed.submitter.store(CurrentThreadId(), std::memory_order_relaxed);
  return moved;
}

void PipelineCore::Poll() {
  const Clock::time_point now = Clock::now();
  if (now < next_poll_) return;
  // Who waits moves it on, and every look at the count of them costs them.
  const bool waited_for = waiting_.load(std::memory_order_relaxed) > 0;
  next_poll_ = now + (waited_for ? kStaleForPolls : kPollEvery);
  if (now >= next_advance_) {
    next_advance_ = now + kAdvanceEvery;
    return Advance();
  }
  if (waited_for || !Busy()) return;
  for (const auto& feed : feeds_) {
    if (now >= StaleAt(*feed, kStaleForPolls)) Look(*feed, /*as_submitter=*/false);
  }
}

// Nothing can begin that could not before, but behind an end, where others have left a note or items, or where other
// users of the executable had all its slots.
bool PipelineCore::Look(Feed& feed, bool as_submitter) {
  bool moved = false, again = false;
  feed.notes.TryRun([&] {
    const bool left = feed.left_ns.load(std::memory_order_relaxed) != 0;
    const bool news = std::exchange(again, true) || feed.starved || left;
    const auto begin = [&] { return as_submitter ? BeginRun(feed) : BeginHere(feed); };
    while (EndRuns(feed) || ((moved || news) && begin())) moved = true;
  });
  if (moved && feeds_.size() > 1) Pump();
  return moved;
}

}  // namespace penstock::runtime
