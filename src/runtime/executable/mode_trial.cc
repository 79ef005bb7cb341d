#include "src/runtime/executable/mode_trial.h"

#include <algorithm>
#include <utility>

namespace penstock::runtime {

ModeTrial::Turn ModeTrial::Next() {
  if (const Mode decided = decided_.load(std::memory_order_acquire); decided != Mode::kAuto) return {decided, -1};
  base::MutexLock lock(mu_);
  if (const Mode decided = decided_.load(std::memory_order_relaxed); decided != Mode::kAuto) return {decided, -1};
  const int64_t number = next_++, block = number / block_;
  const bool enough = us_[0].size() >= kCounted && us_[1].size() >= kCounted;
  if ((block < kBlocks || !enough) && block < kMostBlocks) {
    return {ModeOf(block) == 0 ? Mode::kStream : Mode::kGraph, number % block_ < block_ - kCounted ? -1 : number};
  }
  // Graphs are not chosen if no run has succeeded with them.
  const bool graphs = !us_[1].empty() && (us_[0].empty() || MedianOf(1) < MedianOf(0));
  decided_.store(graphs ? Mode::kGraph : Mode::kStream, std::memory_order_release);
  return {graphs ? Mode::kGraph : Mode::kStream, -1};
}

void ModeTrial::Ended(int64_t number, double us) {
  base::MutexLock lock(mu_);
  if (number >= 0 && decided_.load(std::memory_order_relaxed) == Mode::kAuto)
    us_[ModeOf(number / block_)].push_back(us);
}

void ModeTrial::Refuse(std::string why) {
  base::MutexLock lock(mu_);
  if (refused_.empty()) refused_ = std::move(why);
  decided_.store(Mode::kStream, std::memory_order_release);
}

ModeTrial::Result ModeTrial::result() const {
  base::MutexLock lock(mu_);
  return {.mode = decided_.load(std::memory_order_relaxed),
          .stream_us = MedianOf(0),
          .graph_us = MedianOf(1),
          .stream_runs = static_cast<int64_t>(us_[0].size()),
          .graph_runs = static_cast<int64_t>(us_[1].size()),
          .refused = refused_};
}

double ModeTrial::MedianOf(size_t mode) const {
  std::vector<double> sorted = us_[mode];
  if (sorted.empty()) return 0;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace penstock::runtime
