// Algorithms over more elements than 32 bits count, on a GPU that has room for them. The elements follow a rule, so it
// is known in closed form what each algorithm gives; kernels compare and count what is right, and nothing but these
// counts comes back. All of them must be right, so elements that a count itself would lose are seen too.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/penstock.h"
#include "penstock/sort.h"
#include "tests/driver/cuda/gpu_test.h"
#include "tests/support/status.h"

namespace penstock::large_algorithms_test {
namespace {

constexpr int64_t kN = (int64_t{1} << 32) + 12'345;
constexpr int64_t kPlanted = kN - 2;  // the greatest element
constexpr uint8_t kGreatest = 200;
constexpr int64_t kRows = 3, kWidth = (int64_t{1} << 31) + 77;
constexpr int64_t kMemory = int64_t{60} << 30;  // bytes of a device that has room

// 0 1 2 3 4 5 6 0 1 ..., and one greater than all.
PENSTOCK_HOST_DEVICE uint8_t ElementAt(int64_t i) { return i == kPlanted ? kGreatest : static_cast<uint8_t>(i % 7); }
// The sum of elements 0 to i.
PENSTOCK_HOST_DEVICE int64_t SumTo(int64_t i) {
  const int64_t whole = i / 7, rest = i % 7, sum = whole * 21 + rest * (rest + 1) / 2;
  return i < kPlanted ? sum : sum + kGreatest - kPlanted % 7;
}
// How many of the elements are `value`, below 7.
int64_t CountOfValue(int64_t value) { return kN / 7 + (value < kN % 7 ? 1 : 0) - (value == kPlanted % 7 ? 1 : 0); }

struct PutElement {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint8_t* x) const { x[i] = ElementAt(i); }
};
struct IsSum {
  PENSTOCK_HOST_DEVICE int64_t operator()(int64_t i, const uint32_t* sums) const {
    return sums[i] == static_cast<uint32_t>(SumTo(i)) ? 1 : 0;
  }
};
// Another sum of numbers that wrap, which the library does not know to be the same in any order.
struct Added {
  PENSTOCK_HOST_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a + b; }
};
struct IsNotZero {
  PENSTOCK_HOST_DEVICE bool operator()(uint8_t x) const { return x != 0; }
};
// The elements that are kept are 1 2 3 4 5 6 1 2 ..., with the greatest one in the place where it was planted.
struct IsKept {
  int64_t planted;
  PENSTOCK_HOST_DEVICE int64_t operator()(int64_t i, const uint8_t* kept) const {
    const uint8_t expected = i == planted ? kGreatest : static_cast<uint8_t>(i % 6 + 1);
    return kept[i] == expected ? 1 : 0;
  }
};
struct IsSorted {
  int64_t ends[7];  // where the elements of a value end
  PENSTOCK_HOST_DEVICE int64_t operator()(int64_t i, const uint8_t* sorted) const {
    int value = 0;
    while (value < 7 && i >= ends[value]) ++value;
    return sorted[i] == (value < 7 ? value : kGreatest) ? 1 : 0;
  }
};

class LargeAlgorithms : public driver::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    size_t free = 0, all = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &all), cudaSuccess);
    if (static_cast<int64_t>(free) < kMemory) {
      GTEST_SKIP() << free << " bytes of the device's memory are free; the test takes up to " << kMemory;
    }
    absl::StatusOr<Runtime> made = Runtime::Create({.devices = "cuda:0", .workers = 1});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }
  void RunOnce(const Graph& graph, BufferHandle<int64_t> to, std::vector<int64_t>& results) {
    auto exec = runtime_->Compile(graph, {.slots = 1});
    ASSERT_OK(exec.status());
    auto run = exec->Launch(exec->bindings().Set(to, results));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  static BufferHandle<uint8_t> Elements(Graph& graph) {
    auto x = graph.Buffer<uint8_t>("x", kN);
    graph.ParallelFor("elements", kN, PutElement{}, Write(x));
    return x;
  }

  std::optional<Runtime> runtime_;
};

TEST_F(LargeAlgorithms, Reduce) {
  Graph g("reduce");
  auto x = Elements(g);
  auto to = g.Output<int64_t>("results", 3 + kRows);
  g.Reduce("sum", Read(x), Write(to, Slice(0, 1)));
  ArgMax(g, "greatest", Read(x), Write(to, Slice(1, 1)));
  auto count = g.Buffer<int64_t>("count", 1);
  g.Fill("most", Write(count), kN - 5);
  g.Reduce("counted", CountOf(count, kN), Read(x), Write(to, Slice(2, 1)));
  auto rows = g.Buffer<uint8_t>("rows", {kRows, kWidth});
  g.Fill("ones", Write(rows), uint8_t{1});
  ReduceRows(g, "rows", Read(rows), Write(to, Slice(3, kRows)));
  std::vector<int64_t> found(3 + kRows, 77);
  RunOnce(g, to, found);
  EXPECT_EQ(found, (std::vector<int64_t>{SumTo(kN - 1), kPlanted, SumTo(kN - 6), kWidth, kWidth, kWidth}));
}

TEST_F(LargeAlgorithms, Scan) {
  Graph g("scan");
  auto x = Elements(g);
  auto to = g.Output<int64_t>("results", 2);
  auto sums = g.Buffer<uint32_t>("sums", kN), in_order = g.Buffer<uint32_t>("in order", kN);
  Scan(g, "scan", Read(x), Write(sums));
  Scan(g, "in order", Read(x), Write(in_order), Added{});
  g.TransformReduce("right", kN, IsSum{}, Plus(), int64_t{0}, Read(sums), Write(to, Slice(0, 1)));
  g.TransformReduce("in order right", kN, IsSum{}, Plus(), int64_t{0}, Read(in_order), Write(to, Slice(1, 1)));
  std::vector<int64_t> found(2, 77);
  RunOnce(g, to, found);
  EXPECT_EQ(found, (std::vector<int64_t>{kN, kN}));
}

TEST_F(LargeAlgorithms, SelectAndCount) {
  const int64_t kept_elements = kN - CountOfValue(0), planted = kPlanted - (kPlanted / 7 + 1);
  Graph g("select");
  auto x = Elements(g);
  auto to = g.Output<int64_t>("results", 2 + 256);
  auto kept = g.Buffer<uint8_t>("kept", kN);
  const auto count = Slice(0, 1);
  Select(g, "select", Read(x), Write(kept), Write(to, count), IsNotZero{});
  g.TransformReduce("right", CountOf(Read(to, count), kN), IsKept{planted}, Plus(), int64_t{0}, Read(kept),
                    Write(to, Slice(1, 1)));
  Histogram(g, "bins", Read(x), Write(to, Slice(2, 256)), OwnBin());
  std::vector<int64_t> found(2 + 256, 77), expected(2 + 256);
  RunOnce(g, to, found);
  expected[0] = expected[1] = kept_elements;
  for (int64_t value = 0; value < 7; ++value) expected[static_cast<size_t>(2 + value)] = CountOfValue(value);
  expected[2 + kGreatest] = 1;
  EXPECT_EQ(found, expected);
}

TEST_F(LargeAlgorithms, Sort) {
  IsSorted is_sorted{};
  int64_t end = 0;
  for (int64_t value = 0; value < 7; ++value) is_sorted.ends[value] = end += CountOfValue(value);
  Graph g("sort");
  auto x = Elements(g);
  auto to = g.Output<int64_t>("results", 1);
  auto sorted = g.Buffer<uint8_t>("sorted", kN);
  Sort(g, "sort", Read(x), Write(sorted));
  g.TransformReduce("right", kN, is_sorted, Plus(), int64_t{0}, Read(sorted), Write(to));
  std::vector<int64_t> found(1, 77);
  RunOnce(g, to, found);
  EXPECT_EQ(found, std::vector<int64_t>{kN});
}

}  // namespace
}  // namespace penstock::large_algorithms_test
