// RunPace: the time that each run of an executable adds, whether its runs overlap or not: from its launch, or from the
// end of the run before it if that came later, until its own end. So the runs in front of a launch, times the mean, is
// the time until its turn, however many slots there are.
//
// Threads: thread-safe. Of two simultaneous ends one may count as longer or shorter than it was.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::runtime {

class RunPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int64_t kColdRuns = 8;  // the mean is unknown until so many runs have been counted

  // The first run is left out, since it sets up much for the first time. A run that failed, or was abandoned, may have
  // skipped some of its work, so it counts only if it took longer than the mean.
  void End(Time launched, Time ended, bool failed) {
    const Time before(std::chrono::nanoseconds(last_end_ns_.exchange(NsOf(ended), std::memory_order_relaxed)));
    const auto took = static_cast<double>(std::max<int64_t>(0, NsOf(ended) - NsOf(std::max(launched, before))));
    const double mean = mean_ns_.load(std::memory_order_relaxed);
    if (failed && took <= mean) return;
    const int64_t counted = ended_.fetch_add(1, std::memory_order_relaxed);
    if (counted == 0) return;
    const auto weight = static_cast<double>(std::min(counted, kColdRuns));
    mean_ns_.store(mean + (took - mean) / weight, std::memory_order_relaxed);
  }

  // In nanoseconds; recent runs weigh most. 0 if unknown.
  double mean_ns() const {
    return ended_.load(std::memory_order_relaxed) > kColdRuns ? mean_ns_.load(std::memory_order_relaxed) : 0;
  }

 private:
  static int64_t NsOf(Time at) { return std::chrono::nanoseconds(at.time_since_epoch()).count(); }

  std::atomic<int64_t> last_end_ns_{INT64_MIN};  // when a run last ended
  std::atomic<int64_t> ended_{0};  // runs that counted, and the first
  std::atomic<double> mean_ns_{0};  // of the runs that counted; recent ones weigh most
};

}  // namespace penstock::runtime
