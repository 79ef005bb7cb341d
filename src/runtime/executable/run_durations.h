// RunDurations: how long recent runs of an executable took, from launch until their end was seen.
//
// Threads: Measure is called before the first launch; a run's owner calls Begin and End, any thread mean_ns. Of two
//          simultaneous ends one may be lost: the mean only weighs devices against each other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::runtime {

class RunDurations {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void Measure() { measures_ = true; }
  void Begin(Time& launched) const {
    if (measures_) launched = std::chrono::steady_clock::now();
  }
  // The first run is left out, since it sets up much for the first time.
  void End(Time launched, bool failed) {
    if (!measures_ || failed) return;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - launched;
    const int64_t before = runs_.fetch_add(1, std::memory_order_relaxed);
    if (before == 0) return;
    const double mean = mean_ns();
    mean_ns_.store(before == 1 ? took.count() : mean + (took.count() - mean) / 8, std::memory_order_relaxed);
  }
  // Exponentially weighted; 0 if unknown.
  double mean_ns() const { return mean_ns_.load(std::memory_order_relaxed); }

 private:
  bool measures_ = false;
  std::atomic<int64_t> runs_{0};  // runs that were measured
  std::atomic<double> mean_ns_{0};  // weights recent runs most
};

}  // namespace penstock::runtime
