// Exported graphs (Executable::Export), launched by somebody who is no run: what they do, whom they keep alive, and
// what cannot be exported.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/device_buffer.h"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"
#include "tests/support/native_driver.h"

namespace penstock::graph_export_test {
namespace {

using driver::NativeDriver;
using std::chrono::seconds;

constexpr int64_t kN = 300;

struct Scale {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint32_t by, const uint32_t* x, uint32_t* y) const {
    y[i] = by * x[i] + static_cast<uint32_t>(i);
  }
};
struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint32_t* x) const { x[i] += 5; }
};

class GraphExportTest : public testing::Test {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.host_options = [](auto& host) { host.order_seed = 3; },
                                          .wrap =
                                              [this](auto behind) {
                                                auto native = std::make_unique<NativeDriver>(std::move(behind));
                                                driver_ = native.get();
                                                return driver::checked::CreateCheckedDriver(std::move(native),
                                                                                            witness_);
                                              }});
    auto made = Runtime::Create({.devices = "host:2", .workers = 2, .host_device_threads = 2});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
    stream_ = *driver_->CreateStream(0, 0);
    event_ = *driver_->CreateEvent(0, false);
  }
  void TearDown() override {
    if (!runtime_.has_value()) return;
    driver_->DestroyEvent(event_);
    driver_->DestroyStream(stream_);
    runtime_.reset();
    EXPECT_EQ(witness_->violations(), std::vector<std::string>());
    EXPECT_EQ(witness_->gauges(), driver::checked::Gauges{});
  }
  Executable Compiled(const Graph& graph, CompileOptions options = {.slots = 1, .mode = Mode::kGraph}) {
    auto exec = runtime_->Compile(graph, std::move(options));
    EXPECT_OK(exec.status());
    return *std::move(exec);
  }
  HostBuffer<uint32_t> Pinned(int64_t n = kN) {
    auto buffer = runtime_->MakeHostBuffer<uint32_t>(n);
    EXPECT_OK(buffer.status());
    std::fill(buffer->begin(), buffer->end(), 0xDEADu);
    return *std::move(buffer);
  }
  // As an application does: instantiates the graph, launches it so often, and waits.
  void LaunchAsApplication(const ExportedGraph& exported, int launches = 1) {
    auto exec = driver_->Instantiate(NativeDriver::GraphOf(exported.native_graph()));
    ASSERT_OK(exec.status());
    for (int i = 0; i < launches; ++i) ASSERT_OK(driver_->LaunchGraph(*exec, stream_));
    ASSERT_OK(driver_->Record(event_, stream_));
    while (!*driver_->Query(event_)) std::this_thread::yield();
    driver_->DestroyExec(*exec);
  }

  const ModeScope options_{""};  // those of the test count
  const std::shared_ptr<driver::checked::CallRecorder> witness_ = std::make_shared<driver::checked::CallRecorder>();
  NativeDriver* driver_ = nullptr;
  std::optional<Runtime> runtime_;
  driver::Stream stream_;
  driver::Event event_;
};

// x -> Scale -> host fallback of a library -> y; a fill and a copy beside it, of which one of a launch's size may be of
// nothing.
struct Step {
  Graph graph{"step"};
  ParamHandle<uint32_t> by = graph.Param<uint32_t>("by");
  ParamHandle<int64_t> rest = graph.Param<int64_t>("rest", AtMost(kN));
  BufferHandle<uint32_t> x = graph.Input<uint32_t>("x", kN), y = graph.Output<uint32_t>("y", kN);
  BufferHandle<uint32_t> z = graph.Output<uint32_t>("z", rest);

  explicit Step(std::shared_ptr<int> kept = nullptr) {
    auto t = graph.Buffer<uint32_t>("t", kN);
    auto u = graph.Buffer<uint32_t>("u", rest);
    graph.ParallelFor("scale", kN, Scale{}, by, Read(x), Write(t));
    graph.Launch(
             "library", [](LaunchContext&, uint32_t*) { return absl::OkStatus(); }, ReadWrite(t))
        .HostFallback([kept](uint32_t* t_) {
          for (int64_t i = 0; i < kN; ++i) t_[i] ^= 0x55u;
        });
    graph.ParallelFor("tail", rest, AddTo{}, ReadWrite(t));
    graph.Copy("out", Read(t), Write(y));
    graph.Fill("fill", u, 7u);
    graph.ParallelFor("add", rest, AddTo{}, ReadWrite(u));
    graph.Copy("rest", Read(u), Write(z));
  }
  static uint32_t Of(uint32_t x, uint32_t by, int64_t i, int64_t rest = kN) {
    return ((by * x + static_cast<uint32_t>(i)) ^ 0x55u) + (i < rest ? 5 : 0);
  }
};

TEST_F(GraphExportTest, DoesWhatARunWouldDoWithWhatWasBound) {
  std::mt19937 random(3);
  const Step step;
  for (const Mode mode : {Mode::kGraph, Mode::kAuto}) {
    Executable exec = Compiled(step.graph, {.slots = 2, .mode = mode});
    for (const int64_t rest : {kN, int64_t{0}, int64_t{17}}) {
      HostBuffer<uint32_t> x = Pinned(), y = Pinned(), z = Pinned(std::max<int64_t>(rest, 1));
      for (uint32_t& v : x) v = static_cast<uint32_t>(random());
      const auto by = static_cast<uint32_t>(random());
      Bindings io = exec.bindings();
      io.Set(step.by, by).Set(step.rest, rest).Set(step.x, x).Set(step.y, y);
      io.Set(step.z, std::span(z.data(), static_cast<size_t>(rest)));
      auto exported = exec.Export(io);
      ASSERT_OK(exported.status());
      io.Set(step.by, by + 1);  // is for others
      LaunchAsApplication(*exported);
      for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], Step::Of(x[i], by, i, rest)) << i;
      for (int64_t i = 0; i < rest; ++i) ASSERT_EQ(z[i], 12u) << i;
      // What it reads, it reads anew.
      for (uint32_t& v : x) v = static_cast<uint32_t>(random());
      LaunchAsApplication(*exported, 3);
      for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], Step::Of(x[i], by, i, rest)) << i;
    }
  }
}

TEST_F(GraphExportTest, LeavesRunsAsTheyWere) {
  const Step step;
  Executable exec = Compiled(step.graph);
  HostBuffer<uint32_t> x = Pinned(), y = Pinned(), z = Pinned(), ey = Pinned(), ez = Pinned();
  std::iota(x.begin(), x.end(), 1u);
  Bindings io = exec.bindings(), other = exec.bindings();
  io.Set(step.by, 3u).Set(step.rest, kN).Set(step.x, x).Set(step.y, y).Set(step.z, z);
  other.Set(step.by, 9u).Set(step.rest, kN).Set(step.x, x).Set(step.y, ey).Set(step.z, ez);
  for (int round = 0; round < 3; ++round) {
    {
      auto exported = exec.Export(other);
      ASSERT_OK(exported.status());
      LaunchAsApplication(*exported);
    }
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(ey[i], Step::Of(x[i], 9, i)) << i;
    std::fill(y.begin(), y.end(), 0u);
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], Step::Of(x[i], 3, i)) << round << " " << i;
    std::fill(ey.begin(), ey.end(), 0u);
  }
}

// Many parameters that change launch after launch come by one copy; who is exported has its own.
TEST_F(GraphExportTest, OfASlotWhoseNodesReadTheirParametersOnTheDevice) {
  constexpr int kNodes = 24;
  Graph g("many");
  auto by = g.Param<uint32_t>("by");
  auto x = g.InOut<uint32_t>("x", kN);
  for (int n = 0; n < kNodes; ++n) {
    g.ParallelFor(
        "node " + std::to_string(n), kN, [](int64_t i, uint32_t k, uint32_t* x_) { x_[i] = 3 * x_[i] + k; }, by,
        ReadWrite(x));
  }
  const auto of = [](uint32_t k) {
    uint32_t v = 1;
    for (int n = 0; n < kNodes; ++n) v = 3 * v + k;
    return v;
  };
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned();
  Bindings io = exec.bindings();
  io.Set(x, memory);
  const auto run_with = [&](uint32_t k) {
    std::fill(memory.begin(), memory.end(), 1u);
    auto run = exec.Launch(io.Set(by, k));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    for (const uint32_t v : memory) ASSERT_EQ(v, of(k));
  };
  for (uint32_t k = 0; k < 12; ++k) run_with(k);
  ASSERT_GT(exec.submission_report().refreshes, 0);
  for (const uint32_t k : {11u, 77u}) {  // that of the run before, and another
    std::fill(memory.begin(), memory.end(), 1u);
    {
      auto exported = exec.Export(io.Set(by, k));
      ASSERT_OK(exported.status());
      LaunchAsApplication(*exported);
    }
    for (const uint32_t v : memory) ASSERT_EQ(v, of(k));
  }
  run_with(77);
  run_with(78);
  // A run with the very bindings that were exported.
  HostBuffer<uint32_t> elsewhere = Pinned();
  std::fill(elsewhere.begin(), elsewhere.end(), 1u);
  Bindings other = exec.bindings();
  ASSERT_OK(exec.Export(other.Set(by, 78u).Set(x, elsewhere)).status());
  auto run = exec.Launch(other);
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
  for (const uint32_t v : elsewhere) ASSERT_EQ(v, of(78));
}

TEST_F(GraphExportTest, KeepsAliveWhatItNamesAndASlot) {
  auto callable = std::make_shared<int>(0), memory = std::make_shared<int>(0);
  const std::weak_ptr<int> has_callable = callable, has_memory = memory;
  HostBuffer<uint32_t> x = Pinned(), y = Pinned(), z = Pinned();
  std::iota(x.begin(), x.end(), 1u);
  std::optional<ExportedGraph> exported;
  {
    auto step = std::make_unique<Step>(std::move(callable));
    Executable exec = Compiled(step->graph);
    Bindings io = exec.bindings();
    io.Set(step->by, 3u).Set(step->rest, kN).Set(step->y, y).Set(step->z, z);
    io.Set(step->x, std::span(x.data(), static_cast<size_t>(kN)), std::move(memory));
    auto made = exec.Export(io);
    ASSERT_OK(made.status());
    EXPECT_EQ(exec.TryLaunch(io).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(exec.Export(io).status().code(), absl::StatusCode::kResourceExhausted);
    exported = *std::move(made);
    const ExportedGraph copy = *exported;
    exported = copy;
  }
  EXPECT_FALSE(has_callable.expired());
  EXPECT_FALSE(has_memory.expired());
  LaunchAsApplication(*exported, 2);
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], Step::Of(x[i], 3, i)) << i;
  exported.reset();
  EXPECT_TRUE(has_callable.expired());
  EXPECT_TRUE(has_memory.expired());
}

TEST_F(GraphExportTest, GivesItsSlotBack) {
  const Step step;
  Executable exec = Compiled(step.graph);
  HostBuffer<uint32_t> x = Pinned(), y = Pinned(), z = Pinned();
  Bindings io = exec.bindings();
  io.Set(step.by, 3u).Set(step.rest, kN).Set(step.x, x).Set(step.y, y).Set(step.z, z);
  for (int i = 0; i < 3; ++i) EXPECT_OK(exec.Export(io).status());
  Bindings wrong = exec.bindings();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(exec.Export(wrong).status().code(), absl::StatusCode::kFailedPrecondition);
  auto run = exec.TryLaunch(io);
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
}

// Device memory that is bound parts graphs at its touches; exported they are one behind the other.
TEST_F(GraphExportTest, JoinsGraphsThatARunLaunchesOneByOne) {
  Graph g("parted");
  auto x = g.InOut<uint32_t>("x", kN, kDevice);
  auto a = g.Input<uint32_t>("a", kN);
  auto y = g.Output<uint32_t>("y", kN);
  auto t = g.Buffer<uint32_t>("t", kN);
  g.ParallelFor("first", kN, Scale{}, 2u, Read(a), Write(t));
  g.ParallelFor("bound", kN, AddTo{}, ReadWrite(x));
  g.ParallelFor("last", kN, [](int64_t i, const uint32_t* t_, uint32_t* x_) { x_[i] += t_[i]; }, Read(t), ReadWrite(x));
  g.Copy("out", Read(x), Write(y));
  Executable exec = Compiled(g);
  auto memory = runtime_->MakeDeviceBuffer<uint32_t>(kN);
  ASSERT_OK(memory.status());
  Graph fill("fill");
  auto f = fill.Output<uint32_t>("f", kN, kDevice);
  fill.Fill("fill", f, 100u);
  Executable filled = Compiled(fill);
  Bindings with = filled.bindings();
  auto run = filled.Launch(with.Set(f, *memory));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));

  HostBuffer<uint32_t> in = Pinned(), y_ = Pinned();
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(x, *memory).Set(a, in).Set(y, y_));
  ASSERT_OK(exported.status());
  ASSERT_GT(*driver_->CountNodes(NativeDriver::GraphOf(exported->native_graph())), 1);
  std::mt19937 random(5);
  std::vector<uint32_t> expected(kN, 100);
  for (int launch = 0; launch < 50; ++launch) {
    for (uint32_t& v : in) v = static_cast<uint32_t>(random());
    LaunchAsApplication(*exported);
    for (int64_t n = 0; n < kN; ++n) {
      uint32_t& of = expected[static_cast<size_t>(n)];
      of += 5 + 2 * in[n] + static_cast<uint32_t>(n);
      ASSERT_EQ(y_[n], of) << launch << " " << n;
    }
  }
}

// Host nodes between kernels, behind them all, and one that a device would ask for.
TEST_F(GraphExportTest, CallsHostNodesWhereTheyStand) {
  Graph g("hosts");
  auto x = g.InOut<uint32_t>("x", kN);
  auto y = g.Output<uint32_t>("y", kN);
  auto k = g.Param<uint32_t>("k");
  std::atomic<int> last = 0;
  const auto step = [](uint32_t by) {
    return [by](std::span<uint32_t> v) {
      for (uint32_t& of : v) of = 3 * of + by;
    };
  };
  const auto step_by = [](std::span<uint32_t> v, uint32_t by) {
    for (uint32_t& of : v) of = 3 * of + by;
  };
  g.ParallelFor("first", kN, AddTo{}, ReadWrite(x));
  g.Host("second", step(1), ReadWrite(x));
  g.ParallelFor("third", kN, AddTo{}, ReadWrite(x));
  g.Host("asked", step(2), ReadWrite(x)).Inline();
  g.ParallelFor("fourth", kN, AddTo{}, ReadWrite(x));
  g.Host("fifth", step_by, ReadWrite(x), k);
  g.Copy("out", Read(x), Write(y));
  g.Host("last", [&](std::span<const uint32_t>) { ++last; }, Read(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> x_ = Pinned();
  std::vector<uint32_t> y_(kN);  // not pinned: copied by the host too
  std::iota(x_.begin(), x_.end(), 1u);
  std::vector<uint32_t> expected(x_.begin(), x_.end());
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(x, x_).Set(y, y_).Set(k, 9));
  ASSERT_OK(exported.status());
  for (int launch = 1; launch <= 5; ++launch) {
    LaunchAsApplication(*exported);
    for (size_t i = 0; i < expected.size(); ++i) {
      uint32_t& of = expected[i];
      of = 3 * (3 * (3 * (of + 5) + 1 + 5) + 2 + 5) + 9;
      ASSERT_EQ(x_[static_cast<int64_t>(i)], of) << launch << " " << i;
      ASSERT_EQ(y_[i], of) << launch << " " << i;
    }
    EXPECT_EQ(last, launch);
  }
  EXPECT_OK(exported->status());
}

TEST_F(GraphExportTest, OfAPlanOnTwoDevicesHasTheNodesOfBoth) {
  Graph g("two devices");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  auto y = g.Output<uint32_t>("y", kN, kPinned);
  g.ParallelFor("first", kN, AddTo{}, ReadWrite(x)).On(0);
  g.ParallelFor("second", kN, AddTo{}, ReadWrite(x)).On(1);
  g.ParallelFor("third", kN, Scale{}, uint32_t{3}, Read(x), Write(y)).On(0);
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> from = Pinned(), to = Pinned();
  std::iota(from.begin(), from.end(), 7u);
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(x, from).Set(y, to));
  ASSERT_OK(exported.status());
  LaunchAsApplication(*exported, 2);
  for (int64_t i = 0; i < kN; ++i) {
    const auto n = static_cast<uint32_t>(i);
    ASSERT_EQ(from[i], n + 7 + 20) << i;
    ASSERT_EQ(to[i], 3 * (n + 7 + 20) + n) << i;
  }
}

TEST_F(GraphExportTest, AHostNodeThatFailsKeepsLaterOnesFromBeingCalled) {
  Graph g("fails");
  auto x = g.InOut<uint32_t>("x", kN);
  int first = 0, last = 0;
  g.Host(
      "first", [&](std::span<uint32_t>) { return ++first < 2 ? absl::OkStatus() : absl::DataLossError("lost"); },
      ReadWrite(x));
  g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
  g.Host("last", [&](std::span<uint32_t>) { ++last; }, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> x_ = Pinned();
  std::fill(x_.begin(), x_.end(), 1u);
  Bindings io = exec.bindings();
  io.Set(x, x_);
  {
    auto exported = exec.Export(io);
    ASSERT_OK(exported.status());
    LaunchAsApplication(*exported);
    EXPECT_OK(exported->status());
    LaunchAsApplication(*exported, 2);
    EXPECT_EQ(exported->status().code(), absl::StatusCode::kDataLoss) << exported->status();
    EXPECT_NE(Text(exported->status()).find("node 'first'"), std::string::npos) << exported->status();
    EXPECT_EQ(first, 2);
    EXPECT_EQ(last, 1);
  }
  first = 0;
  auto exported = exec.Export(io);  // of the same slot
  ASSERT_OK(exported.status());
  EXPECT_OK(exported->status());
}

TEST_F(GraphExportTest, AHostNodeLaunchesNothingAndWaitsForItsTurn) {
  Graph g("inside");
  auto x = g.InOut<uint32_t>("x", kN);
  Executable exec;
  Bindings io, other;
  std::optional<absl::Status> inside;
  std::atomic<int> within = 0, most = 0;
  g.Host(
      "look",
      [&](std::span<uint32_t>) {
        most = std::max<int>(most, ++within);
        if (!inside.has_value()) inside = exec.TryLaunch(other).status();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --within;
      },
      ReadWrite(x));
  g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
  exec = Compiled(g, {.slots = 2, .mode = Mode::kGraph});
  HostBuffer<uint32_t> x_ = Pinned(), runs = Pinned();
  io = exec.bindings();
  other = exec.bindings();
  auto exported = exec.Export(io.Set(x, x_));
  ASSERT_OK(exported.status());
  other.Set(x, runs);
  LaunchAsApplication(*exported);
  EXPECT_EQ(inside->code(), absl::StatusCode::kFailedPrecondition) << *inside;
  EXPECT_NE(Text(*inside).find("called as a part of a device's work"), std::string::npos) << *inside;
  std::thread application([&] { LaunchAsApplication(*exported, 20); });
  for (int i = 0; i < 20; ++i) {
    auto run = exec.Launch(other);
    EXPECT_OK(run.status());
    if (run.ok()) {
      EXPECT_OK(run->Wait(seconds(60)));
    }
  }
  application.join();
  EXPECT_EQ(most, 1);
}

// Which CUDA's thread must not do: it is left to another.
TEST_F(GraphExportTest, AHostNodeMayLetGoOfMemory) {
  Graph g("lets go");
  auto x = g.InOut<uint32_t>("x", kN);
  std::optional<DeviceBuffer<uint32_t>> device = *runtime_->MakeDeviceBuffer<uint32_t>(kN);
  std::optional<HostBuffer<uint32_t>> host = Pinned();
  g.Host(
      "lets go",
      [&](std::span<uint32_t>) {
        device.reset();
        host.reset();
      },
      ReadWrite(x));
  g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> x_ = Pinned();
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(x, x_));
  ASSERT_OK(exported.status());
  LaunchAsApplication(*exported);
  EXPECT_OK(exported->status());
  EXPECT_FALSE(device.has_value());
}

TEST_F(GraphExportTest, SaysWhatCannotBeExportedAndWhatToDo) {
  const auto refusal = [&](const Graph& g, const std::function<void(Bindings&)>& bind = nullptr,
                           CompileOptions options = {.slots = 1, .mode = Mode::kGraph}) {
    Executable exec = Compiled(g, std::move(options));
    Bindings io = exec.bindings();
    if (bind) bind(io);
    const absl::Status status = exec.Export(io).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    auto leased = exec.TryAcquire();
    EXPECT_OK(leased.status());
    return Text(status);
  };
  std::vector<uint32_t> large(size_t{8} << 20);
  {
    Graph g("g");
    auto x = g.InOut<uint32_t>("x", static_cast<int64_t>(large.size()));
    g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
    EXPECT_EQ(refusal(g, nullptr, {.slots = 1, .mode = Mode::kStream}),
              "graph 'g': not exported, since it has no graphs; compile with Mode::kGraph or Mode::kAuto");
    const std::string text = refusal(g, [&](Bindings& io) { io.Set(x, large); });
    EXPECT_NE(text.find("not exported: several threads copy what is bound, since it is large and not pinned; bind "
                        "pinned memory"),
              std::string::npos)
        << text;
  }
  {
    auto state = runtime_->MakeState<uint32_t>("sum", kN);
    ASSERT_OK(state.status());
    Graph g("g");
    auto s = g.Use(*state);
    g.ParallelFor("add", kN, AddTo{}, ReadWrite(s));
    EXPECT_EQ(refusal(g),
              "graph 'g': not exported, since its States have an order with runs, of which an exported graph is none; "
              "bind memory");
  }
  {
    Graph g("g");
    auto x = g.InOut<uint32_t>("x", kN);
    for (const char* const name : {"one", "two"}) g.ParallelFor(name, 1, AddTo{}, ReadWrite(x));
    EXPECT_EQ(
        refusal(g, nullptr, {.slots = 1, .mode = Mode::kGraph, .resident = Resident::kOn}),
        "graph 'g': not exported, since regions that run resident need room that an application's launches do not "
        "ask for; compile with Resident::kOff");
  }
  {
    Graph g("g");
    auto x = g.InOut<uint32_t>("x", kN, kSlot);
    g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
    const std::string text = refusal(g);
    EXPECT_NE(text.find("buffer 'x'"), std::string::npos) << text;
    EXPECT_NE(text.find("declared kSlot, but an exported graph has no slot that could be filled; bind memory instead"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(Executable().Export(Bindings()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HostDevices, HaveNoGraphsToExport) {
  const ModeScope options("");
  Runtime runtime = HostRuntime();
  Graph g("g");
  auto x = g.InOut<uint32_t>("x", kN);
  g.ParallelFor("add", kN, AddTo{}, ReadWrite(x));
  auto exec = runtime.Compile(g, {.slots = 1, .mode = Mode::kGraph});
  ASSERT_OK(exec.status());
  auto memory = runtime.MakeHostBuffer<uint32_t>(kN);
  ASSERT_OK(memory.status());
  Bindings io = exec->bindings();
  EXPECT_EQ(exec->Export(io.Set(x, *memory)).status(),
            absl::FailedPreconditionError(
                "graph 'g': a graph on host:0 is none of CUDA's; export where the plan is on a CUDA device"));
}

}  // namespace
}  // namespace penstock::graph_export_test
