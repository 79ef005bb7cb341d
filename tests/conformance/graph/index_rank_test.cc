// Functors that take several ranks of index: each extent gets that of its own rank.
#include <algorithm>
#include <utility>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::index_rank_test {
namespace {

class IndexRank : public GraphConformance {};

// Compiles for no other rank than two, and only a call tells.
struct Generic {
  PENSTOCK_HOST_DEVICE auto operator()(auto i, View<int32_t> v) const {
    v(i.y, i.x) = static_cast<int32_t>(10 * i.y + i.x);
  }
};
struct GenericOfOne {
  PENSTOCK_HOST_DEVICE auto operator()(auto i, View<int32_t> v) const { v(i) = static_cast<int32_t>(i % 7); }
};
struct GenericOfThree {
  PENSTOCK_HOST_DEVICE auto operator()(auto i, View<int32_t> v) const {
    v(i.z, i.y, i.x) = static_cast<int32_t>(100 * i.z + 10 * i.y + i.x);
  }
};
// Says which it was called with.
struct AllRanks {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> v) const { v(i) = 1; }
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> v) const { v(i.y, i.x) = 2; }
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> v) const { v(i.z, i.y, i.x) = 3; }
};
struct OneAndThree {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> v) const { v(i) = 1; }
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> v) const { v(i.z, i.y, i.x) = 3; }
};

const std::vector<Extent>& Extents() {
  static const std::vector<Extent> extents{Extent(12), Extent(3, 4), Extent(2, 2, 3)};
  return extents;
}

TEST_P(IndexRank, OfAListIsKnownToGenericFunctors) {
  Graph g("generic");
  auto one = g.Output<int32_t>("one", 12), two = g.Output<int32_t>("two", {3, 4}),
       three = g.Output<int32_t>("three", {2, 2, 3});
  g.ParallelFor("one", 12, GenericOfOne{}, Write(one));
  g.ParallelFor("two", {3, 4}, Generic{}, Write(two));
  g.ParallelFor("three", {2, 2, 3}, GenericOfThree{}, Write(three));
  std::vector<int32_t> h1 = Poisoned(12), h2 = Poisoned(12), h3 = Poisoned(12);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(one, h1).Set(two, h2).Set(three, h3); }));
  EXPECT_EQ(h1, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4}));
  EXPECT_EQ(h2, (std::vector<int32_t>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
  EXPECT_EQ(h3, (std::vector<int32_t>{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}));
}

struct CountVisits {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> v) const { v(i) += 1; }
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<int32_t> v) const { v(i.y, i.x) += 1; }
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> v) const { v(i.z, i.y, i.x) += 1; }
};

// Of large extents a thread of a device computes several elements, across or down.
TEST_P(IndexRank, OfLargeExtentsIsEachElementOnce) {
  const std::pair<Extent, int64_t> large[] = {{Extent(1500003), 1500003},
                                              {Extent(1009, 1501), 1009 * 1501},
                                              {Extent(13, 120011), 13 * 120011},
                                              {Extent(5, 310, 1013), 5 * 310 * 1013}};
  for (const auto& [extent, elements] : large) {
    Graph g("visits");
    auto y = g.Output<int32_t>("y", extent, kPinned);
    g.Fill("fill", y, 7);
    g.ParallelFor("count", extent, CountVisits{}, ReadWrite(y));
    absl::StatusOr<HostBuffer<int32_t>> visits = runtime_->MakeHostBuffer<int32_t>(elements);
    ASSERT_OK(visits.status());
    std::fill(visits->begin(), visits->end(), 0x5a5a5a5a);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(y, *visits); }));
    EXPECT_EQ(std::count(visits->begin(), visits->end(), 8), elements);
  }
}

TEST_P(IndexRank, OfAnExtentChoosesTheOverload) {
  for (const Extent& extent : Extents()) {
    Graph g("overloads");
    auto y = g.Output<int32_t>("y", extent);
    g.ParallelFor("fill", extent, AllRanks{}, Write(y));
    std::vector<int32_t> hy = Poisoned(12);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(y, hy); }));
    EXPECT_EQ(hy, std::vector<int32_t>(12, extent.rank));
  }
}

TEST_P(IndexRank, OfAnExtentChoosesTheOverloadOfAStepThatIsDeclaredAgain) {
  GraphCache cache(*runtime_);
  for (int round = 0; round < 2; ++round) {
    for (const Extent& extent : Extents()) {
      std::vector<int32_t> hy = Poisoned(12);
      absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& g, Bindings& io) {
        auto y = g.Output<int32_t>("y", extent);
        g.ParallelFor("fill", extent, AllRanks{}, Write(y));
        io.Set(y, hy);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(hy, std::vector<int32_t>(12, extent.rank));
    }
  }
  EXPECT_EQ(cache.counts().compiled, 3);
  EXPECT_EQ(cache.counts().found, 3);
}

TEST_P(IndexRank, ThatNoOverloadTakesIsRefused) {
  Graph g("mismatch");
  auto y = g.Output<int32_t>("y", {3, 4});
  g.ParallelFor("list", {3, 4}, OneAndThree{}, Write(y));
  g.ParallelFor("extent", Extent(3, 4), OneAndThree{}, ReadWrite(y));
  const std::string text(runtime_->Compile(g).status().message());
  EXPECT_NE(text.find("node 'list'"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'extent'"), std::string::npos) << text;
  EXPECT_NE(text.find("the functor takes a 1-D index and the extent is 2-D"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Host, IndexRank, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, IndexRank, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::index_rank_test
