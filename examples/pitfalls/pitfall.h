// What the programs of this folder share: options, a clock, and a kernel that computes for a while.
//
// Each program has one pitfall, and with --fixed none. It prints how long a run takes on average, without the first
// ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "penstock/ps.h"

namespace pitfalls {

constexpr int kWarmUp = 8;

struct Options {
  bool fixed = false;  // --fixed: without the pitfall
  int runs = 200;  // --runs N
};

// A program tells when it is warm, and when it is done.
class Clock {
 public:
  void Start() { start_ = std::chrono::steady_clock::now(); }
  void Stop(int runs) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start_;
    std::printf("%.4f ms a run\n", took.count() / runs);
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

// y = f(x), with `rounds` steps for each element.
struct Work {
  int rounds;
  PS_HOST_DEVICE void operator()(int64_t i, const float* x, float* y) const {
    float value = x[i];
    for (int r = 0; r < rounds; ++r) value = value * 0.999f + 0.001f;
    y[i] = value;
  }
};

// The same in place.
struct WorkInPlace {
  int rounds;
  PS_HOST_DEVICE void operator()(int64_t i, float* x) const {
    float value = x[i];
    for (int r = 0; r < rounds; ++r) value = value * 0.999f + 0.001f;
    x[i] = value;
  }
};

// Elements and rounds that take a device about a millisecond: one core, or a GPU.
struct Load {
  int64_t elements;
  int rounds;
};
inline Load AMillisecond(const ps::Runtime& runtime) {
  return runtime.devices()[0].is_cuda ? Load{int64_t{1} << 22, 4000} : Load{int64_t{1} << 14, 40};
}

inline int Main(int argc, char** argv, absl::Status (*program)(const Options&)) {
  Options options;
  for (int a = 1; a < argc; ++a) {
    const std::string_view argument = argv[a];
    if (argument == "--fixed") {
      options.fixed = true;
    } else if (argument == "--runs" && a + 1 < argc) {
      options.runs = std::atoi(argv[++a]);
    } else {
      std::fprintf(stderr, "usage: %s [--fixed] [--runs N]\n", argv[0]);
      return 2;
    }
  }
  if (options.runs < 1) options.runs = 1;
  const absl::Status status = program(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace pitfalls
