// Cookbook: a sum. Any number of values, up to a maximum, become one: their sum, the greatest, and the sum of their
// squares.
//
// docs/howto/cookbook/sum.md explains the program.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kMost = 1 << 20;

struct Square {
  PS_HOST_DEVICE double operator()(int64_t i, const float* x) const { return double{x[i]} * x[i]; }
};

absl::Status Cookbook() {
  ps::Graph graph("sum");
  auto n = graph.Param<int64_t>("n", ps::AtMost(kMost));
  auto values = graph.Input<float>("values", n);
  auto sum = graph.Output<double>("sum", 1);
  auto ends = graph.Output<double>("ends", 2);
  graph.Reduce("sum", ps::Read(values), ps::Write(sum));
  graph.Reduce("greatest", ps::Read(values), ps::Write(ends, ps::Slice({0}, {1})), ps::Max());
  graph.TransformReduce("squares", n, Square{}, ps::Plus(), 0, ps::Read(values), ps::Write(ends, ps::Slice({1}, {1})));

  std::vector<float> data(kMost);
  for (int64_t i = 0; i < kMost; ++i) data[i] = static_cast<float>(i % 8);
  double total = 0, last[2] = {};
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  ps::Bindings io = exec.bindings();
  io.Set(sum, total).Set(ends, last);
  for (const int64_t count : {kMost, int64_t{1000}, int64_t{8}}) {
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(n, count).Set(values, std::span(data).first(count))));
    PS_RETURN_IF_ERROR(run.Wait());
    std::printf("%d values: sum %.0f, greatest %.0f, squares %.0f\n", static_cast<int>(count), total, last[0], last[1]);
    // Each 8 values add up to 28, and their squares to 140; sums of small integers are exact.
    const auto eights = static_cast<double>(count) / 8;
    if (total != eights * 28 || last[1] != eights * 140) return absl::InternalError("a sum is wrong");
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
