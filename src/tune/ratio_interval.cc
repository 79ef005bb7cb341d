#include "src/tune/ratio_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>

namespace penstock::tune {
namespace {

// The 99.5 % quantile of Student's distribution, by degrees of freedom from 1 on.
constexpr double kStudent[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
                               3.106,  3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845};

double StudentQuantile(size_t freedom) { return kStudent[std::min(freedom, std::size(kStudent)) - 1]; }

}  // namespace

RatioInterval IntervalOf(std::vector<double> log_ratios) {
  RatioInterval interval{.pairs = static_cast<int>(log_ratios.size())};
  if (log_ratios.empty()) return interval;
  std::sort(log_ratios.begin(), log_ratios.end());
  const size_t cut = log_ratios.size() / 5, kept = log_ratios.size() - 2 * cut;
  const auto begin = log_ratios.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto end = begin + static_cast<std::ptrdiff_t>(kept);
  const double mean = std::accumulate(begin, end, 0.0) / static_cast<double>(kept);
  interval.ratio = std::exp(mean);
  if (kept < 2) return interval;
  std::fill(log_ratios.begin(), begin, *begin);
  std::fill(end, log_ratios.end(), *(end - 1));
  const double winsorized_mean =
      std::accumulate(log_ratios.begin(), log_ratios.end(), 0.0) / static_cast<double>(log_ratios.size());
  double squares = 0;
  for (const double value : log_ratios) squares += (value - winsorized_mean) * (value - winsorized_mean);
  const double error = std::sqrt(squares / static_cast<double>(kept * (kept - 1)));
  const double half = StudentQuantile(kept - 1) * error;
  interval.low = std::exp(mean - half);
  interval.high = std::exp(mean + half);
  return interval;
}

}  // namespace penstock::tune
