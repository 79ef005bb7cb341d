// CPU time of this process: a busy machine makes it no more, other than wall time.
#pragma once

#include <ctime>

namespace penstock {

inline double ProcessCpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline void UseCpu(double seconds) {
  for (const double until = ProcessCpuSeconds() + seconds; ProcessCpuSeconds() < until;) {
  }
}

}  // namespace penstock
