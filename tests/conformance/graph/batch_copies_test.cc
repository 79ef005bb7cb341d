// Many small copies through the whole library, on every driver: batches and tasks move what single copies would,
// whatever each launch binds.
#include <algorithm>
#include <deque>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::batch_copies_test {
namespace {

struct Scale {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* in, int32_t* out) const { out[i] = by * in[i]; }
};

class Gathered : public GraphConformance {};

// Half of the memory is pinned, another half in each launch, and the sizes change too, down to nothing.
TEST_P(Gathered, BuffersMoveWhateverIsPinned) {
  constexpr int kCount = 24, kLaunches = 12;
  constexpr int64_t kMost = 3000;
  Graph g("many");
  auto n = g.Param<int64_t>("n", AtMost(kMost));
  std::vector<BufferHandle<int32_t>> x, y;
  for (int i = 0; i < kCount; ++i) {
    const std::string number = std::to_string(i);
    const Dim size = i % 3 == 0 ? Dim(n) : Dim(i % 3 == 1 ? 7 : 1000 + i);
    x.push_back(g.Input<int32_t>("x" + number, size));
    y.push_back(g.Output<int32_t>("y" + number, size));
    g.ParallelFor("k" + number, size, Scale{i + 1}, Read(x.back()), Write(y.back()));
  }
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  EXPECT_NE(exec->PlanText().find(" batch "), std::string::npos);

  struct Memory {
    std::vector<std::vector<int32_t>> in, out;
    std::vector<HostBuffer<int32_t>> pinned;  // instead, where it is not empty
    int64_t size = 0;
  };
  std::deque<Memory> all;
  std::vector<penstock::Run> runs;
  Bindings io = exec->bindings();
  for (int l = 0; l < kLaunches; ++l) {
    Memory& m = all.emplace_back();
    m.size = l == 3 ? 0 : static_cast<int64_t>(rng_() % (kMost + 1));
    io.Set(n, m.size);
    for (int i = 0; i < kCount; ++i) {
      const int64_t elements = i % 3 == 0 ? m.size : i % 3 == 1 ? 7 : 1000 + i;
      m.in.push_back(Random(elements));
      m.out.push_back(Poisoned(elements));
      const auto at = static_cast<size_t>(i);
      for (const bool out : {false, true}) {
        auto& memory = out ? m.out.back() : m.in.back();
        const auto& buffer = out ? y[at] : x[at];
        HostBuffer<int32_t>& pinned = m.pinned.emplace_back();
        if (rng_() % 2 == 0 || elements == 0) {
          io.Set(buffer, memory);
          continue;
        }
        pinned = *runtime_->MakeHostBuffer<int32_t>(elements);
        std::copy(memory.begin(), memory.end(), pinned.begin());
        io.Set(buffer, pinned);
      }
    }
    absl::StatusOr<penstock::Run> run = exec->Launch(io);
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  for (int l = 0; l < kLaunches; ++l) {
    ASSERT_OK(runs[static_cast<size_t>(l)].Wait());
    const Memory& m = all[static_cast<size_t>(l)];
    for (size_t i = 0; i < kCount; ++i) {
      const HostBuffer<int32_t>& pinned = m.pinned[2 * i + 1];
      const int32_t* out = pinned.size() > 0 ? pinned.data() : m.out[i].data();
      for (size_t k = 0; k < m.in[i].size(); ++k) {
        ASSERT_EQ(out[k], m.in[i][k] * static_cast<int32_t>(i + 1)) << "launch " << l << " buffer " << i << " at " << k;
      }
    }
  }
}

// Tiles of images, where the boxes lie each launch says; one is too large to be gathered with the others.
TEST_P(Gathered, BoxesMoveToAndFromImages) {
  constexpr int64_t kH = 300, kW = 400, kTile = 24;
  constexpr int kTiles = 9;
  Graph g("tiles");
  auto image = g.Input<int32_t>("image", {kH, kW}, kPinned);
  auto out = g.Output<int32_t>("out", {kH, kW}, kPinned);
  auto left = g.Param<int64_t>("left", AtMost(kW - kTile));
  auto rest = g.Buffer<int32_t>("rest", {kH - kTile, kW});
  const Box below = Slice({kTile, 0}, {kH - kTile, kW});
  g.Copy("rest in", Read(image, below), Write(rest));
  std::vector<BufferHandle<int32_t>> tiles;
  for (int i = 0; i < kTiles; ++i) {
    tiles.push_back(g.Buffer<int32_t>("tile" + std::to_string(i), {kTile, kTile}));
    const Box from = i == 0 ? Slice({kH - kTile, left}, {kTile, kTile}) : Slice({i * 30, i * 31}, {kTile, kTile});
    g.Copy("in" + std::to_string(i), Read(image, from), Write(tiles.back()));
  }
  auto top = g.Buffer<int32_t>("top", {kTile, kW});
  g.Fill("zero", top, 5);
  g.Copy("top out", Read(top), Write(out, Slice({0, 0}, {kTile, kW})));
  g.Copy("rest out", Read(rest), Write(out, below));
  for (int i = 0; i < kTiles; ++i) {
    g.Copy("out" + std::to_string(i), Read(tiles[static_cast<size_t>(i)]),
           Write(out, Slice({0, i * (kTile + 1)}, {kTile, kTile})));
  }
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  EXPECT_NE(exec->PlanText().find(" batch "), std::string::npos) << exec->PlanText();
  const auto from = *runtime_->MakeHostBuffer<int32_t>(kH * kW), to = *runtime_->MakeHostBuffer<int32_t>(kH * kW);
  for (const int64_t column : {int64_t{0}, int64_t{33}, kW - kTile}) {
    const std::vector<int32_t> random = Random(kH * kW), poison = Poisoned(kH * kW);
    std::copy(random.begin(), random.end(), from.begin());
    std::copy(poison.begin(), poison.end(), to.begin());
    Bindings io = exec->bindings();
    io.Set(image, from).Set(out, to).Set(left, column);
    absl::StatusOr<penstock::Run> run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    std::vector<int32_t> expected = random;
    std::fill_n(expected.begin(), kTile * kW, 5);
    for (int64_t i = 0; i < kTiles; ++i) {
      const int64_t y = i == 0 ? kH - kTile : i * 30, x = i == 0 ? column : i * 31;
      for (int64_t r = 0; r < kTile; ++r) {
        std::copy_n(random.begin() + (y + r) * kW + x, kTile, expected.begin() + r * kW + i * (kTile + 1));
      }
    }
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), to.begin())) << "column " << column;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Gathered, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Gathered, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::batch_copies_test
