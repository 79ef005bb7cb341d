// Lambdas as functors, on every driver. nvcc makes another type of a lambda that captures, which owns memory on the
// host; so each test that passes for a functor of one's own is worth another look here. The functions that declare are
// free ones: nvcc takes no such lambda in a private member, as the body of a test is.
#include <utility>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

#if !defined(__CUDACC__)
namespace penstock::conformance::lambda_test {
namespace {

// Stands for nvcc's lambdas where another compiler is used: the host calls what `data` points to, which is gone with
// the object, and device code would use what was captured.
class Boxed {
 public:
  explicit Boxed(int32_t factor) : captured(factor), data(new int32_t(factor)) {}
  Boxed(const Boxed& other) : captured(other.captured), data(new int32_t(*other.data)) {}
  Boxed(Boxed&& other) noexcept : captured(other.captured), data(std::exchange(other.data, nullptr)) {}
  ~Boxed() {
    if (data != nullptr) *data = 12345;
    delete data;
  }
  Boxed& operator=(const Boxed&) = delete;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* to) const { to[i] = to[i] * *data + captured; }

  int32_t captured;
  [[maybe_unused]] int32_t in_place_of_padding = 0;  // which counts when values are compared, and would be anything
  int32_t* data;
};

}  // namespace
}  // namespace penstock::conformance::lambda_test

template <>
inline constexpr bool penstock::detail::kOwnsData<penstock::conformance::lambda_test::Boxed> = true;
#endif

namespace penstock::conformance::lambda_test {
namespace {

constexpr int64_t kN = 500;
using Buffer = BufferHandle<int32_t>;

struct Weights {
  int32_t by[3];
  int32_t aside;
};

void Axpy(Graph& g, int32_t factor, Weights weights, Buffer x, Buffer y) {
  g.ParallelFor(
      "axpy", kN,
      [factor, weights] PENSTOCK_HOST_DEVICE(int64_t i, View<const int32_t> from, View<int32_t> to) {
        to(i) += factor * weights.by[i % 3] * from(i) + weights.aside;
      },
      Read(x), ReadWrite(y));
}
void Double(Graph& g, Buffer y) {
  g.ParallelFor("double", kN, [] PENSTOCK_HOST_DEVICE(int64_t i, int32_t* to) { to[i] *= 2; }, ReadWrite(y));
}
// The same for other compilers.
void Box(Graph& g, [[maybe_unused]] int32_t factor, Buffer y) {
#if defined(__CUDACC__)
  g.ParallelFor(
      "box", kN, [factor] PENSTOCK_HOST_DEVICE(int64_t i, int32_t* to) { to[i] = to[i] * factor + factor; },
      ReadWrite(y));
#else
  g.ParallelFor("box", kN, Boxed(factor), ReadWrite(y));
#endif
}
void AddScaled(Graph& g, ParamHandle<int32_t> scale, int32_t five, Buffer y) {
  g.ParallelFor(
      "add", {5, kN / 5},
      [five] PENSTOCK_HOST_DEVICE(Index2 i, int32_t by, int32_t* to) {
        to[i.y * (kN / 5) + i.x] += by * five + static_cast<int32_t>(i.y);
      },
      scale, ReadWrite(y));
}

class Lambdas : public GraphConformance {
 protected:
  void SetUp() override {
    GraphConformance::SetUp();
    x_ = Random(kN);
    for (int32_t& x : x_) x %= 1000;
  }
  int32_t AfterAxpy(size_t i, int32_t factor, int32_t y = 0) const {
    return y + factor * kWeights.by[i % 3] * x_[i] + kWeights.aside;
  }

  static constexpr Weights kWeights{{1, 10, 100}, 1};
  std::vector<int32_t> x_;
};

// The graph, and with it what was captured first, is gone before the runs.
TEST_P(Lambdas, KeepWhatTheyCapturedInEveryRun) {
  absl::StatusOr<Executable> exec;
  Buffer x, y;
  ParamHandle<int32_t> scale;
  {
    Graph g("lambdas");
    x = g.Input<int32_t>("x", kN);
    y = g.InOut<int32_t>("y", kN);
    scale = g.Param<int32_t>("scale");
    Axpy(g, 3, kWeights, x, y);
    Double(g, y);
    Box(g, 6, y);
    AddScaled(g, scale, 5, y);
    exec = runtime_->Compile(g, {.slots = 2});
  }
  ASSERT_OK(exec.status());
  for (int32_t launch = 0; launch < 4; ++launch) {
    std::vector<int32_t> got(kN, launch);
    auto run = exec->Launch(exec->bindings().Set(x, x_).Set(y, got).Set(scale, launch));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], 12 * AfterAxpy(i, 3, launch) + 6 + 5 * launch + static_cast<int32_t>(i / (kN / 5))) << i;
    }
  }
}

TEST_P(Lambdas, AreCheckedAgainstTheHost) {
  Graph g("checked");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.InOut<int32_t>("y", kN);
  Axpy(g, 7, kWeights, x, y);
  Box(g, -3, y);
  std::vector<int32_t> got(kN, 4);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, x_).Set(y, got); }, {.check_against_host = true}));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], -3 * AfterAxpy(i, 7, 4) - 3) << i;
}

// A step that is declared again finds its graph, and only a captured value that changed changes its node.
TEST_P(Lambdas, OfAStepDeclaredAgainAreThatStepsOwn) {
  GraphCache cache(*runtime_, {.compile = {.slots = 1}});
  int64_t changed = 0;
  for (const int32_t factor : {2, 2, 2, 9, 9, -4}) {
    std::vector<int32_t> got(kN, factor);
    auto run = cache.Launch([&](Graph& g, Bindings& io) {
      auto x = g.Input<int32_t>("x", kN);
      auto y = g.InOut<int32_t>("y", kN);
      Axpy(g, factor, kWeights, x, y);
      Double(g, y);
      Box(g, factor + 1, y);
      io.Set(x, x_).Set(y, got);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], (factor + 1) * (2 * AfterAxpy(i, factor, factor) + 1)) << i;
    if (factor != 2) continue;
    // The first launch compiles, and gives the slot its lambda.
    if (changed == 0) changed = cache.counts().nodes_changed + 1;
    EXPECT_EQ(cache.counts().nodes_changed + 1, changed);
  }
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_EQ(cache.counts().nodes_changed + 1, changed + 4);
}

INSTANTIATE_TEST_SUITE_P(Host, Lambdas, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Lambdas, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::lambda_test
