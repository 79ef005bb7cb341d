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
  if (block < 2 || CountedOf(kLikely) < kCounted || CountedOf(kOther) < kCounted) return false;
  return block >= kBlocks || MedianOf(kOther) >= kClear * MedianOf(kLikely);
}

void ModeTrial::Ended(int64_t number, double us) {
  base::MutexLock lock(mu_);
  if (number < 0 || decided_.load(std::memory_order_relaxed) != Mode::kAuto) return;
  const int64_t block = number / block_;
  if (IsCounted(number)) us_[static_cast<size_t>(block)].push_back(us);
  if (IsHopeless(number, us)) decided_.store(ModeOf(Opposite(WayOf(block))), std::memory_order_release);
}

// Whether this run shows that more runs of its mode would only cost time: none has shown the contrary.
bool ModeTrial::IsHopeless(int64_t number, double us) {
  const Way way = WayOf(number / block_);
  const double own = MedianOf(way), best = MedianOf(Opposite(way));
  if (best == 0 || (own > 0 && own < best)) return false;
  Loss& loss = losses_[way];
  loss.us += us - best;
  const double far = number % block_ < slots_ ? kFarSlowerAtFirst : kFarSlower;
  loss.slow = us > far * best ? loss.slow + 1 : 0;
  return loss.slow >= 2 || (loss.us > kMostLossUs && number % block_ > 0);  // one run may have had bad luck
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
  const double likely = MedianOf(kLikely), other = MedianOf(kOther);
  return other > 0 && (likely == 0 || other < likely) ? ModeOf(kOther) : likely_;
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
          .stream_runs = CountedOf(stream),
          .graph_runs = CountedOf(graph),
          .refused = refused_};
}

Mode ModeTrial::ModeOf(Way way) const {
  return (way == kLikely) == (likely_ == Mode::kStream) ? Mode::kStream : Mode::kGraph;
}

double ModeTrial::MedianOf(Way way) const {
  double best = 0;
  for (size_t block = way; block < us_.size(); block += 2) {
    if (us_[block].empty()) continue;
    std::vector<double> sorted = us_[block];
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    best = best == 0 ? *middle : std::min(best, *middle);
  }
  return best;
}

int64_t ModeTrial::CountedOf(Way way) const {
  size_t runs = 0;
  for (size_t block = way; block < us_.size(); block += 2) runs += us_[block].size();
  return static_cast<int64_t>(runs);
}

}  // namespace penstock::runtime
