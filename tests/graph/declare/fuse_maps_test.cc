// Which Maps become one node, what the new node is called and saves, and what keeps them apart. Random programs give
// what plain C++ gives for them in the order of their declarations. What runs of fused graphs compute is
// tests/conformance/graph/map_test.cc.
#include "graph/declare/fuse_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/detail/arguments.h"
#include "penstock/map.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/random_seeds.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

namespace penstock::graph::fuse_maps_test {
namespace {

using expr::Of;
using testing::HasSubstr;

constexpr int64_t kN = 8;

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }

// The graph after fusion; none: nothing is fused.
std::vector<FusedModel> FusedOf(const Graph& g) {
  std::vector<FusedModel> found;
  if (std::optional<FusedModel> fused = FuseMaps(g.model())) found.push_back(*std::move(fused));
  return found;
}

// The nodes after fusion, with what they write; those that were fused with what they no longer need.
std::string Fused(const Graph& g) {
  EXPECT_OK(MakePlan(g.model(), Devices(2)).status());
  const std::vector<FusedModel> found = FusedOf(g);
  if (found.empty()) return "apart";
  const FusedModel* const fused = found.data();
  EXPECT_OK(MakePlan(fused->model, Devices(2)).status());
  std::string text;
  for (const NodeDecl& node : fused->model.nodes) text += std::string(node.name.view()) + "; ";
  for (const FusedMap& map : fused->fused) {
    for (const BufferId b : map.unused) text += "-" + std::string(g.model().buffers[b].name.view()) + " ";
  }
  return text;
}

struct Chain {
  Graph g{"g"};
  BufferHandle<float> x = g.Input<float>("x", kN), z = g.Output<float>("z", kN);
  BufferHandle<float> t = g.Buffer<float>("t", kN), e = g.Buffer<float>("e", kN);
};

TEST(FusedMaps, AreOneNodeThatNamesThem) {
  Chain c;
  Map(c.g, At("axpy", 3), Write(c.t), 2.0f * Of(c.x) + 1.0f);
  Map(c.g, At("exp", 4), Write(c.e), expr::Exp(Of(c.t)));
  Map(c.g, At("clamp", 5), Write(c.z), expr::Clamp(Of(c.e), 0.0f, 1.0f)).Flops(7);
  const std::vector<FusedModel> found = FusedOf(c.g);
  ASSERT_FALSE(found.empty());
  const FusedModel* const fused = found.data();
  ASSERT_EQ(fused->model.nodes.count(), 1);
  const NodeDecl& node = fused->model.nodes[0];
  EXPECT_EQ(node.name.view(), "axpy + exp + clamp");
  EXPECT_STREQ(node.name.source().file, "a.cc:3, a.cc:4, a.cc");
  EXPECT_EQ(node.name.source().line, 5);
  EXPECT_EQ(node.flops, 7);
  EXPECT_EQ(node.accesses.size(), 2u);
  ASSERT_EQ(fused->fused.size(), 1u);
  EXPECT_EQ(fused->declared, (detail::Table<DeclId, DeclId>{2}));
  EXPECT_EQ(fused->fused[0].traffic_bytes, 4 * kN * 4);
  EXPECT_EQ(fused->fused[0].memory_bytes, 2 * kN * 4);
  const std::string text = TextOf(fused->fused[0], c.g.model());
  EXPECT_THAT(text,
              HasSubstr("one kernel for Maps 'axpy' (a.cc:3), 'exp' (a.cc:4) and 'clamp' (a.cc:5), without 't' ("));
  EXPECT_THAT(text, HasSubstr(": a run reads and writes 128 bytes less, and 64 bytes of memory are not needed"));
}

TEST(FusedMaps, MayFormADiamondAndHaveSeveralResults) {
  Chain c;
  auto y = c.g.Output<float>("y", kN);
  auto a = c.g.Buffer<float>("a", kN), b = c.g.Buffer<float>("b", kN);
  Map(c.g, "t", Write(c.t), Of(c.x) + 1.0f);
  Map(c.g, "a", Write(a), 2.0f * Of(c.t));
  Map(c.g, "b", Write(b), 3.0f * Of(c.t));
  Map(c.g, "z", Write(c.z), Of(a) + Of(b));
  Map(c.g, "y", Write(y), Of(b) - 1.0f);
  EXPECT_EQ(Fused(c.g), "t + a + b + z + y; -t -a -b ");
}

// What the first writes is read by the second and the last, which the third keeps apart until it joins them.
TEST(FusedMaps, JoinInAnyOrder) {
  Chain c;
  auto h = c.g.Buffer<float>("h", kN);
  Map(c.g, "scale", Write(c.t), 1.5f * Of(c.x));
  Map(c.g, "inner", Write(c.e), Of(c.t) * Of(c.t));
  Map(c.g, "half", Write(h), expr::Tanh(Of(c.e)));
  Map(c.g, "gelu", Write(c.z), Of(h) * Of(c.t));
  EXPECT_EQ(Fused(c.g), "scale + inner + half + gelu; -t -e -h ");
}

TEST(FusedMaps, KeepWhatTheyReadOfABufferThatIsWrittenAgain) {
  Chain c;
  Map(c.g, "first", Write(c.t), Of(c.x) + 1.0f);
  Map(c.g, "second", Write(c.e), Of(c.t) * 2.0f);
  Map(c.g, "again", Write(c.t), Of(c.e) + 1.0f);
  c.g.Host("look", [](std::span<const float>) {}, Read(c.t));
  Map(c.g, "z", Write(c.z), Of(c.t));
  // What `again` writes is read by `look`, so only that is in memory.
  EXPECT_EQ(Fused(c.g), "first + second + again; look; z; -e ");
}

TEST(FusedMaps, MayRunWhereTheLastOneStands) {
  Chain c;
  auto other = c.g.InOut<int32_t>("other", kN);
  const NodeRef first = Map(c.g, "t", Write(c.t), Of(c.x));
  c.g.ParallelFor("between", kN, AddOne{}, ReadWrite(other));
  const NodeRef second = Map(c.g, "z", Write(c.z), Of(c.t));
  const NodeRef last = c.g.Host("last", [] {}).After(second).After(first);
  c.g.Host("after", [] {}).After(last);
  EXPECT_EQ(Fused(c.g), "between; t + z; last; after; -t ");
  const Model model = FusedOf(c.g)[0].model;
  EXPECT_EQ(model.nodes[2].after, std::vector<DeclId>{1});
  EXPECT_EQ(model.nodes[3].after, std::vector<DeclId>{2});
}

TEST(FusedMaps, AreApartWhereTheBufferIsNeededOrTheOrderWouldChange) {
  using Change = std::function<void(Chain&)>;
  const auto first = [](Chain& c) { return Map(c.g, "t", Write(c.t), Of(c.x)); };
  const auto second = [](Chain& c) { return Map(c.g, "z", Write(c.z), Of(c.t)); };
  const struct {
    const char* what;
    Change declare;
  } kCases[] = {
      {"another reader",
       [&](Chain& c) { first(c), second(c), c.g.Host("h", [](std::span<const float>) {}, Read(c.t)); }},
      {"a copy", [&](Chain& c) { first(c), c.g.Copy("c", c.t, c.e), second(c); }},
      {"an Output between",
       [&](Chain& c) {
         auto out = c.g.Output<float>("out", kN);
         Map(c.g, "out", Write(out), Of(c.x));
         Map(c.g, "z", Write(c.z), Of(out));
       }},
      {"an Output in device memory between",
       [&](Chain& c) {
         auto out = c.g.Output<float>("out", kN, kDevice);
         Map(c.g, "out", Write(out), Of(c.x));
         Map(c.g, "z", Write(c.z), Of(out));
       }},
      {"pinned memory between",
       [&](Chain& c) {
         auto p = c.g.Buffer<float>("p", kN, kPinned);
         Map(c.g, "p", Write(p), Of(c.x));
         Map(c.g, "z", Write(c.z), Of(p));
       }},
      {"another device", [&](Chain& c) { first(c).On(1), second(c).On(0); }},
      {"another priority", [&](Chain& c) { first(c).Priority(1), second(c); }},
      {"another concurrency", [&](Chain& c) { first(c), second(c).Concurrency(2); }},
      {"After",
       [&](Chain& c) {
         const NodeRef t = first(c);
         const NodeRef h = c.g.Host("h", [] {}).After(t);
         second(c).After(h);
       }},
      {"After an earlier node",
       [&](Chain& c) {
         const NodeRef h = c.g.Host("h", [] {});
         first(c);
         second(c).After(h);
       }},
      {"named by After",
       [&](Chain& c) {
         const NodeRef t = first(c);
         c.g.Host("h", [] {}).After(t);
         second(c);
       }},
      {"InPlace", [&](Chain& c) { first(c), second(c).InPlace(c.t, c.z); }},
      {"Unordered",
       [&](Chain& c) {
         first(c);
         Map(c.g, "z", Unordered(Write(c.z)), Of(c.t));
       }},
      {"a part is read",
       [&](Chain& c) {
         first(c);
         Map(c.g, "z", Write(c.z, Slice(0, 4)), Of(c.t, Slice(2, 4)));
       }},
      {"a part is written",
       [&](Chain& c) {
         Map(c.g, "t", Write(c.t, Slice(0, 4)), Of(c.x, Slice(0, 4)));
         Map(c.g, "u", Write(c.t, Slice(4, 4)), Of(c.x, Slice(4, 4)));
         second(c);
       }},
      {"read by an alias",
       [&](Chain& c) {
         auto alias = c.g.Alias<int32_t>("alias", c.t);
         first(c);
         Map(c.g, "z", Write(c.z), expr::Cast<float>(Of(alias)));
       }},
      {"what is read is written between",
       [&](Chain& c) {
         auto y = c.g.InOut<float>("y", kN);
         Map(c.g, "t", Write(c.t), Of(y));
         c.g.Fill("fill", y, 1.0f);
         second(c);
       }},
      {"an element moves",
       [&](Chain& c) {
         auto y = c.g.InOut<float>("y", 2 * kN);
         Map(c.g, "t", Write(c.t), Of(y, Slice(0, kN)));
         Map(c.g, "y", Write(y, Slice(1, kN)), Of(c.t));
         Map(c.g, "z", Write(c.z), 1.0f);
       }},
      {"it is no Map",
       [&](Chain& c) {
         first(c);
         c.g.ParallelFor("z", kN, [](int64_t i, const float* t, float* z) { z[i] = t[i]; }, Read(c.t), Write(c.z));
       }},
  };
  for (const auto& [what, declare] : kCases) {
    Chain c;
    declare(c);
    EXPECT_EQ(Fused(c.g), "apart") << what;
  }
}

TEST(FusedMaps, AreApartWhereTheirShapesDiffer) {
  Graph g("g");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto x = g.Input<float>("x", n), y = g.Input<float>("y", kN);
  auto t = g.Buffer<float>("t", kN);
  auto u = g.Output<float>("u", n), z = g.Output<float>("z", kN);
  Map(g, "t", Write(t), Of(y));
  Map(g, "u", Write(u), Of(x));
  Map(g, "z", Write(z), Of(t));
  EXPECT_EQ(Fused(g), "u; t + z; -t ");
}

TEST(FusedMaps, AreNoMoreThanAKernelCanHold) {
  Graph g("g");
  auto x = g.Input<float>("x", kN), z = g.Output<float>("z", kN);
  BufferHandle<float> last = x;
  for (int i = 0; i < 100; ++i) {
    auto next = g.Buffer<float>(Name("t", i), kN);
    Map(g, Name("map", i), Write(next), Of(last) + 1.0f);
    last = next;
  }
  Map(g, "z", Write(z), Of(last));
  const std::vector<FusedModel> found = FusedOf(g);
  ASSERT_FALSE(found.empty());
  const FusedModel* const fused = found.data();
  EXPECT_OK(MakePlan(fused->model, Devices(1)).status());
  size_t maps = 0;
  for (const FusedMap& map : fused->fused) {
    EXPECT_LE(map.maps.size(), 64u);
    maps += map.maps.size();
  }
  EXPECT_EQ(maps, 101u);
  EXPECT_LE(fused->model.nodes.count(), 4);
}

// Runs the nodes one after the other, each in memory of its own buffers.
using Memory = std::vector<std::vector<int32_t>>;
void RunInOrder(const Model& model, Memory& memory) {
  for (const NodeDecl& node : model.nodes) {
    detail::Range range{1, 1, node.extent.dims[0].value};
    std::vector<View<int32_t>> views(node.args.size());
    std::vector<std::byte> block = node.arg_block;
    std::vector<void*> argv;
    for (size_t a = 0; a < node.args.size(); ++a) {
      const ArgDecl& arg = node.args[a];
      if (arg.form == ArgDecl::Form::kRange) argv.push_back(&range);
      if (arg.form == ArgDecl::Form::kValue) argv.push_back(block.data() + arg.offset);
      if (arg.form != ArgDecl::Form::kView) continue;
      const AccessDecl& access = node.accesses[static_cast<size_t>(arg.index)];
      const int64_t offset = access.box.whole() ? 0 : access.box->offset.dims[0].value;
      int32_t* const data = memory[static_cast<size_t>(access.buffer)].data() + offset;
      views[a] = {
          .data = data, .depth = 1, .height = 1, .width = range.width, .pitch = range.width, .slice = range.width};
      argv.push_back(&views[a]);
    }
    node.code.range(argv.data(), 0, range.width);
  }
}

struct SetTo100 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> z) const { z(i) = 100; }
};

TEST(FusedMaps, ReadWhatWasThereBeforeTheyWroteIt) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", kN), y = g.Output<int32_t>("y", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  Map(g, "t", Write(t), Of(x));
  Map(g, "x", Write(x), 3 * Of(x) - Of(t));
  Map(g, "y", Write(y), Of(t));
  ASSERT_EQ(Fused(g), "t + x + y; -t ");
  Memory memory(3, std::vector<int32_t>(kN, 7));
  RunInOrder(FusedOf(g)[0].model, memory);
  EXPECT_EQ(memory[0], std::vector<int32_t>(kN, 14));
  EXPECT_EQ(memory[1], std::vector<int32_t>(kN, 7));
}

// What a Map of the kernel wrote before is not what the Buffer holds.
TEST(FusedMaps, ReadWhatAnotherNodeHasWrittenBetweenThem) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", kN), y = g.Output<int32_t>("y", kN);
  auto t = g.Buffer<int32_t>("t", kN), u = g.Buffer<int32_t>("u", kN);
  Map(g, "t", Write(t), Of(x) + 1);
  Map(g, "u", Write(u), Of(t) + 1);
  g.ParallelFor("again", kN, SetTo100{}, Write(t));
  Map(g, "y", Write(y), Of(u) + Of(t));
  ASSERT_EQ(Fused(g), "again; t + u + y; -u ");
  Memory memory(4, std::vector<int32_t>(kN, 7));
  RunInOrder(FusedOf(g)[0].model, memory);
  EXPECT_EQ(memory[1], std::vector<int32_t>(kN, 109));
}

struct Double {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> x, View<int32_t> z) const { z(i) = 2 * x(i); }
};

// A program of Maps z = x * by - y, and a few other nodes, on whole buffers and halves, with what C++ makes of it.
class RandomProgram {
 public:
  static constexpr size_t kBuffers = 9, kBound = 5;

  explicit RandomProgram(uint64_t seed) : random_(seed), want(kBuffers), set_(kBuffers) {
    for (size_t b = 0; b < kBuffers; ++b) {
      buffers_.push_back(b < kBound ? g.InOut<int32_t>(Name("x", b), kN) : g.Buffer<int32_t>(Name("t", b), kN));
      for (int i = 0; i < kN; ++i) want[b].push_back(static_cast<int32_t>(Below(1000)));
      set_[b] = b < kBound;
    }
    at_first = want;
    const size_t steps = 2 + Below(10);
    for (size_t s = 0; s < steps; ++s) Add(s);
  }

  Graph g{"g"};
  Memory at_first;

 private:
  std::mt19937_64 random_;

 public:
  Memory want;  // of all buffers at the end

 private:
  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }
  size_t PickSet() {
    size_t b = Below(kBuffers);
    while (!set_[b]) b = Below(kBuffers);
    return b;
  }

  void Add(size_t step) {
    const bool half = Below(8) == 0, is_map = Below(8) != 0;
    const size_t first = half ? 4 * Below(2) : 0, count = half ? 4 : size_t{kN};
    const Box box = half ? Slice(first, count) : Box();
    const size_t x = PickSet(), y = PickSet(), z = half ? PickSet() : Below(kBuffers);
    const bool is_copy = is_map && Below(4) == 0;
    const auto by = is_copy ? 1 : is_map ? static_cast<int32_t>(Below(5)) : 2;
    if (!is_map && x == z) return;
    set_[z] = true;
    if (is_copy) {
      Map(g, Name("map", step), Write(buffers_[z], box), Of(buffers_[x], box));
    } else if (is_map) {
      Map(g, Name("map", step), Write(buffers_[z], box), Of(buffers_[x], box) * by - Of(buffers_[y], box));
    } else {
      g.ParallelFor(Name("for", step), count, Double{}, Read(buffers_[x], box), Write(buffers_[z], box));
    }
    for (size_t i = first; i < first + count; ++i) {  // overflow wraps
      const uint32_t less = is_map && !is_copy ? static_cast<uint32_t>(want[y][i]) : 0;
      want[z][i] = static_cast<int32_t>(static_cast<uint32_t>(want[x][i]) * static_cast<uint32_t>(by) - less);
    }
  }

  std::vector<BufferHandle<int32_t>> buffers_;
  std::vector<bool> set_;  // it has contents
};

TEST(FusedMaps, ComputeInRandomProgramsWhatTheirDeclarationsSay) {
  int64_t fused_maps = 0;
  const Seeds seeds = SeedsOf(0);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const RandomProgram program(seed);
    const std::vector<FusedModel> found = FusedOf(program.g);
    if (found.empty()) continue;
    const FusedModel* const fused = found.data();
    for (const FusedMap& map : fused->fused) fused_maps += static_cast<int64_t>(map.maps.size());
    Memory got = program.at_first;
    RunInOrder(fused->model, got);
    for (size_t b = 0; b < RandomProgram::kBound; ++b) ASSERT_EQ(got[b], program.want[b]) << Rerun(seed);
  }
  if (seeds.many()) {
    EXPECT_GT(fused_maps, seeds.count() / 10);
  }
}

}  // namespace
}  // namespace penstock::graph::fuse_maps_test
