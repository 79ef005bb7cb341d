#include "src/observe/run_meter.h"

#include <algorithm>
#include <utility>

#include "src/observe/numbered_path.h"

namespace penstock::observe {

void RunMeter::Start(Time now, const std::string& path) {
  on_ = true;
  began_ = now;
  base::MutexLock lock(mu_);
  ends_.reserve(kMostEnds);  // the end of a run allocates nothing
  if (!path.empty()) path_ = NumberedPath(path);
}

std::string RunMeter::TakePath() {
  base::MutexLock lock(mu_);
  return std::exchange(path_, "");
}

void RunMeter::RunEnded(Time at) {
  base::MutexLock lock(mu_);
  last_ = std::max(last_, at);
  if (++runs_ % stride_ != 0) return;
  ends_.push_back(last_);  // in order, though threads may come late with theirs
  if (ends_.size() < kMostEnds) return;
  for (size_t i = 0; i < kMostEnds / 2; ++i) ends_[i] = ends_[2 * i + 1];
  ends_.resize(kMostEnds / 2);
  stride_ *= 2;
}

void RunMeter::ItemEnded(Time at) {
  base::MutexLock lock(mu_);
  last_ = std::max(last_, at);
}

// With fewer than four runs none is left out.
RunMeter::Pace RunMeter::pace() const {
  base::MutexLock lock(mu_);
  if (runs_ == 0) return {};
  const auto left_out = static_cast<size_t>(runs_ / 4 / stride_);  // of the ends that are kept
  const Time from = left_out == 0 ? began_ : ends_[left_out - 1];
  const std::chrono::duration<double, std::micro> took = last_ - from;
  return {runs_, took.count() / static_cast<double>(runs_ - static_cast<int64_t>(left_out) * stride_)};
}

}  // namespace penstock::observe
