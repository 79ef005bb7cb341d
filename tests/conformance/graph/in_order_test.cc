// CompileOptions::in_order on every driver: runs that are launched at once change the same memory one after another,
// whatever lanes, host nodes and copies they have. Runs on all slots share the memory of internal buffers, which
// checked drivers watch.
#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::in_order_test {
namespace {

using std::chrono::seconds;

constexpr int64_t kN = 3001;
constexpr int kSlots = 4, kRuns = 24;

struct TimesThree {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> x, View<int32_t> y) const { y(i) = x(i) * 3; }
};
struct Plus {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t n, View<const int32_t> x, View<int32_t> y) const {
    y(i) = x(i) + n;
  }
};
struct Join {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> a, View<const int32_t> b, View<int32_t> x) const {
    x(i) = static_cast<int32_t>((static_cast<uint32_t>(a(i)) ^ static_cast<uint32_t>(b(i))) & 0xffffffu);
  }
};
int32_t Step(int32_t x, int32_t n) { return static_cast<int32_t>((uint32_t(x * 3) ^ uint32_t(x + n)) & 0xffffffu); }

class InOrder : public GraphConformance {
 protected:
  absl::StatusOr<Executable> Compiled(const Graph& graph) {
    return runtime_->Compile(graph, {.slots = kSlots, .in_order = true});
  }
};

// Two branches, so the plan has several lanes; both have internal buffers.
TEST_P(InOrder, LaunchesOnTheSameMemoryAreAsOneAfterAnother) {
  Graph g("in order");
  auto n = g.Param<int32_t>("n");
  auto x = g.InOut<int32_t>("x", kN, kDevice);
  auto a = g.Buffer<int32_t>("a", kN), b = g.Buffer<int32_t>("b", kN);
  g.ParallelFor("times three", kN, TimesThree{}, Read(x), Write(a));
  g.ParallelFor("plus", kN, Plus{}, n, Read(x), Write(b));
  g.ParallelFor("join", kN, Join{}, Read(a), Read(b), Write(x));
  absl::StatusOr<Executable> exec = Compiled(g);
  ASSERT_OK(exec.status());
  for (const MemoryReport::Arena& arena : exec->memory().arenas) {
    EXPECT_EQ(arena.all_bytes, arena.slot_bytes * (arena.where == "pinned" ? kSlots : 1)) << arena.where;
  }
  std::vector<int32_t> values = Random(kN);
  for (int32_t& v : values) v &= 0xffffff;
  absl::StatusOr<DeviceBuffer<int32_t>> memory = runtime_->MakeDeviceBuffer<int32_t>(kN);
  ASSERT_OK(memory.status());
  Graph up("up"), down("down");
  auto from = up.Input<int32_t>("from", kN), to = up.Output<int32_t>("to", kN, kDevice);
  up.Copy("up", from, to);
  ASSERT_OK(RunOnce(up, [&](Bindings& of) { of.Set(from, values).Set(to, *memory); }));
  Bindings io = exec->bindings();
  io.Set(x, *memory);
  std::vector<penstock::Run> runs;
  for (int32_t r = 0; r < kRuns; ++r) {
    absl::StatusOr<penstock::Run> run = exec->Launch(io.Set(n, r), seconds(60));
    ASSERT_OK(run.status());
    runs.push_back(*run);
    for (int32_t& v : values) v = Step(v, r);
  }
  for (const penstock::Run& run : runs) ASSERT_OK(run.Wait());
  std::vector<int32_t> result = Poisoned(kN);
  auto source = down.Input<int32_t>("source", kN, kDevice), result_of = down.Output<int32_t>("result", kN);
  down.Copy("down", source, result_of);
  ASSERT_OK(RunOnce(down, [&](Bindings& of) { of.Set(source, *memory).Set(result_of, result); }));
  EXPECT_EQ(result, values);
}

// Host nodes keep a run from submitting all of its work at once, and fail every fifth run. With a ring, host threads
// copy to and from the device memory of the slots.
TEST_P(InOrder, HoldsForCopiesHostNodesAndFailures) {
  Graph g("with the host");
  auto n = g.Param<int32_t>("n");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN);
  auto a = g.Buffer<int32_t>("a", kN), b = g.Buffer<int32_t>("b", kN), c = g.Buffer<int32_t>("c", kN);
  g.ParallelFor("times three", kN, TimesThree{}, Read(x), Write(a));
  g.Host(
      "host",
      [](int32_t number, std::span<const int32_t> from, std::span<int32_t> to) {
        std::copy(from.begin(), from.end(), to.begin());
        return number % 5 == 4 ? absl::InternalError("planned") : absl::OkStatus();
      },
      n, Read(a), Write(b));
  g.ParallelFor("plus", kN, Plus{}, n, Read(b), Write(c));
  g.ParallelFor("join", kN, Join{}, Read(c), Read(b), Write(y));
  absl::StatusOr<Executable> exec = Compiled(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> given = Random(kN + kRuns);
  std::vector<std::vector<int32_t>> results(kRuns, Poisoned(kN));
  std::vector<penstock::Run> runs;
  for (int32_t r = 0; r < kRuns; ++r) {
    const std::span<const int32_t> part(given.data() + r, kN);
    absl::StatusOr<penstock::Run> run =
        exec->Launch(io.Set(n, r).Set(x, part).Set(y, results[static_cast<size_t>(r)]), seconds(60));
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  for (int32_t r = 0; r < kRuns; ++r) {
    const absl::Status ended = runs[static_cast<size_t>(r)].Wait();
    ASSERT_EQ(ended.code(), r % 5 == 4 ? absl::StatusCode::kInternal : absl::StatusCode::kOk) << r << ": " << ended;
    if (!ended.ok()) continue;
    std::vector<int32_t> expected;
    for (int64_t i = 0; i < kN; ++i) {
      const auto t = static_cast<uint32_t>(given[static_cast<size_t>(i + r)]) * 3;
      expected.push_back(static_cast<int32_t>(((t + static_cast<uint32_t>(r)) ^ t) & 0xffffffu));
    }
    ASSERT_EQ(results[static_cast<size_t>(r)], expected) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, InOrder, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, InOrder, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::in_order_test
