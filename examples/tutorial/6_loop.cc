// Tutorial, chapter 6: a loop and a branch in a graph. Computes the square roots of many numbers by Newton's method,
// until the worst of them is good enough.
//
// docs/tutorial/6-loop.md explains the program.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "penstock/ps.h"

constexpr int kN = 1000, kMostRounds = 30;
constexpr float kPoor = 0.5f, kTolerance = 1e-5f;

struct Improve {
  PS_HOST_DEVICE void operator()(int64_t i, const float* a, float* x) const { x[i] = (x[i] + a[i] / x[i]) / 2; }
};
struct Error {
  PS_HOST_DEVICE float operator()(int64_t i, const float* a, const float* x) const {
    return fabsf(x[i] * x[i] / a[i] - 1);
  }
};
// A condition is a functor too.
struct IsAbove {
  PS_HOST_DEVICE bool operator()(float limit, const float* error) const { return *error > limit; }
};

absl::Status Tutorial() {
  ps::Graph graph("roots");
  auto enough = graph.Param<float>("enough");
  auto a = graph.Input<float>("a", kN);
  auto x = graph.InOut<float>("x", kN);
  auto rounds = graph.Output<int>("rounds", 1);
  auto error = graph.Buffer<float>("error", 1);
  // The worst error, as a value that conditions can read.
  const auto look = [&] {
    graph.TransformReduce("look", kN, Error{}, ps::Max(), 0, ps::Read(a), ps::Read(x), ps::Write(error));
  };
  look();

  // If what is in x is of no use, begin with the numbers themselves.
  graph.If("poor", ps::When(IsAbove{}, kPoor, ps::Read(error)), [&](ps::Graph& then) {
    then.Copy("begin", a, x);
    look();
  });
  // Then improve x while it is not good enough.
  const auto not_good = ps::When(IsAbove{}, enough, ps::Read(error)).Count(rounds);
  graph.While("solve", not_good, {.max = kMostRounds}, [&](ps::Graph& body) {
    body.ParallelFor("improve", kN, Improve{}, ps::Read(a), ps::ReadWrite(x));
    look();
  });
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  // Each launch begins with the roots of the one before. The last has a condition that always holds.
  std::vector<float> numbers(kN), roots(kN);
  int count = 0;
  ps::Bindings io = exec.bindings();
  io.Set(a, numbers).Set(x, roots).Set(rounds, count);
  for (const auto& [first, error_allowed] : {std::pair(1.f, kTolerance), {1.25f, kTolerance}, {1.25f, -1.f}}) {
    for (int i = 0; i < kN; ++i) numbers[i] = first + static_cast<float>(i);
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(enough, error_allowed)));
    PS_RETURN_IF_ERROR(run.Wait());
    std::printf("the root of %g is %.4f, after %d rounds\n", numbers[1], roots[1], count);
    for (int i = 0; i < kN; ++i) {
      if (std::fabs(roots[i] - std::sqrt(numbers[i])) <= kTolerance * roots[i]) continue;
      return absl::InternalError("root " + std::to_string(i) + " is wrong");
    }
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
