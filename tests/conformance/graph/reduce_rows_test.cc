// ReduceRows: for each row the bits of a Reduce of that row alone, on every driver.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/reduce_rows.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/reduce_oracle.h"

namespace penstock::conformance::reduce_rows_test {
namespace {

using reduce_oracle::AnyOf;
using reduce_oracle::Expected;
using reduce_oracle::Same;
using reduce_oracle::SameAll;

// x -> scale * x + shift, modulo 2^32. To compose is associative and not commutative. Three words are no power of two.
struct Affine {
  uint32_t scale, shift, maps;
};
struct Compose {
  PENSTOCK_HOST_DEVICE Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift, a.maps + b.maps};
  }
};
// Ends in a multiplication and begins with an addition, which compilers would contract.
struct Drift {
  PENSTOCK_HOST_DEVICE float operator()(float a, float b) const { return (a + b) * 0.9990234F; }
};

class Rows : public GraphConformance {};

// Rows of less than a chunk, around all powers of two, of several leaves; boxes, pitches and aliases.
TEST_P(Rows, HaveTheBitsOfAReduceOfEach) {
  const struct {
    int64_t d, h, w, pitch;
  } kShapes[] = {{1, 40, 7, 7},      {1, 700, 1, 3},     {3, 50, 33, 40},    {20, 7, 130, 131},  {2, 3, 3000, 3001},
                 {5, 90, 3, 4},      {1, 3, 2048, 2050}, {1, 5, 2052, 2052}, {2, 9, 1024, 1024}, {1, 1, 9000, 9001},
                 {1, 300, 258, 258}, {3, 70, 32, 32},    {2, 33, 512, 512},  {1, 600, 8, 8},     {1, 129, 16, 17},
                 {1, 65, 64, 64},    {1, 20, 256, 256},  {2, 9, 128, 128}};
  for (const auto& shape : kShapes) {
    const int64_t d = shape.d, h = shape.h, w = shape.w, pitch = shape.pitch;
    Graph g("rows");
    const PitchedExtent extent = d == 1 ? Pitched({h, w}, pitch) : Pitched({d, h, w}, pitch);
    const int64_t top = h / 8, rows = h - top, left = w / 3, columns = w - left;
    const Box inner = d == 1 ? Slice({top, left}, {rows, columns}) : Slice({0, top, left}, {d, rows, columns});
    const Extent of_all = d == 1 ? Extent(h) : Extent(d, h), of_part = d == 1 ? Extent(rows) : Extent(d, rows);
    auto x = g.Input<float>("x", extent);
    auto y = g.Output<float>("y", of_all), part = g.Output<float>("part", of_part);
    auto wide = g.Output<double>("wide", of_all);
    auto dense = g.Buffer<float>("dense", extent.extent);
    g.Copy("copy", Read(x), Write(dense));
    ReduceRows(g, "y", Read(x), Write(y), Drift{}, 0);
    ReduceRows(g, "part", Read(g.Alias("alias", dense, inner)), Write(part));
    ReduceRows(g, "wide", Read(dense), Write(wide));
    const std::vector<float> values = AnyOf<float>(rng_, d * h * pitch);
    std::vector<float> want, want_part;
    std::vector<double> want_wide;
    for (int64_t row = 0; row < d * h; ++row) {
      const std::vector<float> all(values.begin() + row * pitch, values.begin() + row * pitch + w);
      want.push_back(Expected(all, Drift{}, 0.F));
      want_wide.push_back(Expected({all.begin(), all.end()}, std::plus<double>(), 0.0));
      if (row % h >= top) want_part.push_back(Expected({all.begin() + left, all.end()}, std::plus<float>(), 0.F));
    }
    std::vector<float> got(want.size(), -1.F), got_part(want_part.size(), -1.F);
    std::vector<double> got_wide(want.size(), -1.0);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(y, got).Set(part, got_part).Set(wide, got_wide); }));
    EXPECT_TRUE(SameAll(got, want)) << d << " " << h << " " << w;
    EXPECT_TRUE(SameAll(got_part, want_part)) << d << " " << h << " " << w;
    EXPECT_TRUE(SameAll(got_wide, want_wide)) << d << " " << h << " " << w;
  }
}

TEST_P(Rows, KeepTheOrderOfWhatDoesNotCommute) {
  for (const int64_t w : {1, 5, 30, 100, 700, 2049}) {
    Graph g("order");
    auto x = g.Input<Affine>("x", {13, w});
    auto y = g.Output<Affine>("y", 13);
    ReduceRows(g, "y", Read(x), Write(y), Compose{}, Affine{1, 0, 0});
    std::vector<Affine> hx(static_cast<size_t>(13 * w)), got(13), want(13, {1, 0, 0});
    for (Affine& m : hx) m = {static_cast<uint32_t>(rng_() | 1U), static_cast<uint32_t>(rng_()), 1};
    for (int64_t i = 0; i < 13 * w; ++i) want[i / w] = Compose{}(want[i / w], hx[i]);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, got); }));
    EXPECT_TRUE(SameAll(got, want)) << w;
  }
}

// Rows and their length are parameters; there may be no rows, and nothing in them.
TEST_P(Rows, WhoseExtentIsAParameter) {
  Graph g("parameters");
  auto d = g.Param<int32_t>("d", AtMost(3)), h = g.Param<int32_t>("h", AtMost(400));
  auto w = g.Param<int64_t>("w", AtMost(4100)), v = g.Param<int64_t>("v", AtMost(90));
  auto x = g.Input<int32_t>("x", {d, h, w}), z = g.Input<int32_t>("z", {h, v});
  auto y = g.Output<int64_t>("y", {d, h}), most = g.Output<int64_t>("most", h);
  ReduceRows(g, "y", Read(x), Write(y), Plus(), 7);
  ReduceRows(g, "most", Read(z), Write(most), Max(), -5'000'000);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const struct {
    int32_t d, h;
    int64_t w, v;
  } kShapes[] = {{3, 40, 33, 1}, {1, 2, 4100, 90}, {0, 3, 5, 0},     {3, 0, 9, 9},
                 {2, 400, 0, 0}, {2, 3, 2048, 33}, {1, 40, 2049, 8}, {3, 1, 1, 16}};
  for (const auto& shape : kShapes) {
    const std::vector<int32_t> hx = Random(shape.d * shape.h * shape.w), hz = Random(shape.h * shape.v);
    std::vector<int64_t> got(static_cast<size_t>(shape.d * shape.h), -1), want(got.size(), shape.w == 0 ? 7 : 0);
    std::vector<int64_t> got_most(static_cast<size_t>(shape.h), -1), want_most(got_most.size(), -5'000'000);
    for (size_t i = 0; i < hx.size(); ++i) want[i / shape.w] += hx[i];
    for (size_t i = 0; i < hz.size(); ++i) want_most[i / shape.v] = std::max<int64_t>(want_most[i / shape.v], hz[i]);
    io.Set(d, shape.d).Set(h, shape.h).Set(w, shape.w).Set(v, shape.v).Set(x, hx).Set(z, hz).Set(y, got);
    auto run = exec->Launch(io.Set(most, got_most));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, want) << shape.d << " " << shape.h << " " << shape.w;
    EXPECT_EQ(got_most, want_most) << shape.h << " " << shape.v;
  }
}

TEST_P(Rows, ReadStatesAndWritePartsOfBuffers) {
  auto state = runtime_->MakeState<float>("state", {20, 50});
  ASSERT_OK(state.status());
  const std::vector<float> hx = AnyOf<float>(rng_, 1000);
  ASSERT_OK(state->Set(hx));
  Graph g("parts");
  auto k = g.Param<int64_t>("k");
  auto sums = g.InOut<float>("sums", 30);
  auto x = g.Input<float>("x", {4, 5, 50});
  auto planes = g.InOut<float>("planes", {6, 9});
  ReduceRows(g, "sums", Read(*state), Write(sums, Slice({k}, {20})));
  ReduceRows(g, "planes", Read(x), Write(planes, Slice({k, 3}, {4, 5})));
  std::vector<float> got(30, -1.F), want = got, got_planes(54, -2.F), want_planes = got_planes;
  for (int64_t row = 0; row < 20; ++row) {
    const float sum = Expected({hx.begin() + row * 50, hx.begin() + row * 50 + 50}, std::plus<float>(), 0.F);
    want[1 + row] = sum;
    want_planes[(1 + row / 5) * 9 + 3 + row % 5] = sum;
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(k, int64_t{1}).Set(sums, got).Set(x, hx).Set(planes, got_planes); }));
  EXPECT_TRUE(SameAll(got, want));
  EXPECT_TRUE(SameAll(got_planes, want_planes));
}

TEST_P(Rows, HaveAsManyLevelsAsTheyNeed) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  constexpr int64_t kN = (int64_t{1} << 22) + 5000;
  Graph g("levels");
  auto x = g.Input<float>("x", {2, kN});
  auto y = g.Output<float>("y", 2);
  ReduceRows(g, "y", Read(x), Write(y));
  const std::vector<float> values = AnyOf<float>(rng_, 2 * kN);
  std::vector<float> got(2);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(y, got); }));
  EXPECT_TRUE(Same(got[0], Expected({values.begin(), values.begin() + kN}, std::plus<float>(), 0.F)));
  EXPECT_TRUE(Same(got[1], Expected({values.begin() + kN, values.end()}, std::plus<float>(), 0.F)));
}

TEST_P(Rows, AreFoundWhenDeclaredAgainAndCheckedAgainstHostCode) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (int round = 0; round < 2; ++round) {
    for (const int64_t w : {int64_t{30}, int64_t{5000}}) {
      const std::vector<float> hx = AnyOf<float>(rng_, 6 * w);
      std::vector<float> want;
      for (auto row = hx.begin(); row != hx.end(); row += w) want.push_back(Expected({row, row + w}, Drift{}, 0.F));
      for (GraphCache* const cache : {&found, &checked}) {
        std::vector<float> got(6, -1.F);
        absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
          auto x = g.Input<float>("x", {6, w});
          auto y = g.Output<float>("y", 6);
          ReduceRows(g, "y", Read(x), Write(y), Drift{}, static_cast<float>(round));
          io.Set(x, hx).Set(y, got);
        });
        ASSERT_OK(run.status());
        ASSERT_OK(run->Wait());
        EXPECT_TRUE(SameAll(got, want)) << w;
      }
    }
  }
  EXPECT_EQ(found.counts().compiled, 2);
}

INSTANTIATE_TEST_SUITE_P(Host, Rows, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Rows, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::reduce_rows_test
