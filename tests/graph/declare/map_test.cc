// What a Map declares: one node, whose formula has each part of the expression once, and mistakes that name it.
#include "penstock/map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/support/status.h"

namespace penstock::graph::map_test {
namespace {

using expr::Of;
using testing::HasSubstr;

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }
std::string MistakesOf(const Graph& g) { return Text(MakePlan(g.model(), Devices(1)).status()); }

TEST(DeclaredMap, HasEachPartOfItsExpressionOnce) {
  Graph g("g");
  auto x = g.Input<float>("x", 8), y = g.Input<float>("y", 8), z = g.Output<float>("z", 8);
  auto p = g.Param<float>("p");
  const auto d = Of(x) - Of(y);
  Map(g, "z", Write(z), d * d + p * d + Of(x) + p);
  const NodeDecl& node = g.model().nodes[0];
  EXPECT_EQ(node.accesses.size(), 3u);
  EXPECT_EQ(node.args.size(), 6u);  // the Range, the formula, three Views, the parameter
  EXPECT_EQ(node.code.formula->steps.size(), 9u);
  EXPECT_EQ(MistakesOf(g), "");
  // It is planned for a CUDA device though nvcc did not compile it.
  EXPECT_OK(MakePlan(g.model(), Devices(1, true)).status());
}

TEST(DeclaredMap, HasTheTypesThatCppWouldGive) {
  Graph g("g");
  const auto bytes = Of(g.Input<uint8_t>("bytes", 8));
  const auto ints = Of(g.Input<int32_t>("ints", 8));
  const auto longs = Of(g.Input<int64_t>("longs", 8));
  const auto floats = Of(g.Input<float>("floats", 8));
  const auto doubles = Of(g.Input<double>("doubles", 8));
  const auto is = [](auto value, auto zero) {
    return std::is_same_v<typename decltype(value)::value_type, decltype(zero)>;
  };
  EXPECT_TRUE(is(bytes + bytes, int32_t{}));
  EXPECT_TRUE(is(-bytes, int32_t{}));
  EXPECT_TRUE(is(expr::Min(bytes, bytes), uint8_t{}));
  EXPECT_TRUE(is(bytes + 1, int32_t{}));
  EXPECT_TRUE(is(ints + 1, int32_t{}));
  EXPECT_TRUE(is(ints * 1u, int64_t{}));
  EXPECT_TRUE(is(ints + int64_t{1}, int64_t{}));
  EXPECT_TRUE(is(ints + longs, int64_t{}));
  EXPECT_TRUE(is(longs + floats, float{}));
  EXPECT_TRUE(is(2.0 * floats, float{}));
  EXPECT_TRUE(is(2 * floats, float{}));
  EXPECT_TRUE(is(floats / doubles, double{}));
  EXPECT_TRUE(is(floats < 1, false));
  EXPECT_TRUE(is(expr::Select(floats < 1, doubles, floats), double{}));
}

TEST(DeclaredMap, TellsItsMistakesByItsName) {
  const std::string prefix = "graph 'g' node 'm' (a.cc:7)";
  const auto mistake = [](auto declare) {
    Graph g("g");
    declare(g, g.InOut<float>("x", 8), g.InOut<float>("z", 8));
    return MistakesOf(g);
  };
  using Buffer = BufferHandle<float>;
  EXPECT_THAT(mistake([](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), Of(x, Slice(0, 4))); }),
              HasSubstr(prefix + ": reads {4} elements of 'x' ("));
  EXPECT_THAT(
      mistake([](Graph& g, Buffer x, Buffer) { Map(g, At("m", 7), Write(x, Slice(0, 4)), Of(x, Slice(2, 4))); }),
      HasSubstr("which may be the same memory; it writes the elements that it reads, or memory that it does not"));
  EXPECT_EQ(mistake([](Graph& g, Buffer x, Buffer) { Map(g, At("m", 7), Write(x), Of(x) + 1); }), "");
  EXPECT_THAT(mistake([](Graph& g, Buffer x, Buffer z) {
                Graph other("other");
                Map(g, At("m", 7), Write(z), Of(x) * other.Param<float>("p"));
              }),
              HasSubstr(prefix + ": argument 2 is a parameter of another graph"));
  EXPECT_THAT(mistake([](Graph& g, Buffer, Buffer z) {
                Graph other("other");
                Map(g, At("m", 7), Write(z), Of(other.Input<float>("x", 8)));
              }),
              HasSubstr("another graph"));
  EXPECT_THAT(mistake([](Graph& g, Buffer, Buffer z) { Map(g, At("m", 7), Write(z), Of(Buffer())); }),
              HasSubstr("its handle was never set"));
  const std::string too_large =
      prefix + ": its expression has more than 1024 operations, or more than 512 one in another";
  const auto chain = [](Buffer x, int length) {
    auto value = Of(x);
    for (int i = 0; i < length; ++i) value = expr::Exp(value);
    return value;
  };
  EXPECT_EQ(mistake([&](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), chain(x, 511)); }), "");
  EXPECT_THAT(mistake([&](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), chain(x, 512)); }),
              HasSubstr(too_large));
  EXPECT_THAT(mistake([&](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), chain(x, 100000)); }),
              HasSubstr(too_large));
  // 3 operations for each term of a sum of pairs, but for the last.
  const auto sum = [](Buffer x, int terms) {
    std::vector<expr::Value<float>> all;
    for (int i = 0; i < terms; ++i) all.push_back(Of(x) + i);
    for (size_t step = 1; step < all.size(); step *= 2) {
      for (size_t i = 0; i + step < all.size(); i += 2 * step) all[i] = all[i] + all[i + step];
    }
    return all[0];
  };
  EXPECT_EQ(mistake([&](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), sum(x, 341)); }), "");
  EXPECT_THAT(mistake([&](Graph& g, Buffer x, Buffer z) { Map(g, At("m", 7), Write(z), sum(x, 342)); }),
              HasSubstr(too_large));
}

}  // namespace
}  // namespace penstock::graph::map_test
