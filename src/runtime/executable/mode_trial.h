// ModeTrial: which of two modes the runs of an executable are faster in, found out on its first runs.
//
// Runs alternate between the modes in blocks. Of each block the first runs, two a slot, are not counted: they set what
// the runs before had not, and overlap with runs of the other mode. The mode whose counted runs have the smaller
// median, from launch to the end of their work, is used from then on. Runs that overlap with their like are compared
// fairly, and so are runs that stand alone: how long the application waits between two is in neither.
//
// Threads: thread-safe. Once it is decided, Next is one load.
// Locks:   mu_, a leaf.
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
  static constexpr int kMostBlocks = 16;  // where runs fail

  explicit ModeTrial(int slots) : block_(2 * slots + kCounted) {}

  struct Turn {
    Mode mode;
    int64_t number;  // of the run, for Ended; -1: it is not counted
  };
  // Of the next run.
  Turn Next();
  bool decided() const { return decided_.load(std::memory_order_acquire) != Mode::kAuto; }
  // The run has succeeded; one that has not is not told.
  void Ended(int64_t number, double us);

  // Graphs cannot be used any more.
  void Refuse(std::string why);

  // Of runs counted so far, in microseconds; 0 where there are none.
  struct Result {
    Mode mode = Mode::kAuto;  // kAuto: not decided
    double stream_us = 0, graph_us = 0;
    int64_t stream_runs = 0, graph_runs = 0;
    std::string refused;  // why, where graphs were
  };
  Result result() const;

 private:
  static size_t ModeOf(int64_t block) { return static_cast<size_t>(block % 2); }  // 0: streams, 1: graphs
  double MedianOf(size_t mode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t block_;  // runs
  std::atomic<Mode> decided_{Mode::kAuto};  // the mode that is kept; set with mu_ held

  mutable base::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<std::vector<double>, 2> us_ ABSL_GUARDED_BY(mu_);
  std::string refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
