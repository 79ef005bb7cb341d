// When submission threads look, and when they sleep. See submission_threads.h.
#include "src/host/submission_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "src/base/thread.h"

namespace penstock::host {

SubmissionThreads::SubmissionThreads(Options options)
    : options_(std::move(options)), places_(std::max(0, options_.threads)) {
  base::MutexLock lock(join_mu_);
  try {
    for (; count_ < options_.threads; ++count_) {
      joinable_.push_back(base::StartThread(options_.name, [this, t = count_] { Work(t); }));
    }
  } catch (const std::system_error&) {
    // The threads that exist must do.
  }
}

bool SubmissionThreads::Add(SubmissionClient* fed) {
  if (count_ == 0 || !places_.Add(fed)) return false;
  event_count_.Notify();
  return true;
}

void SubmissionThreads::Wake() {
  if (asleep_.load(std::memory_order_relaxed) > 0) event_count_.Notify();
}

void SubmissionThreads::Sleep(SubmitterId submitter, uint64_t ticket) {
  const int of_use = places_.Wants(submitter) ? 1 : 0;
  asleep_.fetch_add(of_use, std::memory_order_relaxed);
  event_count_.Wait(ticket, Clock::time_point::max());
  asleep_.fetch_sub(of_use, std::memory_order_relaxed);
}

void SubmissionThreads::Stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  event_count_.Notify();
  base::MutexLock lock(join_mu_);  // a second caller waits for the first
  for (std::thread& thread : joinable_) thread.join();
  joinable_.clear();
}

void SubmissionThreads::Work(SubmitterId submitter) {
  options_.begin();
  Clock::time_point last = Clock::now();
  bool of_use = false;  // since it last slept
  for (;;) {
    const uint64_t ticket = event_count_.ticket();
    if (stopping_.load(std::memory_order_seq_cst)) break;
    const bool fed = LookAtAll(submitter);
    const Clock::time_point now = Clock::now();
    if (fed) last = now;
    of_use = of_use || places_.Wants(submitter);
    if (fed || (of_use && Rest(submitter, now - last))) continue;
    Sleep(submitter, ticket);
    last = Clock::now();
    of_use = false;
  }
  options_.end();
}

// Each thread begins at another client, so that they spread over all clients.
bool SubmissionThreads::LookAtAll(SubmitterId submitter) {
  if (!places_.Wants(submitter)) return false;
  bool any = false;
  for (int i = 0; i < ClientSlots<>::kPlaces; ++i) {
    SubmissionClient* const fed = places_.Enter(submitter, (submitter + i) % ClientSlots<>::kPlaces);
    if (fed == nullptr) continue;
    any = fed->Feed() || any;
    places_.Leave(submitter);
  }
  return any;
}

// Returns false when it is time to sleep.
bool SubmissionThreads::Rest(SubmitterId submitter, Clock::duration idle) const {
  const bool nothing = !places_.Wants(submitter);
  if (idle < (nothing ? kSubmitterAwakeWithNothing : kSubmitterSpin)) {
    CpuPause();
  } else if (!nothing && idle < kSubmitterAwake) {
    std::this_thread::yield();
  } else {
    return false;
  }
  return true;
}

}  // namespace penstock::host
