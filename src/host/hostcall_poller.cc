#include "src/host/hostcall_poller.h"

#include <algorithm>
#include <utility>

#include "src/base/catch_all.h"
#include "src/base/counted_time.h"
#include "src/base/thread.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/host/tuning.h"

namespace penstock::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFastest{1}, kSlowest{500};  // between two beats of the watchdog

thread_local bool on_poller = false;

}  // namespace

HostcallPoller::HostcallPoller(Options options)
    : options_(std::move(options)), thread_(base::StartThread("ps-poller", [this] { Loop(); })) {
  try {
    watchdog_ = base::StartThread("ps-watchdog", [this] { Guard(); });
  } catch (...) {
    Stop();
    throw;
  }
}

void HostcallPoller::Watch(Source* watched) {
  base::MutexLock lock(mu_);
  watched_.push_back(watched);
  if (watched_.size() == 1) changed_.NotifyOne();
}

void HostcallPoller::Forget(Source* watched) {
  base::MutexLock lock(mu_);
  std::erase(watched_, watched);
  while (looking_at_ == watched) looked_.Wait(mu_);
}

void HostcallPoller::Stop() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyOne();
    guard_.NotifyOne();
  }
  base::MutexLock lock(join_mu_);
  if (thread_.joinable()) thread_.join();
  if (watchdog_.joinable()) watchdog_.join();
}

bool HostcallPoller::IsCurrent() { return on_poller; }

void HostcallPoller::Loop() {
  on_poller = base::answers_devices = true;
  Clock::time_point last = Clock::now();
  while (true) {
    {
      base::MutexLock lock(mu_);
      const bool slept = watched_.empty();
      while (watched_.empty() && !stopping_) changed_.Wait(mu_);
      if (stopping_) return;
      if (slept) last = Clock::now();
      if (guard_sleeps_) guard_.NotifyOne();  // here, so that a launch wakes one thread and not two
    }
    const bool asked = LookAtAll();
    const Clock::time_point now = Clock::now();
    if (asked) last = now;
    Rest(now - last);
  }
}

// Sources added or removed meanwhile may cause another to be looked at twice, or only in the next round.
bool HostcallPoller::LookAtAll() {
  bool asked = false;
  for (size_t i = 0; Source* const watched = Take(i); ++i) {
    base::WhenThreadEnds go_on([this] {
      Put();
      base::GoOnElsewhere([this] { Loop(); });
    });
    asked = watched->Look() || asked;
    go_on.Cancel();
    Put();
  }
  return asked;
}

HostcallPoller::Source* HostcallPoller::Take(size_t index) {
  base::MutexLock lock(mu_);
  return looking_at_ = index < watched_.size() ? watched_[index] : nullptr;
}

void HostcallPoller::Put() {
  base::MutexLock lock(mu_);
  ++looks_;
  looking_at_ = nullptr;
  looked_.NotifyAll();
}

void HostcallPoller::Guard() {
  const std::chrono::nanoseconds pace =
      std::clamp<std::chrono::nanoseconds>(options_.patience / 16, kFastest, kSlowest);
  base::MutexLock lock(mu_);
  base::CountedTime time(options_.now());
  while (!stopping_) {
    if (watched_.empty()) {
      guard_sleeps_ = true;
      while (watched_.empty() && !stopping_) guard_.Wait(mu_);
      guard_sleeps_ = false;
      time.Look(options_.now());
      continue;
    }
    const Clock::time_point until = Clock::now() + pace;
    while (!stopping_ && guard_.WaitUntil(mu_, until)) continue;
    BeatAll(time.Look(options_.now()));
  }
}

void HostcallPoller::BeatAll(std::chrono::nanoseconds counted) {
  for (Source* const watched : watched_) watched->Beat({looks_, counted, looking_at_});
}

void HostcallPoller::Rest(std::chrono::nanoseconds idle) {
  if (idle < kPollerSpin) {
    CpuPause();
  } else if (idle < kPollerYield) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kPollerNap);
  }
}

}  // namespace penstock::host
