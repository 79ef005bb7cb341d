// ModeTrial: finds, on the first runs of an executable, the mode in which its runs are faster.
//
// Runs alternate between the modes in blocks. The first runs of each block, two for each slot, are not counted: they
// set what earlier runs had not, and overlap with runs of the other mode. The mode whose counted runs have the smaller
// median, from launch to the end of their work, is used from then on. This compares fairly both runs that overlap with
// runs of their mode and runs that do not overlap, since the application's pauses between runs are not measured.
//
// Threads: thread-safe. Once the mode is decided, Next is one load.
// Locks:   mu_ is a leaf.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/mode.h"
#include "src/base/mutex.h"

namespace penstock::runtime {

class ModeTrial {
 public:
  static constexpr int kCounted = 5;  // runs of a block
  static constexpr int kBlocks = 4;
  static constexpr int kMostBlocks = 16;  // if runs fail

  explicit ModeTrial(int slots) : block_(2 * slots + kCounted) {}

  struct Turn {
    Mode mode;
    int64_t number;  // of the run, for Ended; -1: it is not counted
  };
  // The turn of the next run.
  Turn Next();
  bool decided() const { return decided_.load(std::memory_order_acquire) != Mode::kAuto; }
  // The run has succeeded; a failed run is not reported.
  void Ended(int64_t number, double us);

  // Graphs can no longer be used.
  void Refuse(std::string why);

  // The medians and numbers of the runs counted so far, in microseconds; 0 if there are none.
  struct Result {
    Mode mode = Mode::kAuto;  // kAuto: not decided
    double stream_us = 0, graph_us = 0;
    int64_t stream_runs = 0, graph_runs = 0;
    std::string refused;  // why, if graphs were refused
  };
  Result result() const;

 private:
  static size_t ModeOf(int64_t block) { return static_cast<size_t>(block % 2); }  // 0: streams, 1: graphs
  double MedianOf(size_t mode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t block_;  // runs in a block
  std::atomic<Mode> decided_{Mode::kAuto};  // the mode that is kept; set with mu_ held

  mutable base::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<std::vector<double>, 2> us_ ABSL_GUARDED_BY(mu_);
  std::string refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
