// Leases through the whole library, on every driver: slot memory is filled and read in place, by one run after another.
#include <algorithm>
#include <chrono>
#include <future>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::lease_test {
namespace {

struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> a, View<const int32_t> b,
                                       View<int32_t> out) const {
    out(i.y, i.x) = a(i.y, i.x) + b(i.y, i.x);
  }
};

class Leases : public GraphConformance {};

// out = in + bound, of as many rows and columns as each launch says; two slots at once.
struct SumGraph {
  static constexpr int64_t kRows = 30, kColumns = 50;
  Graph graph{"sum"};
  ParamHandle<int> h = graph.Param<int>("h", AtMost(kRows)), w = graph.Param<int>("w", AtMost(kColumns));
  BufferHandle<int32_t> in = graph.Input<int32_t>("in", {h, w}, kSlot);
  BufferHandle<int32_t> bound = graph.Input<int32_t>("bound", {h, w});
  BufferHandle<int32_t> out = graph.Output<int32_t>("out", {h, w}, kSlot);
  SumGraph() { graph.ParallelFor("sum", {h, w}, Sum{}, Read(in), Read(bound), Write(out)); }
};

TEST_P(Leases, AreFilledAndReadInPlace) {
  SumGraph g;
  absl::StatusOr<Executable> exec = runtime_->Compile(g.graph, {.slots = 2});
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->PlanText().find(" in.bound"), std::string::npos) << "it comes from nowhere else";
  EXPECT_EQ(exec->PlanText().find(" out.bound"), std::string::npos);
  Bindings io = exec->bindings();
  for (int round = 0; round < 5; ++round) {
    std::vector<Lease> leases;
    std::vector<std::vector<int32_t>> bound, given;
    std::vector<penstock::Run> runs;
    for (int i = 0; i < 2; ++i) {
      const int rows = 1 + static_cast<int>(rng_() % SumGraph::kRows), columns = static_cast<int>(rng_() % 51);
      absl::StatusOr<Lease> lease = exec->Acquire();
      ASSERT_OK(lease.status());
      leases.push_back(*std::move(lease));
      ASSERT_EQ(leases.back().span(g.in).size(), static_cast<size_t>(SumGraph::kRows * SumGraph::kColumns));
      bound.push_back(Random(int64_t{rows} * columns));
      given.push_back(Random(int64_t{rows} * columns));
      std::copy(given.back().begin(), given.back().end(), leases.back().span(g.in).begin());
      std::fill(leases.back().span(g.out).begin(), leases.back().span(g.out).end(), 0x5a5a5a5a);
      absl::StatusOr<penstock::Run> run =
          leases.back().Launch(io.Set(g.h, rows).Set(g.w, columns).Set(g.bound, bound.back()));
      ASSERT_OK(run.status());
      runs.push_back(*run);
    }
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_OK(runs[i].Wait());
      const std::span<int32_t> out = leases[i].span(g.out);
      for (size_t k = 0; k < given[i].size(); ++k) ASSERT_EQ(out[k], given[i][k] + bound[i][k]) << k;
    }
  }
}

TEST_P(Leases, KeepTheirContentsFromRunToRun) {
  Graph g("count");
  auto x = g.InOut<int32_t>("x", 1000, kSlot);
  g.ParallelFor("one", 1000, AddOne{}, ReadWrite(x));
  g.Host(
      "one more",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) ++e;
      },
      ReadWrite(x));
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  absl::StatusOr<Lease> lease = exec->Acquire();
  ASSERT_OK(lease.status());
  const std::vector<int32_t> before = Random(1000);
  std::copy(before.begin(), before.end(), lease->span(x).begin());
  for (int i = 1; i <= 3; ++i) {
    absl::StatusOr<penstock::Run> run = lease->Launch(exec->bindings());
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t k = 0; k < before.size(); ++k) ASSERT_EQ(lease->span(x)[k], before[k] + 2 * i);
  }
}

TEST_P(Leases, ASlotComesBackWhenItsLeaseAndItsRunHaveEnded) {
  std::promise<void> go;
  const std::shared_future<void> going = go.get_future().share();
  Graph g("held");
  auto x = g.InOut<int32_t>("x", 4, kSlot);
  g.Host("hold", [going](std::span<int32_t>) { going.wait_for(std::chrono::seconds(20)); }, ReadWrite(x));
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  absl::StatusOr<Lease> first = exec->TryAcquire(), second = exec->TryAcquire();
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  EXPECT_NE(first->span(x).data(), second->span(x).data());
  EXPECT_EQ(exec->TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);
  absl::StatusOr<penstock::Run> run = first->Launch(exec->bindings());
  ASSERT_OK(run.status());
  EXPECT_EQ(first->Launch(exec->bindings()).status().message(),
            "graph 'held': the lease's run is still in flight, and the slot's memory is its; wait for it, or acquire "
            "another");
  const int32_t* const memory = second->span(x).data();
  *first = Lease();
  EXPECT_EQ(exec->TryAcquire().status().code(), absl::StatusCode::kResourceExhausted) << "the run still has it";
  *second = Lease();
  absl::StatusOr<Lease> third = exec->TryAcquire();
  ASSERT_OK(third.status());
  EXPECT_EQ(third->span(x).data(), memory);
  std::future<bool> acquired = std::async(std::launch::async, [&] { return exec->Acquire().ok(); });
  go.set_value();
  EXPECT_TRUE(acquired.get()) << "by the end of the run";
  EXPECT_OK(run->Wait());
}

TEST_P(Leases, AnAssignmentGivesTheOldSlotBackAtOnce) {
  SumGraph g;
  absl::StatusOr<Executable> exec = runtime_->Compile(g.graph, {.slots = 2});
  ASSERT_OK(exec.status());
  absl::StatusOr<Lease> first = exec->TryAcquire(), second = exec->TryAcquire();
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  const int32_t *const old = first->span(g.in).data(), *const moved = second->span(g.in).data();
  *first = *std::move(second);
  EXPECT_EQ(first->span(g.in).data(), moved);
  absl::StatusOr<Lease> third = exec->TryAcquire();
  ASSERT_OK(third.status());
  EXPECT_EQ(third->span(g.in).data(), old);
}

TEST_P(Leases, OutliveTheHandlesOfTheirExecutableAndRuntime) {
  SumGraph g;
  Lease lease;
  {
    absl::StatusOr<Executable> exec = runtime_->Compile(g.graph);
    ASSERT_OK(exec.status());
    absl::StatusOr<Lease> acquired = exec->Acquire();
    ASSERT_OK(acquired.status());
    lease = *std::move(acquired);
  }
  std::fill(lease.span(g.in).begin(), lease.span(g.in).end(), 7);
  ASSERT_OK(runtime_->Shutdown());
  runtime_.reset();
  EXPECT_EQ(lease.span(g.in)[SumGraph::kRows * SumGraph::kColumns - 1], 7);
  EXPECT_EQ(lease.Launch(Bindings()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(Leases, MistakesAreTold) {
  SumGraph g;
  absl::StatusOr<Executable> exec = runtime_->Compile(g.graph);
  ASSERT_OK(exec.status());
  std::vector<int32_t> memory(6);
  Bindings io = exec->bindings();
  io.Set(g.h, 2).Set(g.w, 3).Set(g.bound, memory);
  const absl::Status unleased = exec->Launch(io).status();
  EXPECT_EQ(unleased.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(unleased.message()).find("declared kSlot, but the slot's memory was not filled"),
            std::string::npos)
      << unleased;
  absl::StatusOr<Lease> lease = exec->Acquire();
  ASSERT_OK(lease.status());
  EXPECT_TRUE(lease->span(g.bound).empty()) << "it is no memory of the slot";
  EXPECT_TRUE(lease->span(SumGraph().in).empty()) << "of another graph";
  EXPECT_EQ(lease->Launch(io.Set(g.out, memory)).status().code(), absl::StatusCode::kInvalidArgument);
  io = exec->bindings();
  io.Set(g.h, 2).Set(g.w, 3).Set(g.bound, memory);
  absl::StatusOr<penstock::Run> run = lease->Launch(io);
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  Lease none;
  EXPECT_TRUE(none.span(g.in).empty());
  EXPECT_EQ(none.Launch(io).status().code(), absl::StatusCode::kFailedPrecondition);
}

INSTANTIATE_TEST_SUITE_P(Host, Leases, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Leases, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::lease_test
