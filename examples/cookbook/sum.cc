// Cookbook: a sum. Any number of values, up to a maximum, become one: each node adds up to 64 values into one.
//
// docs/howto/cookbook/sum.md explains the program.
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kMost = 1 << 20;

// Sum i takes every element whose index is i more than a multiple of the number of sums, so that neighbours on a GPU
// read neighbouring elements.
struct Add {
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<const float> from, ps::View<float> to) const {
    float sum = 0;
    for (int64_t j = i; j < from.width; j += to.width) sum += from(j);
    to(i) = sum;
  }
};

// Declares nodes that add up the elements of `values`, at most `most`, and returns the buffer of one element that has
// the sum. The order of the additions is always the same, and so is the result.
ps::BufferHandle<float> Sum(ps::Graph& graph, ps::BufferHandle<float> values, int64_t most) {
  while (most > 1) {
    most = (most + 63) / 64;
    const std::string name = std::to_string(most) + " sums";
    const auto sums = graph.Buffer<float>(name, most);
    graph.ParallelFor(name, most, Add{}, ps::Read(values), ps::Write(sums));
    values = sums;
  }
  return values;
}

absl::Status Cookbook() {
  ps::Graph graph("sum");
  auto n = graph.Param<int64_t>("n", ps::AtMost(kMost));
  auto values = graph.Input<float>("values", n);
  auto result = graph.Output<float>("result", 1);
  graph.Copy("result", Sum(graph, values, kMost), result);

  std::vector<float> data(kMost);
  for (int64_t i = 0; i < kMost; ++i) data[i] = static_cast<float>(i % 8);
  float sum = 0;
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  ps::Bindings io = exec.bindings();
  io.Set(result, sum);
  for (const int64_t count : {kMost, int64_t{1000}, int64_t{8}}) {
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(n, count).Set(values, std::span(data).first(count))));
    PS_RETURN_IF_ERROR(run.Wait());
    std::printf("the sum of %d values is %.0f\n", static_cast<int>(count), sum);
    // Each 8 values add up to 28, and sums of small integers are exact.
    if (sum != static_cast<float>(count / 8 * 28)) return absl::InternalError("the sum is wrong");
  }
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
