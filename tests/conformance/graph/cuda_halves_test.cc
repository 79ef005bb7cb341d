// CUDA's types of 16 bits: on host devices the bits that GPUs give. Where their headers are not there, nothing is
// tested.
#if __has_include(<cuda_bf16.h>) && __has_include(<cuda_fp16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/arg_max.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/reduce_oracle.h"

namespace penstock::conformance::cuda_halves_test {
namespace {

using reduce_oracle::Expected;
using reduce_oracle::Same;

class Halves : public GraphConformance {};

TEST_P(Halves, AreSummedUpInFloats) {
  constexpr int64_t kN = 5000;
  Graph g("halves");
  auto x = g.Input<__half>("x", kN);
  auto y = g.Input<__nv_bfloat16>("y", {kN / 100, 100});
  auto count = g.Input<int32_t>("count", 1);
  auto sums = g.Output<float>("sums", 4);
  auto greatest = g.Output<Indexed<__half>>("greatest", 1);
  g.Reduce("halves", Read(x), Write(sums, Slice({0}, {1})));
  g.Reduce("bfloats", Read(y), Write(sums, Slice({1}, {1})));
  g.Reduce("some", CountOf(count, kN), Read(x), Write(sums, Slice({2}, {1})));
  g.Reduce("least", Read(x), Write(sums, Slice({3}, {1})), Min());
  ArgMax(g, "greatest", Read(x), Write(greatest));
  std::vector<__half> hx;
  std::vector<__nv_bfloat16> hy;
  std::vector<float> of_x, of_y, got(4, -1.F);
  for (int64_t i = 0; i < kN; ++i) {
    hx.push_back(__float2half(static_cast<float>(rng_() % 60'000) / 7.F));
    hy.push_back(__float2bfloat16(static_cast<float>(rng_()) * 1e20F));
    of_x.push_back(__half2float(hx.back()));
    of_y.push_back(__bfloat162float(hy.back()));
  }
  const std::vector<int32_t> hcount{2500};
  std::vector<Indexed<__half>> got_greatest(1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    io.Set(x, hx).Set(y, hy).Set(count, hcount).Set(sums, got).Set(greatest, got_greatest);
  }));
  EXPECT_TRUE(Same(got[0], Expected(of_x, std::plus<float>(), 0.F)));
  EXPECT_GT(got[0], 65504.F);
  EXPECT_TRUE(Same(got[1], Expected(of_y, std::plus<float>(), 0.F)));
  EXPECT_TRUE(Same(got[2], Expected({of_x.begin(), of_x.begin() + 2500}, std::plus<float>(), 0.F)));
  EXPECT_EQ(got[3], *std::min_element(of_x.begin(), of_x.end()));
  const auto most = std::max_element(of_x.begin(), of_x.end());
  EXPECT_EQ(got_greatest[0].index(), most - of_x.begin());
  EXPECT_EQ(__half2float(got_greatest[0].value), *most);
}

INSTANTIATE_TEST_SUITE_P(Host, Halves, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Halves, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::cuda_halves_test
#endif
