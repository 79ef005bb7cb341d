// Parameters that nodes read in device memory: each run has its own, by one small copy and no capture.
#include <string>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/replay_fixture.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::on_device_test {
namespace {

constexpr int64_t kN = 200;

template <class T>
TEST_KERNEL void Scale([[maybe_unused]] const T* by, [[maybe_unused]] const int32_t* x, [[maybe_unused]] int32_t* y) {
#if defined(__CUDA_ARCH__)
  if (threadIdx.x < kN) y[threadIdx.x] = x[threadIdx.x] * static_cast<int32_t>(*by);
#endif
}
TEST_KERNEL void AddMore([[maybe_unused]] const int32_t* more, [[maybe_unused]] int32_t value,
                         [[maybe_unused]] int32_t* y) {
#if defined(__CUDA_ARCH__)
  if (threadIdx.x < kN) y[threadIdx.x] += *more + value;
#endif
}

absl::Status ScaleForeign([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] const int32_t* by,
                          [[maybe_unused]] const int32_t* x, [[maybe_unused]] int32_t* y) {
#if defined(__CUDACC__)
  Scale<int32_t><<<1, 256, 0, CudaStream(launch)>>>(by, x, y);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
template <class T>
void ScaleTwin(const T* by, const int32_t* x, int32_t* y) {
  for (int64_t i = 0; i < kN; ++i) y[i] = x[i] * static_cast<int32_t>(*by);
}
void AddTwin(const int32_t* more, int32_t value, int32_t* y) {
  for (int64_t i = 0; i < kN; ++i) y[i] += *more + value;
}

// y = x * by, by a Launch node.
struct Scaled {
  Graph graph{"scaled"};
  ParamHandle<int32_t> by = graph.Param<int32_t>("by");
  BufferHandle<int32_t> x = graph.Input<int32_t>("x", kN, kPinned), y = graph.Output<int32_t>("y", kN, kPinned);
  Scaled() { graph.Launch("scale", ScaleForeign, OnDevice(by), Read(x), Write(y)).HostFallback(ScaleTwin<int32_t>); }
};

class OnDeviceParam : public ReplayConformance {};

TEST_P(OnDeviceParam, IsWhatEachLaunchSays) {
  const Scaled s;
  Executable exec = Compiled(s.graph, {.slots = 3});
  const HostBuffer<int32_t> x = Pinned(kN, 7);
  std::vector<HostBuffer<int32_t>> y;
  for (int i = 0; i < 3; ++i) y.push_back(Pinned(kN, 0));
  std::vector<std::pair<penstock::Run, int32_t>> flying(3);
  Bindings io = exec.bindings();
  io.Set(s.x, x);
  for (int r = 0; r < 100; ++r) {
    const auto i = static_cast<size_t>(r % 3);
    if (r >= 3) {
      ASSERT_OK(flying[i].first.Wait());
      for (const int32_t v : y[i]) ASSERT_EQ(v, flying[i].second) << "run " << r - 3;
    }
    std::fill(y[i].begin(), y[i].end(), 0x5a5a5a5a);
    const auto by = static_cast<int32_t>(rng_() % 1000);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(s.y, y[i]).Set(s.by, by));
    ASSERT_OK(run.status());
    flying[i] = {*std::move(run), 7 * by};
  }
  for (auto& [run, expected] : flying) ASSERT_OK(run.Wait());
}

// Nodes of every kind, in several segments; a pointer of one type and another, and a value besides.
TEST_P(OnDeviceParam, MayBeReadByManyNodesAndByValueToo) {
  Graph g("many");
  auto by = g.Param<int32_t>("by"), more = g.Param<int32_t>("more");
  auto wide = g.Param<int64_t>("wide");
  auto x = g.Input<int32_t>("x", kN), y = g.InOut<int32_t>("y", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  g.Host("prepare", [](std::span<int32_t> v) { std::fill(v.begin(), v.end(), 1); }, Write(y));
  g.Launch("first", ScaleForeign, OnDevice(by), Read(x), Write(t)).HostFallback(ScaleTwin<int32_t>);
  g.Kernel("second", Scale<int64_t>, Threads(kN), OnDevice(wide), Read(t), Write(y)).HostFallback(ScaleTwin<int64_t>);
  g.Kernel("third", AddMore, Threads(kN), OnDevice(by), more, ReadWrite(y)).HostFallback(AddTwin);
  g.Kernel("fourth", AddMore, Threads(kN), OnDevice(more), by, ReadWrite(y)).HostFallback(AddTwin);
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (int r = 0; r < 10; ++r) {
    const std::vector<int32_t> hx = Random(kN);
    std::vector<int32_t> hy = Poisoned(kN);
    const auto b = static_cast<int32_t>(rng_() % 10), m = static_cast<int32_t>(rng_() % 10);
    const int64_t w = r % 3;
    absl::StatusOr<penstock::Run> run = exec->Launch(io.Set(by, b).Set(more, m).Set(wide, w).Set(x, hx).Set(y, hy));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < hx.size(); ++i) {
      ASSERT_EQ(hy[i], hx[i] * b * static_cast<int32_t>(w) + 2 * b + 2 * m) << r << " " << i;
    }
  }
}

TEST_P(OnDeviceParam, GoesToEachDeviceThatReadsIt) {
  const int last = static_cast<int>(runtime_->devices().size()) - 1;
  Graph g("two");
  auto by = g.Param<int32_t>("by");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN), z = g.Output<int32_t>("z", kN);
  g.Launch("here", ScaleForeign, OnDevice(by), Read(x), Write(y)).HostFallback(ScaleTwin<int32_t>).On(0);
  g.Launch("there", ScaleForeign, OnDevice(by), Read(x), Write(z)).HostFallback(ScaleTwin<int32_t>).On(last);
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<int32_t> hx = Random(kN);
  for (const int32_t b : {3, -4}) {
    std::vector<int32_t> hy = Poisoned(kN), hz = Poisoned(kN);
    absl::StatusOr<penstock::Run> run = exec->Launch(io.Set(by, b).Set(x, hx).Set(y, hy).Set(z, hz));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < hx.size(); ++i) {
      ASSERT_EQ(hy[i], hx[i] * b);
      ASSERT_EQ(hz[i], hx[i] * b);
    }
  }
}

TEST_P(OnDeviceParam, IsSetBeforeTheFirstLaunchAndAHandleOfThisGraph) {
  const Scaled s;
  Executable exec = Compiled(s.graph);
  Bindings io = exec.bindings();
  const HostBuffer<int32_t> x = Pinned(kN, 7), y = Pinned(kN, 0);
  const absl::Status unset = exec.Launch(io.Set(s.x, x).Set(s.y, y)).status();
  EXPECT_EQ(unset.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(unset.ToString().find("param 'by'"), std::string::npos) << unset;

  const auto refused = [&](ParamHandle<int32_t> by) {
    Graph g("wrong");
    g.Param<int64_t>("wide");
    auto t = g.Buffer<int32_t>("t", kN), u = g.Buffer<int32_t>("u", kN);
    g.Fill("fill", t, 1);
    g.Launch("scale", ScaleForeign, OnDevice(by), Read(t), Write(u)).HostFallback(ScaleTwin<int32_t>);
    return std::pair(runtime_->Compile(g).status(), g.model().serial);
  };
  const auto words = [](const absl::Status& status) { return status.ToString(); };
  const absl::Status none = refused({}).first, other = refused(s.by).first;
  EXPECT_NE(words(none).find("argument 0 is OnDevice of no parameter; its handle was never set; declare the parameter "
                             "in this graph"),
            std::string::npos)
      << none;
  EXPECT_NE(words(other).find("argument 0 is OnDevice of a parameter of another graph"), std::string::npos) << other;
  const uint32_t next = refused({}).second + 1;
  const absl::Status wide = refused(ParamHandle<int32_t>(next, 0)).first;
  EXPECT_NE(
      words(wide).find(
          "argument 0 is OnDevice of 'wide' through a handle of another type (int32_t; it was declared as int64_t)"),
      std::string::npos)
      << wide;
  Graph written("wrong");
  auto by = written.Param<int32_t>("by");
  auto t = written.Output<int32_t>("t", kN);
  written.Fill("fill", t, 1);
  written.Kernel("add", AddMore, Threads(kN), OnDevice(by), 1, ReadWrite(t)).HostFallback(AddTwin);
  const BufferHandle<int32_t> value(written.model().serial, 1);  // put together by hand
  written.Fill("zero", value, 0);
  const absl::Status writes = runtime_->Compile(written).status();
  EXPECT_NE(words(writes).find(", the value of a parameter; launches set it"), std::string::npos) << writes;
  const BufferHandle<int32_t> own(s.graph.model().serial, 2);
  const absl::Status bound = exec.Launch(io.Set(own, x)).status();
  EXPECT_NE(words(bound).find("is the value of a parameter and cannot be bound"), std::string::npos) << bound;
  for (const absl::Status& status : {none, other, wide}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(words(status).find("mistakes"), std::string::npos) << "one each: " << status;
  }
}

TEST_P(OnDeviceParam, OfAStepDeclaredAgainIsThatStepsOwn) {
  GraphCache cache(*runtime_, {.compile = {.slots = 2}});
  const std::vector<int32_t> hx = Random(kN);
  for (int step = 0; step < 10; ++step) {
    std::vector<int32_t> hy = Poisoned(kN);
    absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& g, Bindings& io) {
      auto by = g.Param<int32_t>("by");
      auto x = g.Input<int32_t>("x", kN);
      auto y = g.Output<int32_t>("y", kN);
      g.Launch("scale", ScaleForeign, OnDevice(by), Read(x), Write(y)).HostFallback(ScaleTwin<int32_t>);
      g.Kernel("more", AddMore, Threads(kN), OnDevice(by), step, ReadWrite(y)).HostFallback(AddTwin);
      io.Set(by, step).Set(x, hx).Set(y, hy);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < hx.size(); ++i) ASSERT_EQ(hy[i], hx[i] * step + 2 * step) << step << " " << i;
  }
  EXPECT_EQ(cache.counts().compiled, 1);
}

TEST_P(OnDeviceParam, IsKnownToTheTwinCheck) {
  const Scaled s;
  Executable exec = Compiled(s.graph, {.slots = 1, .check_against_host = true});
  const HostBuffer<int32_t> x = Pinned(kN, 7), y = Pinned(kN, 0);
  absl::StatusOr<penstock::Run> run = exec.Launch(exec.bindings().Set(s.x, x).Set(s.y, y).Set(s.by, 6));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(y[kN - 1], 42);
}

INSTANTIATE_TEST_SUITE_P(Host, OnDeviceParam, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, OnDeviceParam, testing::ValuesIn(CudaTargets()), NameOfTarget);

// What a new value costs.
class OnDeviceReplay : public OnDeviceParam {};

TEST_P(OnDeviceReplay, ANewValueIsOneSmallCopyAndNeitherSetNorCaptured) {
  const Scaled s;
  Executable exec = Compiled(s.graph);
  EXPECT_EQ(exec.submission_report().captures, 1) << "by Compile: where the value will be is known";
  const HostBuffer<int32_t> x = Pinned(kN, 7), y = Pinned(kN, 0);
  Bindings io = exec.bindings();
  OfRun(exec, io.Set(s.x, x).Set(s.y, y).Set(s.by, 1));
  for (int32_t by = 2; by < 20; ++by) {
    const driver::checked::Totals before = checks_->witness().totals();
    EXPECT_EQ(OfRun(exec, io.Set(s.by, by)), (Changes{.launched = 1})) << by;
    EXPECT_EQ(checks_->witness().totals() - before,
              (driver::checked::Totals{.batch_uploads = {2, 4 + kN * 4}, .batch_downloads = {1, kN * 4}, .pieces = 3}));
    EXPECT_EQ(y[0], 7 * by);
  }
  EXPECT_EQ(exec.submission_report().captures, 1);
  EXPECT_EQ(exec.submission_report().graphs, 1) << exec.submission_report().Text();
}

INSTANTIATE_TEST_SUITE_P(Host, OnDeviceReplay,
                         testing::Values(Target{"host:2", "graph", true}, Target{"host:2", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, OnDeviceReplay, testing::Values(Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::on_device_test
