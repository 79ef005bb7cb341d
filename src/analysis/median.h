// The median of some values.
//
// Threads: pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace penstock::analysis {

// Of at least one value. Of an even number of them it lies between the two in the middle.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace penstock::analysis
