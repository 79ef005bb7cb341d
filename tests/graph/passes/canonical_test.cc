// Equal graphs, case by case; random_canonical_test.cc declares random ones again.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph/passes/canonical.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/random_graph.h"

namespace penstock::graph::canonical_test {
namespace {

TEST(Canonical, TheDeclaringThreadDoesNotMatter) {
  const RandomGraph here = MakeRandomGraph(77, 24);
  std::vector<Plan> plans(4);
  std::vector<std::thread> threads;
  for (Plan& plan : plans) {
    threads.emplace_back([&plan] {
      const RandomGraph there = MakeRandomGraph(77, 24);
      plan = PlanOf(there.builder, there.options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Plan& plan : plans) EXPECT_EQ(plan, PlanOf(here.builder, here.options));
}

// Two conflicting nodes the other way round are another graph.
TEST(Canonical, TheDeclaredOrderOfAConflictMatters) {
  const auto graph = [](bool swapped) {
    ModelBuilder g;
    const int32_t t = g.Scratch("t", 4);
    g.Fill("f", t);
    g.For(swapped ? "b" : "a", Change{t});
    g.For(swapped ? "a" : "b", Change{t});
    return g;
  };
  const ModelBuilder one = graph(false), other = graph(true);
  EXPECT_NE(PlanOf(one).structure_hash, PlanOf(other).structure_hash);
  EXPECT_FALSE(ByName(PlanOf(one), one.model) == ByName(PlanOf(other), other.model));
}

TEST(Canonical, NodesOfOneDepthGoByNameShorterFirst) {
  ModelBuilder g;
  for (const char* name : {"node 10", "b", "node 9", "a"}) g.For(name);
  std::string names;
  for (const PlanNode& node : PlanOf(g).nodes) names += node.name + ", ";
  EXPECT_EQ(names, "a, b, node 9, node 10, ");
}

// A name may differ from another only far behind what fits the sort key.
TEST(Canonical, LongNamesAreComparedToTheirEnd) {
  const std::string stem(100, 'x');
  ModelBuilder g, h;
  for (const char* end : {"c1", "a2", "b1", "a1"}) g.For(stem + end);
  for (const char* end : {"a1", "b1", "a2", "c1"}) h.For(stem + end);
  g.For("y");  // leaves them no common prefix
  h.For("y");
  EXPECT_EQ(ByName(PlanOf(g), g.model), ByName(PlanOf(h), h.model));
}

// More tiles than the parts that "all" is tracked in.
TEST(Canonical, TilesInAnyOrderHaveEqualPlansAndHashes) {
  const auto graph = [](bool backwards) {
    ModelBuilder g;
    constexpr int kTiles = 100;
    const int32_t t = g.Scratch("t", 2 * kTiles);
    g.For("all", Out{t});
    const auto tile = [&](int i) { return backwards ? kTiles - 1 - i : i; };
    const auto box = [&](int i) { return Slice(2 * tile(i), 1); };
    for (int i = 0; i < kTiles; ++i) g.For("write " + std::to_string(tile(i)), Out{t, box(i)});
    for (int i = 0; i < kTiles; ++i) g.For("read " + std::to_string(tile(i)), In{t, box(i)});
    return g;
  };
  const ModelBuilder one = graph(false), other = graph(true);
  EXPECT_EQ(PlanOf(one).structure_hash, PlanOf(other).structure_hash);
  EXPECT_EQ(ByName(PlanOf(one), one.model), ByName(PlanOf(other), other.model));
}

ModelBuilder Graph() {
  ModelBuilder g;
  const int32_t n = g.Param("n", 100);
  const int32_t x = g.Input("x", Extent(g.ParamDim(n))), y = g.Output("y", Extent(g.ParamDim(n)));
  const int32_t t = g.Scratch("t", 64);
  g.For("k0", In{x}, Out{t});
  NodeDecl& k1 = g.node(g.For("k1", In{t}, Out{y}));
  k1.args.push_back({ArgDecl::Form::kParam, 0, 4, n, ModelBuilder::kSerial, 0, ModelBuilder::TypeOf(4)});
  k1.arg_block.resize(8);
  g.node(g.Kernel("k2", In{t}));
  g.node(g.For("k3")).device = 0;
  return g;
}

TEST(StructureHash, IsTheSameInEveryProcessAndBuild) {
  EXPECT_EQ(PlanOf(Graph()).structure_hash, 4766866218207498849u) << "changes only with what a plan depends on";
}

TEST(StructureHash, LeavesOutWhatNoPlanDependsOn) {
  const uint64_t hash = PlanOf(Graph()).structure_hash;
  ModelBuilder g = Graph();
  g.node(1).arg_block[0] = std::byte{7};
  g.node(1).code.fallback = std::make_shared<int>(1);
  g.node(1).concurrency = 3;
  for (BufferDecl& b : g.model.buffers) b.type.mangled = 7;
  PlanOptions options = Devices(1);
  options.slots = 3;
  options.devices[0].memory_bytes = int64_t{1} << 40;
  EXPECT_EQ(PlanOf(g, options).structure_hash, hash);
}

TEST(StructureHash, CoversEveryByteOfAName) {
  std::set<uint64_t> seen;
  const auto see = [&](const std::string& name) {
    ModelBuilder g;
    g.model.name = Name(name);
    EXPECT_TRUE(seen.insert(PlanOf(g).structure_hash).second) << "'" << name << "' hashes like another name";
  };
  for (size_t length = 1; length < 40; ++length) {
    see(std::string(length, 'a'));
    for (size_t i = 0; i < length; ++i) see(std::string(i, 'a') + 'b' + std::string(length - i - 1, 'a'));
  }
}

TEST(StructureHash, CoversWhatDecidesThePlan) {
  const std::vector<std::pair<const char*, std::function<void(ModelBuilder&)>>> changes = {
      {"graph name", [](ModelBuilder& g) { g.model.name = Name("h"); }},
      {"param name", [](ModelBuilder& g) { g.model.params[0].name = Name("m"); }},
      {"param maximum", [](ModelBuilder& g) { g.model.params[0].max = 99; }},
      {"buffer name", [](ModelBuilder& g) { g.model.buffers[0].name = Name("z"); }},
      {"role", [](ModelBuilder& g) { g.model.buffers[0].role = BufferRole::kInOut; }},
      {"value of a parameter",
       [](ModelBuilder& g) {
         g.model.buffers[0].role = BufferRole::kParam;
         g.model.buffers[0].param = 0;
       }},
      {"where", [](ModelBuilder& g) { g.model.buffers[0].where = kPinned; }},
      {"element size", [](ModelBuilder& g) { g.model.buffers[2].type.size = 8; }},
      {"extent", [](ModelBuilder& g) { g.model.buffers[2].extent = Extent(65); }},
      {"rank", [](ModelBuilder& g) { g.model.buffers[2].extent = Extent(1, 64); }},
      {"node name", [](ModelBuilder& g) { g.node(0).name = Name("k"); }},
      {"kind", [](ModelBuilder& g) { g.node(3).kind = NodeKind::kHost; }},
      {"access mode", [](ModelBuilder& g) { g.node(2).accesses[0].mode = AccessMode::kReadWrite; }},
      {"accessed buffer", [](ModelBuilder& g) { g.node(2).accesses[0].buffer = 1; }},
      {"another access", [](ModelBuilder& g) { g.node(3).accesses.push_back(g.node(2).accesses[0]); }},
      {"argument offset", [](ModelBuilder& g) { g.node(1).args[0].offset = 4; }},
      {"argument form", [](ModelBuilder& g) { g.node(1).args[0].form = ArgDecl::Form::kValue; }},
      {"argument block", [](ModelBuilder& g) { g.node(1).arg_block.resize(12); }},
      {"iteration extent", [](ModelBuilder& g) { g.node(0).extent = Extent(2); }},
      {"kernel block", [](ModelBuilder& g) { g.node(2).shape.block[0] = 128; }},
      {"kernel programmatic", [](ModelBuilder& g) { g.node(2).shape.programmatic = true; }},
      {"kernel grid", [](ModelBuilder& g) { g.node(2).shape.grid[1] = Dim(2); }},
      {"pin", [](ModelBuilder& g) { g.node(3).device = -1; }},
      {"priority", [](ModelBuilder& g) { g.node(3).priority = 1; }},
      {"runs in it", [](ModelBuilder& g) { g.node(3).runs = 70; }},
      {"after", [](ModelBuilder& g) { g.After(3, 0); }},
      {"source", [](ModelBuilder& g) { g.node(2).code.source = Source("t", "k").shared_parts(); }},
      {"source's text", [](ModelBuilder& g) { g.node(2).code.source = Source("u", "k").shared_parts(); }},
      {"source's kernel", [](ModelBuilder& g) { g.node(2).code.source = Source("t", "l").shared_parts(); }},
      {"source's option",
       [](ModelBuilder& g) { g.node(2).code.source = Source("t", "k", {.options = {"-D"}}).shared_parts(); }},
      {"source's header",
       [](ModelBuilder& g) { g.node(2).code.source = Source("t", "k", {.headers = {{"h", ""}}}).shared_parts(); }},
      {"source's file",
       [](ModelBuilder& g) { g.node(2).code.source = Source("t", "k", {.file = "f"}).shared_parts(); }},
  };
  std::vector<std::pair<uint64_t, std::string>> seen{{PlanOf(Graph()).structure_hash, "none"}};
  const auto see = [&](uint64_t hash, const char* what) {
    for (const auto& [other, name] : seen) EXPECT_NE(hash, other) << what << " hashes like " << name;
    seen.push_back({hash, what});
  };
  for (const auto& [what, change] : changes) {
    ModelBuilder g = Graph();
    change(g);
    see(PlanOf(g).structure_hash, what);
  }
  PlanOptions options = Devices(1);
  options.max_lanes = 2;
  see(PlanOf(Graph(), options).structure_hash, "lanes");
  options = Devices(1);
  options.events_once = true;
  see(PlanOf(Graph(), options).structure_hash, "events once");
  options = Devices(1);
  options.costs = {1, -1, -1, 50};
  see(PlanOf(Graph(), options).structure_hash, "costs");
  see(PlanOf(Graph(), Devices(2)).structure_hash, "devices");
  options = Devices(2);
  options.default_device = 1;
  see(PlanOf(Graph(), options).structure_hash, "default device");
}

}  // namespace
}  // namespace penstock::graph::canonical_test
