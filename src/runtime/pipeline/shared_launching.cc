#include "src/runtime/pipeline/shared_launching.h"

#include <algorithm>

namespace penstock::runtime {

// One launch may have been slow for other reasons, so shorter durations weigh more.
void SharedLaunching::NoteLaunch(size_t queue, int64_t took_ns) {
  Queue& of = At(queue);
  const int64_t before = of.launch_ns.load(std::memory_order_relaxed);
  int64_t mean = took_ns;
  if (before > 0) mean = before + (took_ns - before) / (took_ns < before ? 2 : 8);
  of.launch_ns.store(std::max<int64_t>(mean, 1), std::memory_order_relaxed);
  of.launching_ns.store(0, std::memory_order_relaxed);
  const bool is_slow = mean > tuning::kSlow.count(), was_slow = before > tuning::kSlow.count();
  if (is_slow != was_slow) slow_.fetch_add(is_slow ? 1 : -1, std::memory_order_relaxed);
}

bool SharedLaunching::IsSlow(size_t queue) const {
  const int64_t mean = At(queue).launch_ns.load(std::memory_order_relaxed);
  return mean > tuning::kSlow.count() || (mean == 0 && AnySlow());
}

int64_t SharedLaunching::UntilLaunched(size_t queue, int64_t now_ns) const {
  const int64_t since = At(queue).launching_ns.load(std::memory_order_relaxed);
  return since == 0 ? 0 : std::max(At(queue).launch_ns.load(std::memory_order_relaxed), now_ns - since);
}

bool SharedLaunching::AnyLeft() const {
  return enabled_ && std::any_of(queues_.begin(), queues_.end(),
                                 [](const Queue& queue) { return queue.left_ns.load(std::memory_order_relaxed) != 0; });
}

int64_t SharedLaunching::NextLook(size_t queue, int64_t now_ns) const {
  const int64_t part = At(queue).launch_ns.load(std::memory_order_relaxed) / tuning::kLooksALaunch;
  return now_ns + std::clamp(part, tuning::kSoonest.count(), tuning::kLatest.count());
}

int64_t SharedLaunching::FirstDue() const {
  int64_t due = INT64_MAX;
  for (size_t q = 0; enabled_ && q < queues_.size(); ++q) {
    if (left_ns(q) != 0) due = std::min(due, left_ns(q) + tuning::kTooLong.count());
  }
  return due;
}

}  // namespace penstock::runtime
