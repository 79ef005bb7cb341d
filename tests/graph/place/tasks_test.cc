// The tasks of a graph: what each takes from which other, byte by byte, and what it costs.
#include "graph/place/tasks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "graph/place/figures.h"
#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::tasks_test {
namespace {

PlaceTasks TasksOf(const ModelBuilder& g, const PlanOptions& options) {
  EXPECT_EQ(MistakeOf(g, options), "OK");
  return MakePlaceTasks(g.model, options, AssumeFigures(nullptr, options.devices));
}

// By the names of nodes; "" for what is not of a node.
std::map<std::string, int64_t> InputsOf(const ModelBuilder& g, const PlaceTasks& tasks, int32_t node) {
  std::map<std::string, int64_t> inputs;
  for (const PlaceInput& input : tasks.graph.tasks[static_cast<size_t>(tasks.task[node])].inputs) {
    std::string name;
    for (const DeclId n : g.model.nodes.ids()) {
      if (tasks.task[n] == input.from) name = std::string(g.model.nodes[n].name.view());
    }
    EXPECT_EQ(inputs.count(name), 0U) << "it is named twice";
    inputs[name] = input.bytes;
  }
  return inputs;
}
using Inputs = std::map<std::string, int64_t>;

TEST(PlaceTasks, TakeWhatOthersHaveWritten) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {10}), y = g.Scratch("y", {10}), bound = g.Input("bound", {10}),
                state = g.State("state", {10}, 1);
  g.For("a", In{bound}, Out{x});
  const int32_t b = g.For("b", In{x}, In{state}, Out{y});
  const int32_t c = g.For("c", Change{x}, In{y});
  const int32_t d = g.For("d", Out{x});
  const int32_t host = g.Host("host", In{x});
  const int32_t late = g.For("late", Out{y});
  g.After(late, host);
  g.node(d).device = 1;
  const PlaceTasks tasks = TasksOf(g, Devices(3));
  EXPECT_EQ(InputsOf(g, tasks, 0), Inputs());
  EXPECT_EQ(InputsOf(g, tasks, b), (Inputs{{"a", 40}, {"", 40}}));
  EXPECT_EQ(InputsOf(g, tasks, c), (Inputs{{"a", 40}, {"b", 40}}));
  EXPECT_EQ(InputsOf(g, tasks, d), Inputs());
  EXPECT_EQ(InputsOf(g, tasks, host), (Inputs{{"d", 40}}));
  EXPECT_EQ(InputsOf(g, tasks, late), (Inputs{{"host", 0}}));
  EXPECT_EQ(tasks.devices, (std::vector<DeviceId>{0, 1, 2, -1}));
  EXPECT_EQ(tasks.graph.tasks[static_cast<size_t>(tasks.task[0])].device, -1);
  EXPECT_EQ(tasks.graph.tasks[static_cast<size_t>(tasks.task[d])].device, 1);
  EXPECT_EQ(tasks.graph.tasks[static_cast<size_t>(tasks.task[host])].device, 3);
  EXPECT_EQ(tasks.graph.tasks[0].device, 1);  // of the State
}

TEST(PlaceTasks, CostWhatIsKnownElseTheirBytesOrOperations) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {10'000'000}), y = g.Scratch("y", {10'000'000}), in = g.Input("in", {10'000'000});
  g.Copy("upload", in, x);
  g.For("bytes", In{x}, Out{y});
  const int32_t flops = g.For("flops", Change{y});
  g.node(flops).flops = 1e9;
  g.For("known", Change{y}, Temporary{x});
  PlanOptions options = Devices(2, true);
  options.costs = {-1, -1, -1, 7};
  const PlaceTasks tasks = TasksOf(g, options);
  EXPECT_NEAR(tasks.Cost(0, 1), 10 + 40e6 / 12e3, 1e-6);
  EXPECT_NEAR(tasks.Cost(1, 1), 5 + 80e6 / 300e3, 1e-6);
  EXPECT_NEAR(tasks.Cost(2, 0), 5 + 80e6 / 300e3, 1e-6);
  EXPECT_EQ(tasks.Cost(3, 0), 7);
  g.node(flops).flops = 8e9;
  EXPECT_NEAR(TasksOf(g, options).Cost(2, 0), 5 + 1e3, 1e-6);
}

TEST(PlaceTasks, CountEachBufferOnceWhereMemoryIsLimited) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {10}), y = g.Scratch("y", {10});
  g.For("a", Out{x});
  g.For("b", In{x}, Out{y});
  g.For("c", Change{x}, Change{y});
  PlanOptions options = Devices(2);
  options.slots = 3;
  options.devices[0].memory_bytes = 1800;
  options.device_bytes = 2100;
  PlaceTasks tasks = TasksOf(g, options);
  EXPECT_EQ(tasks.graph.tasks[0].bytes, 0);
  LimitMemory(options, tasks);
  EXPECT_EQ(tasks.graph.tasks[0].bytes, 256);
  EXPECT_EQ(tasks.graph.tasks[1].bytes, 256);
  EXPECT_EQ(tasks.graph.tasks[2].bytes, 0);
  EXPECT_EQ(tasks.graph.devices[0].memory_bytes, 600);
  EXPECT_EQ(tasks.graph.devices[1].memory_bytes, 700);
}

// Boxes of two buffers, against the last writer of each element.
TEST(PlaceTasks, TakeBoxesAsElementsSay) {
  constexpr int kElements = 24;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    ModelBuilder g;
    int32_t buffers[2];
    std::vector<int> writer[2];
    for (int b = 0; b < 2; ++b) {
      buffers[b] = g.Scratch("buffer " + std::to_string(b), {kElements});
      writer[b].assign(kElements, g.Fill("fill " + std::to_string(b), buffers[b]));
    }
    std::vector<Inputs> wanted(2);
    for (int n = 2; n < 14; ++n) {
      const std::string name = "node " + std::to_string(n);
      const int from = below(kElements), count = 1 + below(kElements - from), of = below(2);
      const int to = below(kElements), written = 1 + below(kElements - to);
      const auto box = [](int first, int size) { return Box{.whole = false, .offset = {first}, .size = {size}}; };
      g.For(name, In{buffers[of], box(from, count)}, Out{buffers[1 - of], box(to, written)});
      Inputs& inputs = wanted.emplace_back();
      for (int i = from; i < from + count; ++i) {
        const int by = writer[of][static_cast<size_t>(i)];
        inputs[std::string(g.model.nodes[by].name.view())] += 4;
      }
      for (int i = to; i < to + written; ++i) writer[1 - of][static_cast<size_t>(i)] = n;
    }
    const PlaceTasks tasks = TasksOf(g, Devices(2));
    for (int n = 2; n < 14; ++n) {
      ASSERT_EQ(InputsOf(g, tasks, n), wanted[static_cast<size_t>(n)]) << seed << " node " << n;
    }
  }
}

}  // namespace
}  // namespace penstock::graph::tasks_test
