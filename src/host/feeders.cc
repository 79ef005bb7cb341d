// The feeders' threads: when they look, and when they sleep. See feeders.h.
#include "src/host/feeders.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "src/base/thread.h"

namespace penstock::host {
namespace {

constexpr std::chrono::microseconds kSpinning{50}, kAwakeWithNothing{200}, kAwake{5000};

}  // namespace

Feeders::Feeders(Options options)
    : options_(std::move(options)), places_(static_cast<size_t>(std::max(0, options_.threads))) {
  base::MutexLock lock(join_mu_);
  try {
    for (; count_ < options_.threads; ++count_) {
      joinable_.push_back(base::StartThread(options_.name, [this, t = static_cast<size_t>(count_)] { Work(t); }));
    }
  } catch (const std::system_error&) {
    // Those there are will do.
  }
}

bool Feeders::Add(Fed* fed) {
  if (count_ == 0 || !places_.Add(fed)) return false;
  bell_.Ring();
  return true;
}

void Feeders::Wake() {
  if (asleep_.load(std::memory_order_relaxed) > 0) bell_.Ring();
}

void Feeders::Sleep(size_t feeder, uint64_t ticket) {
  const int of_use = places_.Wants(feeder) ? 1 : 0;
  asleep_.fetch_add(of_use, std::memory_order_relaxed);
  bell_.Wait(ticket, Clock::time_point::max());
  asleep_.fetch_sub(of_use, std::memory_order_relaxed);
}

void Feeders::Stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  bell_.Ring();
  base::MutexLock lock(join_mu_);  // a second caller waits for the first
  for (std::thread& thread : joinable_) thread.join();
  joinable_.clear();
}

void Feeders::Work(size_t feeder) {
  options_.begin();
  Clock::time_point last = Clock::now();
  bool of_use = false;  // since it has slept
  for (;;) {
    const uint64_t ticket = bell_.ticket();
    if (stopping_.load(std::memory_order_seq_cst)) break;
    const bool fed = LookAtAll(feeder);
    const Clock::time_point now = Clock::now();
    if (fed) last = now;
    of_use = of_use || places_.Wants(feeder);
    if (fed || (of_use && Rest(feeder, now - last))) continue;
    Sleep(feeder, ticket);
    last = Clock::now();
    of_use = false;
  }
  options_.end();
}

// Each begins somewhere else, so that they spread over what is to be fed.
bool Feeders::LookAtAll(size_t feeder) {
  if (!places_.Wants(feeder)) return false;
  bool any = false;
  for (size_t i = 0; i < FedPlaces<>::kPlaces; ++i) {
    Fed* const fed = places_.Enter(feeder, (feeder + i) % FedPlaces<>::kPlaces);
    if (fed == nullptr) continue;
    any = fed->Feed() || any;
    places_.Leave(feeder);
  }
  return any;
}

// False: it is time to sleep.
bool Feeders::Rest(size_t feeder, Clock::duration idle) const {
  const bool nothing = !places_.Wants(feeder);
  if (idle < (nothing ? kAwakeWithNothing : kSpinning)) {
    CpuPause();
  } else if (!nothing && idle < kAwake) {
    std::this_thread::yield();
  } else {
    return false;
  }
  return true;
}

}  // namespace penstock::host
