// RunMeter: when the runs of a runtime ended, for Measurement: few of the times, evenly spread.
//
// Ownership: belongs to the runtime's core.
// Threads:   thread-safe; Start is called before any other call.
// Locks:     mu_, a leaf.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/mutex.h"

namespace penstock::observe {

class RunMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // What Measurement says of runs.
  struct Pace {
    int64_t runs = 0;
    double run_us = 0;
  };

  // `path`: where a file says how it went; empty: nowhere.
  void Start(Time now, const std::string& path);
  bool on() const { return on_; }  // otherwise nothing is counted
  void RunEnded(Time at);
  void ItemEnded(Time at);  // of a pipeline
  Pace pace() const;
  // The path of the file to be written, once; empty: there is none.
  std::string TakePath();

 private:
  // Every stride-th end of a run is kept; when there are so many, every other one of them.
  static constexpr size_t kMostEnds = 4096;

  // Constant after Start.
  bool on_ = false;
  Time began_;

  mutable base::Mutex mu_;
  std::vector<Time> ends_ ABSL_GUARDED_BY(mu_);  // of runs stride_, 2 * stride_ and so on
  int64_t stride_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t runs_ ABSL_GUARDED_BY(mu_) = 0;
  std::string path_ ABSL_GUARDED_BY(mu_);
  Time last_ ABSL_GUARDED_BY(mu_);  // the last end of a run or an item
};

}  // namespace penstock::observe
