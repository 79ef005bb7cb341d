// Graphs whose nodes Compile places on all devices compute what plain loops do, on every driver; and several devices
// really take part.
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::placement_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kN = 193;
constexpr int kBranches = 4, kSteps = 3;

// Wraps around, on every device alike.
PENSTOCK_HOST_DEVICE int32_t Mix(int32_t x, int32_t by) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) * 2654435761U + static_cast<uint32_t>(by));
}

struct Begin {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t branch, const int32_t* x, int32_t* y) const {
    y[i] = Mix(x[i], branch);
  }
};
struct Step {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t step, int32_t* y) const { y[i] = Mix(y[i], step); }
};
struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* to) const {
    to[i] = Mix(a[i], b[i]);
  }
};

class PlacementConformance : public GraphConformance {
 protected:
  // A machine on which nodes are slow and copies fast, so that it pays to spread them.
  std::shared_ptr<const MachineFigures> SlowNodes() const {
    MachineFigures figures;
    for (const Device& device : runtime_->devices()) {
      figures.devices.push_back({.name = device.name, .memory = 1e-3, .upload = 50, .download = 50});
    }
    return std::make_shared<const MachineFigures>(std::move(figures));
  }
  CompileOptions Automatic() const { return {.placement = Placement::kAutomatic, .figures = SlowNodes()}; }

  // Checks that more than one device has nodes, by the report and by the plan.
  void ExpectSpread(const Executable& exec) const {
    std::set<int> used;
    for (const PlacementReport::Node& node : exec.placement_report().nodes) {
      if (node.device >= 0) used.insert(node.device);
    }
    if (runtime_->devices().size() < 2) return;
    EXPECT_GE(used.size(), 2U) << exec.placement_report().Text();
    for (const int device : used) EXPECT_THAT(exec.PlanText(), HasSubstr("device " + std::to_string(device) + " lane"));
  }
};

// A fork into chains, one of which has a host node in it, and a join that adds to a State.
TEST_P(PlacementConformance, AForkAndItsJoinComputeWhatLoopsDo) {
  auto state = runtime_->MakeState<int32_t>("state", kN);
  ASSERT_OK(state.status());
  Graph g("fork");
  const auto x = g.Input<int32_t>("x", kN);
  const auto z = g.Output<int32_t>("z", kN);
  std::vector<BufferHandle<int32_t>> ys;
  for (int b = 0; b < kBranches; ++b) {
    const std::string branch = std::to_string(b);
    ys.push_back(g.Buffer<int32_t>("y " + branch, kN));
    g.ParallelFor("begin " + branch, kN, Begin{}, b, Read(x), Write(ys.back()));
    for (int s = 0; s < kSteps; ++s) {
      g.ParallelFor("step " + branch + "." + std::to_string(s), kN, Step{}, s, ReadWrite(ys.back()));
      if (b == 1 && s == 1) {
        g.Host(
            "host",
            [](std::span<int32_t> y) {
              for (int32_t& v : y) v = Mix(v, 77);
            },
            ReadWrite(ys.back()));
      }
    }
  }
  const auto left = g.Buffer<int32_t>("left", kN), right = g.Buffer<int32_t>("right", kN);
  g.ParallelFor("left", kN, Sum{}, Read(ys[0]), Read(ys[1]), Write(left));
  g.ParallelFor("right", kN, Sum{}, Read(ys[2]), Read(ys[3]), Write(right));
  const auto total = g.Use(*state);
  const auto last = g.Buffer<int32_t>("last", kN);
  g.ParallelFor("join", kN, Sum{}, Read(left), Read(right), Write(last));
  g.ParallelFor("add", kN, Begin{}, 5, Read(total), Write(z));
  g.ParallelFor("keep", kN, Sum{}, Read(last), Read(z), Write(total));
  auto exec = runtime_->Compile(g, Automatic());
  ASSERT_OK(exec.status());
  ExpectSpread(*exec);

  Bindings io = exec->bindings();
  std::vector<int32_t> kept(kN, 0);
  for (int r = 0; r < 6; ++r) {
    const std::vector<int32_t> in = Random(kN);
    std::vector<int32_t> out = Poisoned(kN);
    auto run = exec->Launch(io.Set(x, in).Set(z, out));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < kN; ++i) {
      int32_t y[kBranches];
      for (int b = 0; b < kBranches; ++b) {
        y[b] = Mix(in[i], b);
        for (int s = 0; s < kSteps; ++s) {
          y[b] = Mix(y[b], s);
          if (b == 1 && s == 1) y[b] = Mix(y[b], 77);
        }
      }
      ASSERT_EQ(out[i], Mix(kept[i], 5)) << "run " << r << " element " << i;
      kept[i] = Mix(Mix(Mix(y[0], y[1]), Mix(y[2], y[3])), out[i]);
    }
  }
}

struct Blur {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> from, View<int32_t> to) const {
    // `from` has one element more at each end.
    to(i) = Mix(Mix(from(i), from(i + 2)), from(i + 1));
  }
};

// Tiles of one buffer that read each other's edges.
TEST_P(PlacementConformance, TilesThatReadEachOthersEdgesComputeWhatLoopsDo) {
  constexpr int64_t kTiles = 4, kTile = 32, kAll = kTiles * kTile + 2;
  Graph g("tiles");
  const auto x = g.Input<int32_t>("x", kAll);
  const auto z = g.Output<int32_t>("z", kAll);
  const BufferHandle<int32_t> rows[] = {g.Buffer<int32_t>("even", kAll), g.Buffer<int32_t>("odd", kAll)};
  g.Copy("in", x, rows[0]);
  g.Copy("edges", x, rows[1]);
  constexpr int kRounds = 5;
  for (int r = 0; r < kRounds; ++r) {
    for (int64_t t = 0; t < kTiles; ++t) {
      g.ParallelFor("tile " + std::to_string(r) + "." + std::to_string(t), kTile, Blur{},
                    Read(rows[r % 2], Slice({t * kTile}, {kTile + 2})),
                    Write(rows[1 - r % 2], Slice({t * kTile + 1}, {kTile})));
    }
  }
  g.Copy("out", rows[kRounds % 2], z);
  auto exec = runtime_->Compile(g, Automatic());
  ASSERT_OK(exec.status());
  ExpectSpread(*exec);
  std::vector<int32_t> at = Random(kAll), out = Poisoned(kAll);
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(x, at).Set(z, out));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  for (int r = 0; r < kRounds; ++r) {
    const std::vector<int32_t> from = at;
    for (size_t i = 1; i + 1 < static_cast<size_t>(kAll); ++i) at[i] = Mix(Mix(from[i - 1], from[i + 1]), from[i]);
  }
  EXPECT_EQ(out, at);
}

INSTANTIATE_TEST_SUITE_P(Host, PlacementConformance, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, PlacementConformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::placement_test
