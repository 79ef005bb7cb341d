// Transform: each element of the result is what the functor returns for those of the same index.
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/transform.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::transform_test {
namespace {

struct Square {
  PENSTOCK_HOST_DEVICE int64_t operator()(int32_t x) const { return int64_t{x} * x; }
};
struct Mix {
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t x, int16_t y) const { return 3 * x - y; }
};
struct Twice {
  int32_t by;
  PENSTOCK_HOST_DEVICE int32_t operator()(int32_t x) const { return by * x; }
};

class Transforms : public GraphConformance {
 protected:
  std::vector<int16_t> Shorts(int64_t n) {
    std::vector<int16_t> out;
    for (const int32_t v : Random(n)) out.push_back(static_cast<int16_t>(v));
    return out;
  }
};

TEST_P(Transforms, WriteAnElementForEach) {
  Graph g("each");
  auto n = g.Param<int64_t>("n", AtMost(5000));
  auto x = g.Input<int32_t>("x", n);
  auto y = g.Input<int16_t>("y", n);
  auto squares = g.Output<int64_t>("squares", n);
  auto mixed = g.Output<int32_t>("mixed", n);
  Transform(g, "square", Read(x), Write(squares), Square{});
  Transform(g, "mix", Read(x), Read(y), Write(mixed), Mix{});
  auto exec = runtime_->Compile(g, {.check_against_host = true});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const int64_t count : {5000, 0, 1, 333}) {
    const std::vector<int32_t> hx = Random(count);
    const std::vector<int16_t> hy = Shorts(count);
    std::vector<int64_t> got(hx.size()), want(hx.size());
    std::vector<int32_t> got_mixed(hx.size()), want_mixed(hx.size());
    for (size_t i = 0; i < hx.size(); ++i) want[i] = Square{}(hx[i]), want_mixed[i] = Mix{}(hx[i], hy[i]);
    io.Set(n, count).Set(x, hx).Set(y, hy).Set(squares, got);
    auto run = exec->Launch(io.Set(mixed, got_mixed));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(got, want);
    EXPECT_EQ(got_mixed, want_mixed);
  }
}

TEST_P(Transforms, TakeBoxesOfOneShapeAndWorkInPlace) {
  for (const int rank : {2, 3}) {
    const int64_t d = rank == 2 ? 1 : 3, h = 21, w = 37;
    Graph g("boxes");
    auto x = rank == 2 ? g.InOut<int32_t>("x", {h, w}) : g.InOut<int32_t>("x", {d, h, w});
    auto y = rank == 2 ? g.Input<int16_t>("y", Pitched({h - 2, w - 5}, w))
                       : g.Input<int16_t>("y", Pitched({d, h - 2, w - 5}, w));
    const Box inner = rank == 2 ? Slice({1, 3}, {h - 2, w - 5}) : Slice({0, 1, 3}, {d, h - 2, w - 5});
    Transform(g, "twice", Read(x), Write(x), Twice{2});
    Transform(g, "mix", Read(x, inner), Read(y), Write(x, inner), Mix{});
    std::vector<int32_t> hx = Random(d * h * w), want = hx;
    const std::vector<int16_t> hy = Shorts(d * (h - 2) * w);
    for (int32_t& v : want) v *= 2;
    for (int64_t z = 0; z < d; ++z) {
      for (int64_t row = 0; row < h - 2; ++row) {
        for (int64_t c = 0; c < w - 5; ++c) {
          int32_t& v = want[static_cast<size_t>((z * h + row + 1) * w + c + 3)];
          v = Mix{}(v, hy[static_cast<size_t>((z * (h - 2) + row) * w + c)]);
        }
      }
    }
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
    EXPECT_EQ(hx, want) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Transforms, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Transforms, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::transform_test
