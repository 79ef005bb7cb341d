// ModeTrial: finds, on the first runs of an executable, the mode in which its runs are faster.
//
// Runs begin in the likely mode (mode_cost.h) and then alternate between the modes in blocks. The first runs of each
// block, two for each slot, are not counted: they set what earlier runs had not, and overlap with runs of the other
// mode. The mode whose counted runs have the smaller median, from launch to the end of their work, is used from then
// on. This compares fairly both runs that overlap with runs of their mode and runs that do not overlap, since the
// application's pauses between runs are not measured.
//
// Whatever else holds the machine up for a moment holds up all runs in flight, and so may make a whole block slow.
// Nothing makes a block fast. Therefore the smaller median of a mode's blocks counts, and the other mode is only taken
// after two blocks of each.
//
// The trial costs little where the modes differ much. It ends in favour of one mode as soon as two runs in a row of the
// other one are far slower, or its runs have taken kMostLossUs more in all; and in favour of the likely mode after a
// block of each mode if that is clearly faster.
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
  static constexpr double kClear = 1.25;  // the likely mode is kept after two blocks if it is faster by this factor
  // A run is far slower if it takes so many medians of the other mode. The first runs of a block, one for each slot,
  // may have waited for runs of the other mode.
  static constexpr double kFarSlower = 2, kFarSlowerAtFirst = 4;
  static constexpr double kMostLossUs = 20000;

  ModeTrial(Mode likely, int slots) : likely_(likely), slots_(slots), block_(2 * slots + kCounted) {}

  struct Turn {
    Mode mode;
    int64_t number;  // of the run, for Ended; -1: the mode is decided
  };
  // The turn of the next run.
  Turn Next();
  bool decided() const { return decided_.load(std::memory_order_acquire) != Mode::kAuto; }
  // The run has succeeded; a failed run is not reported.
  void Ended(int64_t number, double us);

  // Ends the trial with what is known by now: the mode with the smaller median, or else the likely one. Returns the
  // mode that is kept.
  Mode Decide();
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
  enum Way : size_t { kLikely = 0, kOther = 1 };
  static Way WayOf(int64_t block) { return block % 2 == 0 ? kLikely : kOther; }
  Mode ModeOf(Way way) const;
  bool IsCounted(int64_t number) const { return number % block_ >= block_ - kCounted; }
  static Way Opposite(Way way) { return way == kLikely ? kOther : kLikely; }
  bool IsEnough(int64_t block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsHopeless(int64_t number, double us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Mode Best() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  double MedianOf(Way way) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);  // the smallest of its blocks' medians
  int64_t CountedOf(Way way) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Mode likely_;
  const int64_t slots_;
  const int64_t block_;  // runs in a block
  std::atomic<Mode> decided_{Mode::kAuto};  // the mode that is kept; set with mu_ held

  mutable base::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<std::vector<double>, kMostBlocks> us_ ABSL_GUARDED_BY(mu_);  // counted runs of each block
  struct Loss {
    double us = 0;  // what its runs took more than the other way's median
    int slow = 0;  // runs in a row that were far slower
  };
  std::array<Loss, 2> losses_ ABSL_GUARDED_BY(mu_);  // of each way
  std::string refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
