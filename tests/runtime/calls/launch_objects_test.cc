// What callables of Launch nodes have made by LaunchContext::Get: how often, with which arguments and stream, when it
// goes, and that a capture comes to no harm by it. On checked host devices that pass for CUDA devices, since only there
// the callables themselves are called; what they submit, they give to the driver.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/launch_context.h"
#include "penstock/lease.h"
#include "penstock/runtime.h"
#include "penstock/status_macros.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::runtime::launch_objects_test {
namespace {

constexpr int64_t kN = 64;
constexpr size_t kBytes = kN * sizeof(int32_t);

// Host devices with CUDA's name and native streams, which are the driver's own.
class PassesForCuda : public driver::ForwardingDriver {
 public:
  explicit PassesForCuda(std::unique_ptr<driver::Driver> behind) : ForwardingDriver(std::move(behind)) {
    for (int d = 0; d < device_count(); ++d) {
      info_.push_back(ForwardingDriver::device(d));
      info_.back().kind = driver::DeviceKind::kCuda;
    }
  }
  const driver::DeviceInfo& device(int d) const override { return info_[static_cast<size_t>(d)]; }
  void* NativeStream(driver::Stream stream) const override { return reinterpret_cast<void*>(stream.bits); }

 private:
  std::vector<driver::DeviceInfo> info_;
};

driver::Driver* cuda = nullptr;  // of the test that runs
driver::Stream StreamOf(const LaunchContext& launch) { return {reinterpret_cast<uint64_t>(launch.native_stream())}; }
absl::Status CopyInside(const LaunchContext& launch, const void* from, void* to) {
  driver::CopyOp op{.kind = driver::CopyKind::kDeviceToDevice, .dst = to, .src = from, .width = kBytes};
  return cuda->Copy(StreamOf(launch), op);
}

std::atomic<int> made = 0, alive = 0, calls = 0;
std::mutex history_mu;
std::vector<std::string> history;  // what was made and destroyed
void Note(const char* what) {
  const std::lock_guard<std::mutex> lock(history_mu);
  history.emplace_back(what);
}

// A library's handle: memory to work in, which it allocates, clears and waits for.
struct Workspace {
  explicit Workspace(const LaunchContext& launch) : stream(StreamOf(launch)), device(launch.device()) {
    ++made, ++alive;
    memory = *cuda->AllocateDevice(device, kBytes);
    driver::FillOp fill{.dst = memory, .count = kBytes};
    EXPECT_OK(cuda->Fill(stream, fill));
    Await();
    Note("workspace");
  }
  ~Workspace() {
    --alive;
    Await();  // a mistake where another device is current, or the stream has gone
    cuda->FreeDevice(device, memory);  // and where work is in flight
    Note("no workspace");
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void Await() const {
    const driver::Event event = *cuda->CreateEvent(device, false);
    EXPECT_OK(cuda->Record(event, stream));
    while (!*cuda->Query(event)) std::this_thread::yield();
    cuda->DestroyEvent(event);
  }

  const driver::Stream stream;
  const int device;
  void* memory = nullptr;
};

// from to the workspace, from there to `to`.
absl::Status ThroughWorkspace(LaunchContext& launch, const int32_t* from, int32_t* to) {
  ++calls;
  Workspace& workspace = launch.Get<Workspace>();
  EXPECT_EQ(&workspace, &launch.Get<Workspace>());
  EXPECT_EQ(workspace.stream, StreamOf(launch)) << "whoever gets it has the stream it was made with";
  PENSTOCK_RETURN_IF_ERROR(CopyInside(launch, from, workspace.memory));
  return CopyInside(launch, workspace.memory, to);
}

// As many Launch nodes as there are parts of x and y, each y = x of its own. Nothing but a lane orders them, and no
// bytes that they share.
struct Copies {
  Graph graph{"copies"};
  const int parts;
  BufferHandle<int32_t> x, y;

  template <class F>
  Copies(int n, F f) : parts(n) {
    x = graph.Input<int32_t>("x", n * kN);
    y = graph.Output<int32_t>("y", n * kN);
    for (int i = 0; i < n; ++i) {
      graph.Launch("copy" + std::to_string(i), f, Read(x, Slice(i * kN, kN)), Write(y, Slice(i * kN, kN)));
    }
  }
};

struct Way {
  const char* mode;
  uint64_t order_seed = 0;
};

class ForeignObjectsTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    history.clear();
    made = alive = calls = 0;
    absl::StatusOr<Runtime> created = Runtime::Create({.devices = "host:2"});
    ASSERT_OK(created.status());
    runtime_.emplace(*std::move(created));
  }
  void TearDown() override {
    runtime_.reset();
    EXPECT_EQ(alive, 0);
    for (const std::string& violation : witness_->violations()) ADD_FAILURE() << violation;
    EXPECT_TRUE(witness_->gauges() == driver::checked::Gauges{}) << TextOf(witness_->gauges());
  }

  bool in_graphs() const { return std::string_view(GetParam().mode) == "graph"; }
  Executable Compiled(const Graph& graph, CompileOptions options = {.slots = 1}) {
    absl::StatusOr<Executable> exec = runtime_->Compile(graph, std::move(options));
    EXPECT_OK(exec.status());
    return exec.ok() ? *exec : Executable();
  }
  // Runs that overlap as far as there are slots, each with memory of its own.
  void CheckRuns(Executable& exec, const Copies& c, int runs) {
    Bindings io = exec.bindings();
    std::vector<std::vector<int32_t>> from, to;
    for (int r = 0; r < runs; ++r) {
      from.emplace_back(c.parts * kN);
      to.emplace_back(c.parts * kN, -1);
      std::iota(from.back().begin(), from.back().end(), 1000 * r);
    }
    std::vector<penstock::Run> flying;
    for (size_t r = 0; r < from.size(); ++r) {
      absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(c.x, from[r]).Set(c.y, to[r]));
      EXPECT_OK(run.status());
      if (!run.ok()) break;
      flying.push_back(*std::move(run));
    }
    for (const penstock::Run& run : flying) EXPECT_OK(run.Wait());
    EXPECT_EQ(from, to);
  }

  const ModeScope mode_{GetParam().mode};
  const std::shared_ptr<driver::checked::CallRecorder> witness_ = std::make_shared<driver::checked::CallRecorder>();
  const ScopedDriverHook hook_{
      {.host_options = [](driver::host::HostDriverOptions& options) { options.order_seed = GetParam().order_seed; },
       .wrap =
           [this](std::unique_ptr<driver::Driver> driver) {
             auto passes =
                 std::make_unique<PassesForCuda>(driver::checked::CreateCheckedDriver(std::move(driver), witness_));
             cuda = passes.get();
             return passes;
           },
       .pinned = {.slab_bytes = 1 << 20}}};
  std::optional<Runtime> runtime_;
};

TEST_P(ForeignObjectsTest, IsMadeOnceALaneAndSlotAndGoesWithIt) {
  const Copies c(3, ThroughWorkspace);
  {
    Executable exec = Compiled(c.graph, {.slots = 2, .max_lanes = 2});
    {
      absl::StatusOr<Lease> lease = exec.Acquire();
      ASSERT_OK(lease.status());
      CheckRuns(exec, c, 12);
      EXPECT_EQ(made, GetParam().mode == std::string_view("stream") ? 2 : 4) << "two lanes, the other slot";
      std::vector<int32_t> from(c.parts * kN, 5), to(c.parts * kN);
      absl::StatusOr<penstock::Run> run = lease->Launch(exec.bindings().Set(c.x, from).Set(c.y, to));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(to, from);
    }
    EXPECT_EQ(made, 4) << "two lanes, two slots";
    CheckRuns(exec, c, 12);
    EXPECT_EQ(made, 4);
    EXPECT_EQ(alive, 4);
  }
  runtime_.reset();  // when that has gone, so have all executables
  EXPECT_EQ(alive, 0);
}

TEST_P(ForeignObjectsTest, WorkOfOneLaneHasItInTurns) {
  const Copies c(6, ThroughWorkspace);
  for (const int lanes : {1, 3}) {
    Executable exec = Compiled(c.graph, {.slots = 2, .max_lanes = lanes});
    CheckRuns(exec, c, 40);
  }
}

TEST_P(ForeignObjectsTest, OnTwoDevicesIsMadeOnEach) {
  Graph g("two");
  std::vector<BufferHandle<int32_t>> x, y;
  for (int d = 0; d < 2; ++d) {
    x.push_back(g.Input<int32_t>("x" + std::to_string(d), kN));
    y.push_back(g.Output<int32_t>("y" + std::to_string(d), kN));
    g.Launch("copy" + std::to_string(d), ThroughWorkspace, Read(x.back()), Write(y.back())).On(d);
  }
  Executable exec = Compiled(g);
  std::vector<int32_t> from(kN, 3), to(kN), also(kN);
  Bindings io = exec.bindings();
  absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x[0], from).Set(x[1], from).Set(y[0], to).Set(y[1], also));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(made, 2);
  EXPECT_EQ(to, from);
  EXPECT_EQ(also, from);
}

// The first call of a capture has the object made, and what it submits is thrown away.
TEST_P(ForeignObjectsTest, NothingOfACallThatMadeOneIsRun) {
  const Copies c(1, ThroughWorkspace);
  Executable exec = Compiled(c.graph);
  if (in_graphs()) {
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(exec.submission_report().captures, 2);
    EXPECT_EQ(witness_->totals().inside.calls, 0);
  }
  CheckRuns(exec, c, 5);
  EXPECT_EQ(witness_->totals().inside.calls, 10);
  EXPECT_LE(calls, in_graphs() ? 2 : 7) << "at most: under kAuto by captures and some runs";
}

TEST_P(ForeignObjectsTest, OneMayAskForAnotherAndGoesBeforeIt) {
  struct Second {
    explicit Second(LaunchContext& launch) : workspace(launch.Get<Workspace>()) { Note("second"); }
    ~Second() {
      workspace.Await();
      Note("no second");
    }
    Workspace& workspace;
  };
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    PENSTOCK_RETURN_IF_ERROR(CopyInside(launch, from, launch.Get<Second>().workspace.memory));
    return CopyInside(launch, launch.Get<Workspace>().memory, to);
  });
  {
    Executable exec = Compiled(c.graph);
    CheckRuns(exec, c, 3);
  }
  runtime_.reset();
  EXPECT_EQ(history, (std::vector<std::string>{"workspace", "second", "no second", "no workspace"}));
}

// One for each size, and for each type of size.
struct Sized {
  Sized(const LaunchContext&, int64_t elements) : size(elements) {}
  Sized(const LaunchContext&, int32_t elements) : size(elements) {}
  const int64_t size;
};

TEST_P(ForeignObjectsTest, OtherArgumentsMeanAnotherObject) {
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    Sized &three = launch.Get<Sized>(int64_t{3}), &four = launch.Get<Sized>(int64_t{4}), &other = launch.Get<Sized>(3);
    EXPECT_EQ(three.size, 3);
    EXPECT_EQ(four.size, 4);
    EXPECT_NE(&three, &other);
    EXPECT_EQ(&launch.Get<Sized>(int64_t{3}), &three);
    EXPECT_EQ(&launch.Get<Sized>(int64_t{4}), &four);
    EXPECT_EQ(&launch.Get<Sized>(3), &other);
    return CopyInside(launch, from, to);
  });
  Executable exec = Compiled(c.graph);
  CheckRuns(exec, c, 3);
}

int to_fail = 0;
class Made {
 public:
  static absl::StatusOr<std::unique_ptr<Made>> Make(const LaunchContext&, int of) {
    if (to_fail-- > 0) return absl::UnavailableError("no licence today for " + std::to_string(of));
    ++made;
    return std::unique_ptr<Made>(new Made);
  }

 private:
  Made() = default;
};

TEST_P(ForeignObjectsTest, AnErrorOfAFactoryIsReturnedAndTheNextRunTriesAgain) {
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    PENSTOCK_ASSIGN_OR_RETURN(Made * object, launch.Get<Made>(7));
    EXPECT_EQ(*launch.Get<Made>(7), object);
    return CopyInside(launch, from, to);
  });
  to_fail = 1;
  absl::StatusOr<Executable> exec = runtime_->Compile(c.graph, {.slots = 1});
  std::string words = exec.ok() ? exec->submission_report().Text() : exec.status().ToString();
  if (GetParam().mode == std::string_view("stream")) {
    std::vector<int32_t> x(kN), y(kN);
    absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(c.x, x).Set(c.y, y));
    ASSERT_OK(run.status());
    words = run->Wait().ToString();
  }
  EXPECT_NE(words.find("no licence today for 7"), std::string::npos) << words;
  EXPECT_EQ(made, 0);
  if (!exec.ok()) {
    EXPECT_EQ(exec.status().code(), absl::StatusCode::kUnavailable);
    exec = runtime_->Compile(c.graph, {.slots = 1});
  }
  ASSERT_OK(exec.status());
  CheckRuns(*exec, c, 3);
  EXPECT_EQ(made, 1);
}

int to_throw = 0;
struct Throws {
  explicit Throws(const LaunchContext&) {
    if (to_throw-- > 0) throw std::runtime_error("no handle today");
  }
};

TEST_P(ForeignObjectsTest, AConstructorThatThrowsIsTheNodesFailure) {
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    (void)launch.Get<Throws>();
    return ThroughWorkspace(launch, from, to);
  });
  to_throw = 1;
  absl::StatusOr<Executable> exec = runtime_->Compile(c.graph, {.slots = 1});
  std::string words = exec.ok() ? exec->submission_report().Text() : exec.status().ToString();
  if (GetParam().mode == std::string_view("stream")) {
    std::vector<int32_t> x(kN), y(kN);
    absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(c.x, x).Set(c.y, y));
    ASSERT_OK(run.status());
    words = run->Wait().ToString();
  }
  const std::string expected = "graph 'copies' node 'copy0' (";
  EXPECT_NE(words.find(expected), std::string::npos) << words;
  EXPECT_NE(words.find("the callable threw: no handle today"), std::string::npos) << words;
  EXPECT_EQ(exec.ok(), !in_graphs()) << "under kAuto it is none of the graphs' nodes";
  if (!exec.ok()) exec = runtime_->Compile(c.graph, {.slots = 1});
  ASSERT_OK(exec.status());
  CheckRuns(*exec, c, 3);
}

struct ThrowsAtItsEnd {
  explicit ThrowsAtItsEnd(const LaunchContext&) {}
  ~ThrowsAtItsEnd() noexcept(false) {
    Note("throws");
    throw std::runtime_error("no end today");
  }
};

TEST_P(ForeignObjectsTest, ADestructorThatThrowsHoldsUpNoOther) {
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    const absl::Status copied = ThroughWorkspace(launch, from, to);
    (void)launch.Get<ThrowsAtItsEnd>();
    return copied;
  });
  {
    Executable exec = Compiled(c.graph);
    CheckRuns(exec, c, 1);
  }
  runtime_.reset();
  EXPECT_EQ(history, (std::vector<std::string>{"workspace", "throws", "no workspace"}));
}

TEST_P(ForeignObjectsTest, ACallableThatCatchesItsExceptionIsTold) {
  if (!in_graphs()) GTEST_SKIP() << "nothing is captured";
  const Copies c(1, [](LaunchContext& launch, const int32_t* from, int32_t* to) {
    try {
      (void)launch.Get<Throws>();
    } catch (const std::runtime_error&) {
    }
    return CopyInside(launch, from, to);
  });
  to_throw = 1000;
  const absl::Status refused = runtime_->Compile(c.graph, {.slots = 1}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.ToString().find("let the exception of its constructor through, or return"), std::string::npos)
      << refused;
  EXPECT_EQ(to_throw, 999) << "called once";
  EXPECT_EQ(witness_->totals().inside.calls, 0);
}

TEST_P(ForeignObjectsTest, ACaptureThatCannotBeBegunAgainRunsNothing) {
  if (!in_graphs()) GTEST_SKIP() << "nothing is captured";
  const Copies c(1, ThroughWorkspace);
  for (const int64_t n : {1, 2, 3}) {
    witness_->FailNth(driver::checked::CallKind::kBeginCapture, n, absl::UnavailableError("planned"));
    const absl::Status refused = runtime_->Compile(c.graph, {.slots = 1}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << n;
    EXPECT_TRUE(refused.ToString().ends_with("planned")) << refused;
    EXPECT_EQ(witness_->totals().inside.calls, 0);
    EXPECT_EQ(alive, 0);
  }
}

TEST_P(ForeignObjectsTest, ZeroIsZeroOnTheDevice) {
  using Zeros = std::array<int32_t, 16>;
  Graph g("zero");
  const auto y = g.Output<Zeros>("y", 4);
  g.Launch(
      "zeros",
      [](LaunchContext& launch, Zeros* to) -> absl::Status {
        for (int i = 0; i < 4; ++i) {
          const driver::CopyOp op{.kind = driver::CopyKind::kDeviceToDevice,
                                  .dst = to + i,
                                  .src = launch.Zero<Zeros>(),
                                  .width = sizeof(Zeros)};
          PENSTOCK_RETURN_IF_ERROR(cuda->Copy(StreamOf(launch), op));
        }
        return absl::OkStatus();
      },
      Write(y));
  Executable exec = Compiled(g, {.slots = 2});
  for (int r = 0; r < 4; ++r) {
    std::vector<Zeros> to(4);
    for (Zeros& z : to) z.fill(-1);
    absl::StatusOr<penstock::Run> run = exec.Launch(exec.bindings().Set(y, to));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(to, std::vector<Zeros>(4));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ForeignObjectsTest,
                         testing::Values(Way{"stream"}, Way{"stream", 1}, Way{"graph"}, Way{"graph", 1},
                                         Way{"graph", 2}, Way{"auto", 3}),
                         [](const auto& of) {
                           return std::string(of.param.mode) + "_order" + std::to_string(of.param.order_seed);
                         });

}  // namespace
}  // namespace penstock::runtime::launch_objects_test
