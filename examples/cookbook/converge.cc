// Cookbook: a loop until it has converged. Solves a system of equations by Jacobi's method, and checks on the host
// after every kSweeps launches whether the solution still changes.
//
// docs/howto/cookbook/converge.md explains the program.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kN = 1 << 16;
constexpr int kSweeps = 8, kMostSweeps = 1000;
constexpr float kTolerance = 1e-5f;

// One sweep over the equations 4 x[i] - x[i - 1] - x[i + 1] = b[i].
struct Sweep {
  PS_HOST_DEVICE void operator()(int64_t i, const float* b, const float* from, float* to) const {
    to[i] = (b[i] + (i > 0 ? from[i - 1] : 0) + (i + 1 < kN ? from[i + 1] : 0)) / 4;
  }
};
struct Difference {
  PS_HOST_DEVICE float operator()(int64_t i, const float* a, const float* b) const { return fabsf(a[i] - b[i]); }
};

absl::Status Cookbook() {
  std::vector<float> solution(kN), rhs(kN), result(kN);
  for (int64_t i = 0; i < kN; ++i) solution[i] = static_cast<float>(i % 7) - 3;
  for (int64_t i = 0; i < kN; ++i) {
    rhs[i] = 4 * solution[i] - (i > 0 ? solution[i - 1] : 0) - (i + 1 < kN ? solution[i + 1] : 0);
  }
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(auto b, runtime.MakeState<float>("b", kN, rhs));
  PS_ASSIGN_OR_RETURN(auto x, runtime.MakeState<float>("x", kN));
  PS_ASSIGN_OR_RETURN(auto y, runtime.MakeState<float>("y", kN));

  // Two sweeps, so that the newest solution is in x again and nothing is copied.
  ps::Graph sweep("sweep");
  sweep.ParallelFor("x to y", kN, Sweep{}, ps::Read(b), ps::Read(x), ps::Write(y));
  sweep.ParallelFor("y to x", kN, Sweep{}, ps::Read(b), ps::Read(y), ps::Write(x));
  PS_ASSIGN_OR_RETURN(ps::Executable sweeper, runtime.Compile(sweep));

  // What the last sweep has changed.
  ps::Graph check("check");
  auto change = check.Output<float>("change", 1, ps::kPinned);
  check.TransformReduce("change", kN, Difference{}, ps::Max(), 0, ps::Read(x), ps::Read(y), ps::Write(change));
  PS_ASSIGN_OR_RETURN(ps::Executable checker, runtime.Compile(check));

  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> changed, runtime.MakeHostBuffer<float>(1));
  const ps::Bindings out = checker.bindings().Set(change, changed);
  int sweeps = 0;
  do {
    for (int s = 0; s < kSweeps; s += 2) PS_RETURN_IF_ERROR(sweeper.Launch().status());
    sweeps += kSweeps;
    PS_ASSIGN_OR_RETURN(ps::Run run, checker.Launch(out));
    PS_RETURN_IF_ERROR(run.Wait());
    std::printf("after %d sweeps the last has changed x by up to %.6f\n", sweeps, changed[0]);
  } while (changed[0] > kTolerance && sweeps < kMostSweeps);

  PS_RETURN_IF_ERROR(x.Read(result));
  for (int64_t i = 0; i < kN; ++i) {
    if (std::fabs(result[i] - solution[i]) > 2 * kTolerance) return absl::InternalError("the solution is wrong");
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
