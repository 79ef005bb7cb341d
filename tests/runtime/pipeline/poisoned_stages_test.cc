// Which stages are halted for poisoned States, for which keys, and when they may be reset.
#include "src/runtime/pipeline/poisoned_stages.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/runtime/pipeline/abandoned_items.h"

namespace penstock::runtime::poisoned_stages_test {
namespace {

using Keys = std::vector<uint64_t>;
using Stages = std::vector<int>;

TEST(PoisonedStages, HaltsAStageUntilItsResetHasEnded) {
  PoisonedStages stages({false, false, false}, 4);
  EXPECT_FALSE(stages.MayReset([](int) { return 0; })) << "none is halted";
  stages.Note(1, 77);
  stages.Note(1, 88);
  EXPECT_FALSE(stages.halted(0));
  EXPECT_TRUE(stages.halted(1));
  EXPECT_FALSE(stages.MayReset([](int stage) { return stage == 1 ? 2 : 0; })) << "its runs have not ended";
  EXPECT_TRUE(stages.MayReset([](int stage) { return stage == 0 ? 2 : 0; })) << "another stage's do not matter";
  const PoisonedStages::Halted halted = stages.Take();
  EXPECT_EQ(halted.stages, Stages({1}));
  EXPECT_EQ(halted.keys, Keys({77})) << "its States have no key, so the user is called once";
  stages.Note(2, 5);
  stages.End(halted.stages);
  EXPECT_FALSE(stages.halted(1));
  EXPECT_TRUE(stages.halted(2)) << "it was poisoned after what the user has set";
  EXPECT_EQ(stages.Take().stages, Stages({2}));
}

TEST(PoisonedStages, ResetsTheStatesOfEachKeyOnce) {
  PoisonedStages stages({true, true, false}, 4);
  stages.Note(0, 7);
  stages.Note(0, 8);
  stages.Note(0, 7);
  stages.Note(1, 8);
  stages.Note(2, 9);
  const PoisonedStages::Halted halted = stages.Take();
  EXPECT_EQ(halted.stages, Stages({0, 1, 2}));
  EXPECT_EQ(halted.keys, Keys({7, 8})) << "the State without a key is reset by the call for any";
}

TEST(AbandonedItems, KeepsEntriesUntilTheirRunsHaveDrained) {
  AbandonedItems items;
  items.Add(3, 0);
  items.Add(5, 1);
  items.Add(3, AbandonedItems::kWholeItem);
  EXPECT_EQ(items.size(), 3);
  EXPECT_TRUE(items.Has(3));
  EXPECT_FALSE(items.Has(4));
  items.RemoveItem(3);
  EXPECT_EQ(items.size(), 1);
  items.RemoveDrained([](const AbandonedItems::Entry& entry) { return entry.item == 4; });
  EXPECT_TRUE(items.Has(5));
  items.RemoveDrained([](const AbandonedItems::Entry& entry) { return entry.stage == 1; });
  EXPECT_EQ(items.size(), 0);
}

}  // namespace
}  // namespace penstock::runtime::poisoned_stages_test
