#include "src/runtime/executable/mode_trial.h"

#include <algorithm>
#include <utility>

namespace penstock::runtime {

ModeTrial::Turn ModeTrial::Next() {
  if (const Mode decided = decided_.load(std::memory_order_acquire); decided != Mode::kAuto) return {decided, -1};
  base::MutexLock lock(mu_);
  if (const Mode decided = decided_.load(std::memory_order_relaxed); decided != Mode::kAuto) return {decided, -1};
  if (IsEnough(next_ / block_)) {
    const Mode best = Best();
    decided_.store(best, std::memory_order_release);
    return {best, -1};
  }
  const int64_t number = next_++;
  return {ModeOf(WayOf(number / block_)), number};
}

// Whether the trial ends before this block.
bool ModeTrial::IsEnough(int64_t block) const {
  if (block >= kMostBlocks) return true;
  if (block < 2 || us_[kLikely].size() < kCounted || us_[kOther].size() < kCounted) return false;
  const double likely = MedianOf(kLikely), other = MedianOf(kOther);
  return block >= kBlocks || std::max(likely, other) >= kClear * std::min(likely, other);
}

void ModeTrial::Ended(int64_t number, double us) {
  base::MutexLock lock(mu_);
  if (number < 0 || decided_.load(std::memory_order_relaxed) != Mode::kAuto) return;
  const Way way = WayOf(number / block_);
  if (IsCounted(number)) us_[way].push_back(us);
  if (way == kOther && IsHopeless(number, us)) decided_.store(likely_, std::memory_order_release);
}

// Whether this run of the other mode shows that more of them would only cost time.
bool ModeTrial::IsHopeless(int64_t number, double us) {
  if (us_[kLikely].empty()) return false;
  const double likely = MedianOf(kLikely);
  loss_us_ += us - likely;
  const double far = number % block_ < slots_ ? kFarSlowerAtFirst : kFarSlower;
  slow_ = us > far * likely ? slow_ + 1 : 0;
  return slow_ >= 2 || (loss_us_ > kMostLossUs && number % block_ > 0);  // one run may have had bad luck
}

Mode ModeTrial::Decide() {
  base::MutexLock lock(mu_);
  if (const Mode decided = decided_.load(std::memory_order_relaxed); decided != Mode::kAuto) return decided;
  const Mode best = Best();
  decided_.store(best, std::memory_order_release);
  return best;
}

// A mode in which no run has succeeded is not chosen if some has in the other.
Mode ModeTrial::Best() const {
  if (us_[kOther].empty()) return likely_;
  return us_[kLikely].empty() || MedianOf(kOther) < MedianOf(kLikely) ? ModeOf(kOther) : likely_;
}

void ModeTrial::Refuse(std::string why) {
  base::MutexLock lock(mu_);
  if (refused_.empty()) refused_ = std::move(why);
  decided_.store(Mode::kStream, std::memory_order_release);
}

ModeTrial::Result ModeTrial::result() const {
  base::MutexLock lock(mu_);
  const Way stream = likely_ == Mode::kStream ? kLikely : kOther, graph = likely_ == Mode::kStream ? kOther : kLikely;
  return {.mode = decided_.load(std::memory_order_relaxed),
          .stream_us = MedianOf(stream),
          .graph_us = MedianOf(graph),
          .stream_runs = static_cast<int64_t>(us_[stream].size()),
          .graph_runs = static_cast<int64_t>(us_[graph].size()),
          .refused = refused_};
}

Mode ModeTrial::ModeOf(Way way) const {
  return (way == kLikely) == (likely_ == Mode::kStream) ? Mode::kStream : Mode::kGraph;
}

double ModeTrial::MedianOf(Way way) const {
  std::vector<double> sorted = us_[way];
  if (sorted.empty()) return 0;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace penstock::runtime
