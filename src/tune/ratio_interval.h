// RatioInterval: how the cost of one way compares with that of another, from pairs of measurements that were made one
// right after the other, so that what the machine does beside them falls on both.
//
// Threads: plain values and pure functions.
#pragma once

#include <vector>

namespace penstock::tune {

struct RatioInterval {
  double ratio = 1;  // the cost of the first way over that of the other: below 1, the first is better
  double low = 0, high = 0;  // the ratio lies between them with the confidence of IntervalOf; both 0: too few pairs
  int pairs = 0;
};

// After how many pairs a comparison may end. An interval that is looked at several times misses more often than one
// that is looked at once; so each has a confidence of 99 %, and all five together at least 95 % (Bonferroni's
// inequality).
inline constexpr int kLooks[] = {4, 6, 9, 14, 24};

// Of the logarithms of the pairs' ratios: their 20 % trimmed mean and its t-interval with the winsorized variance
// (Tukey and McLaughlin 1963; Wilcox, "Introduction to Robust Estimation and Hypothesis Testing", section 4.3). An
// outlier that something else on the machine caused does not move it far.
RatioInterval IntervalOf(std::vector<double> log_ratios);

}  // namespace penstock::tune
