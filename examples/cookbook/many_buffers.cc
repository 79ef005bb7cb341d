// Cookbook: many buffers. Averages as many gradients as the program is told, each in a buffer of its own.
//
// docs/howto/cookbook/many_buffers.md explains the program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int64_t kN = 10'000;
constexpr size_t kMostViews = 64;  // of one node

struct Add {
  PS_HOST_DEVICE void operator()(int64_t i, ps::Views<const float> parts, float* mean) const {
    for (const ps::View<const float>& part : parts) mean[i] += part(i);
  }
};
struct Divide {
  PS_HOST_DEVICE void operator()(int64_t i, int workers, float* mean) const { mean[i] /= static_cast<float>(workers); }
};

absl::Status Cookbook(int workers) {
  ps::Graph graph("average");
  std::vector<ps::BufferHandle<float>> gradients;
  for (int w = 0; w < workers; ++w) gradients.push_back(graph.Input<float>(ps::Name("gradient", w), kN));
  auto mean = graph.Output<float>("mean", kN);
  graph.Fill("zero", mean, 0);
  for (size_t begin = 0; begin < gradients.size(); begin += kMostViews) {
    const auto some = std::span(gradients).subspan(begin, std::min(kMostViews, gradients.size() - begin));
    graph.ParallelFor(ps::Name("add", begin), kN, Add{}, ps::ReadAll(some), ps::ReadWrite(mean));
  }
  graph.ParallelFor("divide", kN, Divide{}, workers, ps::ReadWrite(mean));

  // Each worker has its gradient in memory of its own.
  std::vector<std::vector<float>> data(workers, std::vector<float>(kN));
  for (int w = 0; w < workers; ++w) {
    for (int64_t i = 0; i < kN; ++i) data[w][i] = static_cast<float>(i % 100 + w);
  }
  std::vector<float> result(kN);
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  ps::Bindings io = exec.bindings();
  io.Set(mean, result);
  for (int w = 0; w < workers; ++w) io.Set(gradients[w], data[w]);
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
  PS_RETURN_IF_ERROR(run.Wait());

  // The workers' numbers average to (workers - 1) / 2.
  for (int64_t i = 0; i < kN; ++i) {
    if (result[i] != static_cast<float>(i % 100) + static_cast<float>(workers - 1) / 2) {
      return absl::InternalError("the mean of element " + std::to_string(i) + " is wrong");
    }
  }
  std::printf("the mean of %d gradients is right\n", workers);
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = Cookbook(argc > 1 ? std::atoi(argv[1]) : 200);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
