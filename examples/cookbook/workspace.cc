// Cookbook: a library that needs a workspace. Finds for each query the item that fits best: cuBLAS multiplies the
// queries with the items, and a functor looks for the largest product of each row.
//
// docs/howto/cookbook/workspace.md explains the program. Without cuBLAS the host computes the same.
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "penstock/ps.h"
#if defined(__CUDACC__)
#include "penstock/cublas.h"
#endif

constexpr int kItems = 200, kQueries = 96, kWidth = 64;

#if defined(__CUDACC__)
// scores[q][i] is the product of query q and item i. Rows are contiguous here and columns in cuBLAS, so it sees each
// matrix as its transpose. The scalars are the host's, since they never change.
absl::Status Multiply(ps::LaunchContext& launch, const float* queries, const float* items, float* scores) {
  const ps::CublasOptions scalars{.pointer_mode = CUBLAS_POINTER_MODE_HOST};
  PS_ASSIGN_OR_RETURN(ps::Cublas * blas, launch.Get<ps::Cublas>(scalars));
  const float one = 1, zero = 0;
  return ps::ToStatus(cublasSgemm(blas->handle(), CUBLAS_OP_T, CUBLAS_OP_N, kItems, kQueries, kWidth, &one, items,
                                  kWidth, queries, kWidth, &zero, scores, kItems),
                      "cublasSgemm");
}
#endif
void MultiplyOnHost(const float* queries, const float* items, float* scores) {
  for (int q = 0; q < kQueries; ++q) {
    for (int i = 0; i < kItems; ++i) {
      float sum = 0;
      for (int k = 0; k < kWidth; ++k) sum += queries[q * kWidth + k] * items[i * kWidth + k];
      scores[q * kItems + i] = sum;
    }
  }
}

struct Best {
  PS_HOST_DEVICE void operator()(int64_t query, ps::View<const float> scores, int32_t* best) const {
    best[query] = 0;
    for (int32_t i = 1; i < kItems; ++i) {
      if (scores(query, i) > scores(query, best[query])) best[query] = i;
    }
  }
};

absl::Status Cookbook() {
  // Items are ones and minus ones at random, and query q is item 2 * q. So products are small integers, which are
  // exact.
  std::mt19937 random(1);
  std::vector<float> all(kItems * kWidth), asked(kQueries * kWidth);
  for (float& x : all) x = random() % 2 == 0 ? 1.f : -1.f;
  for (int i = 0; i < kQueries * kWidth; ++i) asked[i] = all[i / kWidth * 2 * kWidth + i % kWidth];
  std::vector<int32_t> found(kQueries);

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(auto items, runtime.MakeState<float>("items", {kItems, kWidth}, all));
  ps::Graph graph("search");
  auto queries = graph.Input<float>("queries", {kQueries, kWidth});
  auto scores = graph.Buffer<float>("scores", {kQueries, kItems});
  auto best = graph.Output<int32_t>("best", kQueries);
  graph.Launch("multiply", PS_ON_CUDA(Multiply), ps::Read(queries), ps::Read(items), ps::Write(scores))
      .HostFallback(MultiplyOnHost);
  graph.ParallelFor("best", kQueries, Best{}, ps::Read(scores), ps::Write(best));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));

  ps::Bindings io = exec.bindings();
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(queries, asked).Set(best, found)));
  PS_RETURN_IF_ERROR(run.Wait());
  for (int q = 0; q < kQueries; ++q) {
    if (found[q] != 2 * q) return absl::InternalError("a query has found another item than its own");
  }
  std::printf("all %d queries have found their items\n", kQueries);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Cookbook();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
