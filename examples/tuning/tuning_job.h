// What the programs of this folder share: jobs that leave to the settings what "penstock tune" may change
// (docs/howto/tune.md).
//
// Each takes --runs N, and prints how long a run takes on average, without the first quarter.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "penstock/ps.h"

namespace tuning {

// y = f(x), with `rounds` steps for each element.
struct Work {
  int rounds;
  PS_HOST_DEVICE void operator()(int64_t i, const float* x, float* y) const {
    float value = x[i];
    for (int r = 0; r < rounds; ++r) value = value * 0.999f + 0.001f;
    y[i] = value;
  }
};

// `job` makes its executables with the runtime, and runs them so many times.
inline int Main(int argc, char** argv, absl::Status (*job)(ps::Runtime& runtime, int runs)) {
  int runs = 400;
  for (int a = 1; a < argc; ++a) {
    if (std::string_view(argv[a]) == "--runs" && a + 1 < argc) {
      runs = std::atoi(argv[++a]);
    } else {
      std::fprintf(stderr, "usage: %s [--runs N]\n", argv[0]);
      return 2;
    }
  }
  absl::StatusOr<ps::Runtime> runtime = ps::Runtime::Create({.measure = true});
  absl::Status status = runtime.status();
  if (status.ok()) status = job(*runtime, runs < 1 ? 1 : runs);
  if (status.ok()) std::printf("%.4f ms a run\n", runtime->Measured().run_us / 1e3);
  else std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace tuning
