// The pinned pool on computers with several NUMA nodes: where its slabs are pinned and which blocks lie in them. The
// computers are described to hwloc; the driver below notes the node its memory was asked for on.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/topology.h"
#include "tests/memory/pinned_only_driver.h"

namespace penstock::memory::pinned_nodes_test {
namespace {

thread_local int node_of_this_thread = -1;

// Knows on which node each of its slabs was pinned.
class NodeDriver : public PinnedOnlyDriver {
 public:
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    absl::StatusOr<void*> memory = PinnedOnlyDriver::AllocatePinned(bytes);
    const base::MutexLock lock(mu_);
    if (memory.ok()) slabs_[static_cast<std::byte*>(*memory)] = node_of_this_thread;
    return memory;
  }
  int NodeOf(const PinnedBlock& block) {
    const base::MutexLock lock(mu_);
    return std::prev(slabs_.upper_bound(static_cast<std::byte*>(block.data())))->second;
  }

 private:
  base::Mutex mu_;
  std::map<std::byte*, int> slabs_ ABSL_GUARDED_BY(mu_);
};

class PinnedNodes : public testing::Test {
 protected:
  std::shared_ptr<PinnedPool> MakePool(size_t budget, int node = -1) {
    return PinnedPool::Create(driver_, {.slab_bytes = 1024,
                                        .budget = Budget(budget),
                                        .node = node,
                                        .on_node = [](int on, const std::function<void()>& allocate) {
                                          node_of_this_thread = on;
                                          allocate();
                                          node_of_this_thread = -1;
                                        }});
  }
  int NodeOfNext(PinnedPool& pool, size_t bytes, int node) {
    kept_.push_back(MustAllocate(pool, bytes, node));
    return driver_.NodeOf(kept_.back());
  }

  NodeDriver driver_;
  std::vector<PinnedBlock> kept_;
};

TEST_F(PinnedNodes, BlocksLieOnTheNodeTheyAreAskedForOn) {
  for (const int nodes : {1, 2, 4}) {
    const absl::StatusOr<Topology> computer = Topology::OfDescription(absl::StrCat("numa:", nodes, " pu:1"));
    ASSERT_TRUE(computer.ok()) << computer.status();
    ASSERT_EQ(computer->nodes(), nodes);
    auto pool = MakePool(8 * 1024);
    for (int round = 0; round < 2; ++round) {
      for (int n = 0; n < computer->nodes(); ++n) EXPECT_EQ(NodeOfNext(*pool, 256, n), n) << nodes << " nodes";
    }
    EXPECT_EQ(pool->gauges().slabs, nodes);
    kept_.clear();
  }
}

TEST_F(PinnedNodes, AFullNodeGrowsAlthoughAnotherHasRoom) {
  auto pool = MakePool(3 * 1024);
  EXPECT_EQ(NodeOfNext(*pool, 256, 0), 0);
  EXPECT_EQ(NodeOfNext(*pool, 1024, 1), 1);
  EXPECT_EQ(NodeOfNext(*pool, 512, 1), 1);
  EXPECT_EQ(pool->gauges().slabs, 3);
}

TEST_F(PinnedNodes, AnotherNodeServesWhenTheBudgetIsSpent) {
  auto pool = MakePool(2 * 1024);
  EXPECT_EQ(NodeOfNext(*pool, 256, 0), 0);
  EXPECT_EQ(NodeOfNext(*pool, 1024, 1), 1);
  EXPECT_EQ(NodeOfNext(*pool, 256, 1), 0);
  EXPECT_EQ(pool->Allocate(1024, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PinnedNodes, AnotherNodeServesWhenTheDriverRefuses) {
  auto pool = MakePool(4 * 1024);
  EXPECT_EQ(NodeOfNext(*pool, 256, 0), 0);
  driver_.fail = true;
  EXPECT_EQ(NodeOfNext(*pool, 256, 1), 0);
}

TEST_F(PinnedNodes, BlocksThatNameNoneLieOnThePoolsNode) {
  auto pool = MakePool(4 * 1024, /*node=*/1);
  EXPECT_EQ(NodeOfNext(*pool, 256, 0), 0);
  EXPECT_EQ(NodeOfNext(*pool, 256, -1), 1);
}

TEST_F(PinnedNodes, APoolWithoutANodeTakesWhatThereIs) {
  auto pool = MakePool(4 * 1024);
  EXPECT_EQ(NodeOfNext(*pool, 256, 2), 2);
  EXPECT_EQ(NodeOfNext(*pool, 256, -1), 2);
  EXPECT_EQ(NodeOfNext(*pool, 1024, -1), -1);
}

TEST_F(PinnedNodes, TheNextSlabIsPinnedOnTheNodeThatIsShort) {
  auto pool = MakePool(3 * 1024);
  EXPECT_EQ(NodeOfNext(*pool, 256, 0), 0);
  EXPECT_EQ(NodeOfNext(*pool, 1000, 1), 1);
  driver_.AwaitCalls(3);
  EXPECT_EQ(NodeOfNext(*pool, 512, 1), 1);
  EXPECT_EQ(driver_.calls.load(), 3);
}

// A slab of each node stays.
TEST_F(PinnedNodes, OneIdleSlabOfEachNodeIsKept) {
  SlabList slabs;
  std::vector<std::byte> memory(5 * 256);
  const TimePoint now{};
  for (int s = 0; s < 5; ++s) slabs.Add(memory.data() + 256 * s, 256, s % 2, now);
  const std::vector<Slab> taken = slabs.TakeIdle(now, 256);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(slabs.FreeOn(0), 256u);
  EXPECT_EQ(slabs.FreeOn(1), 256u);
}

}  // namespace
}  // namespace penstock::memory::pinned_nodes_test
