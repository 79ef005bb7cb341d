// Select: what std::copy_if gives, and how many elements that is, on every driver.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/scan.h"
#include "penstock/select.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::select_test {
namespace {

constexpr int64_t kMost = 600'003;

struct IsBelow {
  int32_t bound;
  PENSTOCK_HOST_DEVICE bool operator()(int32_t x) const { return x < bound; }
};
struct Record {
  int32_t key;
  uint8_t rest[9];
};
struct HasKey {
  PENSTOCK_HOST_DEVICE int operator()(const Record& r) const { return r.key & 4; }
};
struct Count {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int64_t> kept, View<int32_t> seen) const {
    seen(i) = static_cast<int32_t>(kept(i)) + 1;
  }
};

class Selects : public GraphConformance {
 protected:
  std::vector<int64_t> Extents() const {
    std::vector<int64_t> extents{0, 1, 2, 31, 33, 256, 1000, 2047, 2048, 2049, 4096, 4097, 6151};
    if (!GetParam().ring && !GetParam().checked) extents.push_back(kMost);
    return extents;
  }
};

TEST_P(Selects, KeepTheOrderAndCount) {
  for (const int32_t bound : {-2'000'000, 0, 2'000'000}) {
    Graph g("select");
    auto n = g.Param<int64_t>("n", AtMost(kMost));
    auto x = g.Input<int32_t>("x", n);
    auto y = g.InOut<int64_t>("y", n);
    auto counts = g.InOut<int32_t>("counts", 3);
    Select(g, "s", Read(x), Write(y), Write(counts, Slice({1}, {1})), IsBelow{bound});
    auto exec = runtime_->Compile(g, {.slots = 2});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t count : Extents()) {
      const std::vector<int32_t> hx = Random(count);
      std::vector<int64_t> got(hx.size(), -7), want;
      std::copy_if(hx.begin(), hx.end(), std::back_inserter(want), IsBelow{bound});
      std::vector<int32_t> hcounts{5, 6, 7};
      const auto kept = static_cast<int32_t>(want.size());
      want.resize(hx.size(), -7);  // the rest keeps its value in memory that is bound
      auto run = exec->Launch(io.Set(n, count).Set(x, hx).Set(y, got).Set(counts, hcounts));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(got, want) << count;
      EXPECT_EQ(hcounts, (std::vector<int32_t>{5, kept, 7})) << count;
    }
  }
}

TEST_P(Selects, TakeBoxesAndRecords) {
  Graph g("records");
  auto x = g.Input<Record>("x", 9001);
  auto y = g.Output<Record>("y", 9000);
  auto count = g.Output<uint64_t>("count", 1);
  Select(g, "s", Read(x, Slice({3}, {8000})), Write(y, Slice({1}, {8000})), Write(count), HasKey{});
  std::vector<Record> hx(9001), got(9000), want;
  for (Record& r : hx) {
    r = {};
    r.key = static_cast<int32_t>(rng_());
    r.rest[8] = static_cast<uint8_t>(rng_());
  }
  std::copy_if(hx.begin() + 3, hx.begin() + 8003, std::back_inserter(want), HasKey{});
  uint64_t counted = 0;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, got).Set(count, std::span(&counted, 1)); }));
  ASSERT_EQ(counted, want.size());
  EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin() + 1,
                         [](const Record& a, const Record& b) { return a.key == b.key && a.rest[8] == b.rest[8]; }));
}

// One Select after the other, on what the device has counted, and then its consumers.
TEST_P(Selects, FeedNodesOverTheirCount) {
  Graph g("chain");
  auto x = g.Input<int32_t>("x", 10'000);
  auto few = g.Buffer<int32_t>("few", 10'000);
  auto fewer = g.Buffer<int64_t>("fewer", 10'000), again = g.Buffer<int64_t>("again", 10'000);
  auto counts = g.Buffer<int64_t>("counts", 2);
  auto seen = g.InOut<int32_t>("seen", 10'000);
  const auto first = Slice({0}, {1}), second = Slice({1}, {1});
  Select(g, "few", Read(x), Write(few), Write(counts, first), IsBelow{500'000});
  Select(g, "fewer", CountOf(Read(counts, first), 10'000), Read(few), Write(fewer), Write(counts, second),
         IsBelow{-100'000});
  Scan(g, "again", CountOf(Read(counts, second), 10'000), Read(fewer), Write(again));
  g.ParallelFor("seen", CountOf(Read(counts, second), 10'000), Count{}, Read(again), ReadWrite(seen));
  const std::vector<int32_t> hx = Random(10'000);
  std::vector<int32_t> kept, got(10'000, -1), want(10'000, -1);
  std::copy_if(hx.begin(), hx.end(), std::back_inserter(kept), IsBelow{-100'000});
  int64_t sum = 0;
  for (size_t i = 0; i < kept.size(); ++i) want[i] = static_cast<int32_t>(sum += kept[i]) + 1;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(seen, got); }));
  EXPECT_EQ(got, want);
}

TEST_P(Selects, AreFoundWhenDeclaredAgainAndCheckedAgainstHostCode) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (const int32_t bound : {-500'000, 0, 700'000}) {
    const std::vector<int32_t> hx = Random(5000);
    std::vector<int32_t> want;
    std::copy_if(hx.begin(), hx.end(), std::back_inserter(want), IsBelow{bound});
    for (GraphCache* const cache : {&found, &checked}) {
      std::vector<int32_t> got(5000), count(1);
      absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
        auto x = g.Input<int32_t>("x", 5000), y = g.Output<int32_t>("y", 5000), c = g.Output<int32_t>("c", 1);
        Select(g, "s", Read(x), Write(y), Write(c), IsBelow{bound});
        io.Set(x, hx).Set(y, got).Set(c, count);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      got.resize(static_cast<size_t>(count[0]));
      EXPECT_EQ(got, want);
    }
  }
  EXPECT_EQ(found.counts().compiled, 1);
}

INSTANTIATE_TEST_SUITE_P(Host, Selects, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Selects, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::select_test
