// Id and Table: what compiles, and that both index forms reach the same element.
#include "penstock/detail/table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::detail::table_test {
namespace {

using NodeId = Id<struct NodeTag>;
using LaneId = Id<struct LaneTag>;

template <class T, class I>
concept IndexableBy = requires(T table, I index) { table[index]; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };

TEST(Id, ConvertsToAndFromIntegersButNotToAnotherKind) {
  static_assert(std::is_convertible_v<int32_t, NodeId> && std::is_convertible_v<NodeId, int32_t>);
  static_assert(!std::is_convertible_v<LaneId, NodeId> && !std::is_constructible_v<NodeId, std::string>);
  static_assert(Comparable<NodeId, NodeId> && Comparable<NodeId, int> && !Comparable<NodeId, LaneId>);
  EXPECT_EQ(NodeId(), -1);
  EXPECT_EQ(NodeId(3) + 1, 4);
}

TEST(Table, TakesItsOwnIdsAndPlainIntegers) {
  static_assert(IndexableBy<Table<NodeId, int>, NodeId> && IndexableBy<Table<NodeId, int>, size_t>);
  static_assert(!IndexableBy<Table<NodeId, int>, LaneId>);
  Table<NodeId, std::string> names;
  EXPECT_EQ(names.next(), 0);
  names.push_back("a");
  names.push_back("b");
  EXPECT_EQ(names[NodeId(1)], "b");
  EXPECT_EQ(names[size_t{1}], "b");
  names[names.ids().begin().id] = "c";
  EXPECT_EQ(names, (std::vector<std::string>{"c", "b"}));
}

TEST(Table, IdsAreThoseOfItsElements) {
  Table<NodeId, bool> marks;
  marks.assign(3, false);
  std::vector<int32_t> seen;
  for (NodeId n : marks.ids()) {
    marks[n] = n != 1;
    seen.push_back(n);
  }
  EXPECT_EQ(seen, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(marks, (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace penstock::detail::table_test
