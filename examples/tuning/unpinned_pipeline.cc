// A pipeline over memory that is not pinned: a stage fills it, a device works on it, and another stage looks at it.
#include <numeric>
#include <optional>
#include <vector>

#include "tuning_job.h"

constexpr int64_t kSize = int64_t{1} << 19;  // 2 MiB

struct Recording {
  std::vector<float> in, out;
  float sum = 0;
};

absl::Status UnpinnedPipeline(ps::Runtime& runtime, int runs) {
  ps::Graph graph("smooth");
  auto in = graph.Input<float>("in", kSize);
  auto out = graph.Output<float>("out", kSize);
  graph.ParallelFor("smooth", kSize, tuning::Work{4}, ps::Read(in), ps::Write(out));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  ps::Stages<Recording> stages;
  stages.Host("fill", [](Recording& r) { r.in.assign(kSize, 1.f), r.out.resize(kSize); }, {.workers = 0});
  stages.Run("smooth", exec, [&](ps::Item<Recording>& item) { item.Set(in, item->in).Set(out, item->out); });
  stages.Host("sum", [](Recording& r) { r.sum = std::accumulate(r.out.begin(), r.out.end(), 0.f); }, {.workers = 0});
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Recording>::Create(std::move(stages)));
  int next = 0;
  const auto source = [&] { return next++ < runs ? std::optional(Recording()) : std::nullopt; };
  absl::Status failed;
  PS_RETURN_IF_ERROR(pipe.Run(source, [&](ps::Item<Recording>& item) { failed.Update(item.status()); }));
  return failed;
}

int main(int argc, char** argv) { return tuning::Main(argc, argv, UnpinnedPipeline); }
