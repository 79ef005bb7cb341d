#include "src/driver/host/handle_table.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::driver::host::handle_table_test {
namespace {

TEST(HandleTableTest, FindsWhatWasAdded) {
  HandleTable<std::string> table;
  const uint64_t a = table.Add("a"), b = table.Add("b");
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, b);
  ASSERT_NE(table.Find(a), nullptr);
  EXPECT_EQ(*table.Find(a), "a");
  EXPECT_EQ(*table.Find(b), "b");
}

TEST(HandleTableTest, ZeroAndForeignHandlesFindNothing) {
  HandleTable<int> table;
  const uint64_t one = table.Add(1);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(one + 1), nullptr);
  EXPECT_EQ(table.Find(~uint64_t{0}), nullptr);
}

TEST(HandleTableTest, ARemovedHandleStaysDeadWhenItsPlaceIsTakenAgain) {
  HandleTable<int> table;
  const uint64_t before = table.Add(1);
  EXPECT_TRUE(table.Remove(before));
  EXPECT_FALSE(table.Remove(before));
  const uint64_t after = table.Add(2);
  EXPECT_NE(before, after);
  EXPECT_EQ(table.Find(before), nullptr);
  EXPECT_EQ(*table.Find(after), 2);
}

TEST(HandleTableTest, PlacesAreUsedAgain) {
  HandleTable<int> table;
  constexpr uint64_t kPlaces = (1 << 24) - 1;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bits = table.Add(i);
    ASSERT_EQ(bits & kPlaces, 0u) << "the only place";
    table.Remove(bits);
  }
}

}  // namespace
}  // namespace penstock::driver::host::handle_table_test
