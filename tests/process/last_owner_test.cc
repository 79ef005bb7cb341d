// Whoever drops the last handles: all that the runtime has is freed and all its threads go, without a word.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/launch_context.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/must.h"
#include "tests/process/own_threads.h"
#include "tests/process/row.h"
#include "tests/support/kernels.h"

namespace penstock::test_support::last_owner_test {
namespace {

constexpr int64_t kN = 4;

// All handles there are.
struct Handles {
  std::optional<Runtime> runtime;
  std::optional<Executable> executable;
  std::optional<Lease> lease;
  std::optional<HostBuffer<int32_t>> buffer;
  std::optional<DeviceBuffer<int32_t>> device_buffer;
  std::optional<State<int32_t>> state;
  std::optional<penstock::Run> run;
  std::optional<Pipeline<int32_t>> pipeline;
  bool runtime_first = false;
  std::atomic<bool> ready{false}, dropped{false};

  // Called where the row says, once all handles are there; only the first call counts.
  void Drop() {
    ready.wait(false);
    if (dropped.load()) return;
    if (runtime_first) runtime.reset();
    pipeline.reset();
    run.reset();
    state.reset();
    device_buffer.reset();
    buffer.reset();
    lease.reset();
    executable.reset();
    runtime.reset();
    dropped = true;
    dropped.notify_all();
  }
  void Ready() {
    ready = true;
    ready.notify_all();
  }
};

Handles& All() {
  static Handles handles;
  return handles;
}

struct DropsAtItsEnd {
  DropsAtItsEnd() = default;
  explicit DropsAtItsEnd(LaunchContext&) {}
  DropsAtItsEnd(const DropsAtItsEnd&) = delete;
  DropsAtItsEnd& operator=(const DropsAtItsEnd&) = delete;
  ~DropsAtItsEnd() { All().Drop(); }
};

struct DropsOnDevice {
  Handles* handles;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const {
#if !defined(__CUDA_ARCH__)
    if (i == 0) handles->Drop();
#endif
    x[i] += 1;
  }
};

// A graph whose node drops the handles where `where` is a node's kind; else one that does some work.
BufferHandle<int32_t> Declare(Graph& graph, Handles& handles, const std::string& where,
                              const std::shared_ptr<int>& token) {
  auto x = graph.InOut<int32_t>("x", kN, kPinned);
  if (where == "device thread") {
    graph.ParallelFor("drop", kN, DropsOnDevice{&handles}, ReadWrite(x));
  } else {
    graph.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
  }
  const bool in_node = where == "host node" || where == "inline node" || where == "infallible node";
  NodeRef node = graph.Host(
      "host", [&handles, in_node, token](std::span<int32_t>) { in_node ? handles.Drop() : handles.ready.wait(false); },
      ReadWrite(x));
  if (where == "inline node") node.Inline();
  if (where == "infallible node") node.Infallible();
  if (where == "launch node")
    graph.Launch("launch", [&handles](LaunchContext&, int32_t*) { handles.Drop(); }, ReadWrite(x));
  if (where == "foreign object") {
    graph.Launch("launch", [](LaunchContext& launch, int32_t*) { launch.Get<DropsAtItsEnd>(); }, ReadWrite(x));
  }
  return x;
}

// Of a graph of its own.
Pipeline<int32_t> MakePipeline(Handles& handles, const std::string& where, const std::shared_ptr<int>& token) {
  Graph graph("piped");
  auto y = graph.Output<int32_t>("y", 1);
  graph.Fill("fill", y, 1);
  Executable executable = Must(handles.runtime->Compile(graph));
  Stages<int32_t> stages;
  stages.Host("stage", [&handles, where, token](int32_t&) {
    if (where == "stage") handles.Drop();
  });
  stages.Run("run", executable, [&handles, where, y](Item<int32_t>& item) {
    if (where == "set function") handles.Drop();
    item.Set(y, std::span<int32_t>(&item.value(), 1));
  });
  PipelineOptions options;
  if (where == "progress") {
    options.progress = [&handles](const PipelineStats&) { handles.Drop(); };
    options.progress_every = std::chrono::milliseconds(1);
  }
  return Must(Pipeline<int32_t>::Create(std::move(stages), std::move(options)));
}

bool IsOfPipeline(const std::string& where) {
  return where == "stage" || where == "set function" || where == "progress" || where == "sink";
}

void UsePipeline(Handles& handles, const std::string& where) {
  handles.Ready();
  if (where == "sink") {
    int left = 3;
    (void)handles.pipeline->Run(
        [&]() -> std::optional<int32_t> { return left-- > 0 ? std::optional(1) : std::nullopt; },
        [&](Item<int32_t>&) { handles.Drop(); });
  } else if (where != "progress") {
    (void)handles.pipeline->TryPush(1);
  }
}

void UseRun(Handles& handles, const std::string& where, const BufferHandle<int32_t>& x) {
  Bindings io = handles.executable->bindings();
  const bool keeps = where == "what a run holds" || where == "what a waiter holds";
  io.Set(x, std::span<int32_t>(handles.buffer->data(), kN), keeps ? std::make_shared<DropsAtItsEnd>() : nullptr);
  penstock::Run run = Must(handles.executable->Launch(io));
  io = Bindings();
  if (where == "callback") run.OnDone([&handles](const absl::Status&) { handles.Drop(); });
  if (where == "what a callback holds") {
    run.OnDone([last = std::make_shared<DropsAtItsEnd>()](const absl::Status&) {});
  }
  if (where == "log hook") run.OnDone([](const absl::Status&) { throw 1; });
  if (where == "what a waiter holds") {
    handles.Ready();
    (void)run.Wait();
    return;
  }
  handles.run = std::move(run);
  if (where != "foreign object") return handles.Ready();
  handles.run->OnDone([&handles](const absl::Status&) {
    handles.ready.wait(false);
    handles.run.reset();
    handles.lease.reset();
    handles.executable.reset();  // the last one may go later, with the run
  });
  handles.Ready();
}

// "host:1/gone/host node"; "exits": the process exits meanwhile.
const Scenario kLastOwner("last owner", [](const std::string& text) -> int {
  const Row row(text);
  const std::string where = row.work;
  auto token = std::make_shared<int>(1);
  {
    Handles& handles = All();
    const bool hooked = where == "log hook";
    const auto log = [hooked](LogLevel, std::string_view said) {
      if (hooked) return All().Drop();
      std::printf("log: %s\n", std::string(said).c_str());
      std::fflush(stdout);
    };
    RuntimeOptions options{.devices = row.devices, .workers = 2, .host_device_threads = 2, .log = log};
    if (where == "what a run holds") options.polling_cores = {sched_getcpu()};
    handles.runtime_first = row.end == "runtime first";
    handles.runtime = Must(Runtime::Create(options));
    Graph graph("last");
    const BufferHandle<int32_t> x = Declare(graph, handles, where, token);
    // Where graphs may be launched, Compile calls Launch nodes too, when there is nothing to drop yet.
    const Mode mode = where == "launch node" ? Mode::kStream : Mode::kAuto;
    handles.executable = Must(handles.runtime->Compile(graph, {.slots = 2, .mode = mode}));
    handles.lease = Must(handles.executable->Acquire());
    handles.buffer = Must(handles.runtime->MakeHostBuffer<int32_t>(kN));
    handles.device_buffer = Must(handles.runtime->MakeDeviceBuffer<int32_t>(kN));
    handles.state = Must(handles.runtime->MakeState<int32_t>("state", kN));
    handles.pipeline = MakePipeline(handles, where, token);
    IsOfPipeline(where) ? UsePipeline(handles, where) : UseRun(handles, where, x);
    handles.dropped.wait(false);
  }
  if (row.end == "exits") return 0;
  if (const std::string left = AwaitNoOwnThreads(); !left.empty()) std::printf("still there: %s\n", left.c_str());
  if (token.use_count() != 1) std::printf("the callables are still there\n");
  return 0;
});

class LastOwner : public ::testing::TestWithParam<std::string> {};

TEST_P(LastOwner, MayBeAnyone) {
  std::vector<std::string> environment = {"PENSTOCK_LOG=warning"};
  if (GetParam().find("/exits/") !=
      std::string::npos) {  // at any moment, so threads may have ended and not been joined
    const char* const options = std::getenv("TSAN_OPTIONS");
    environment.push_back(std::string("TSAN_OPTIONS=") + (options != nullptr ? options : "") +
                          " report_thread_leaks=0");
  }
  const ChildResult child = RunInChild(kLastOwner, GetParam(), {.environment = environment});
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 0") << child;
  EXPECT_EQ(child.output, "");
}

std::vector<std::string> AllRows(const std::string& devices) {
  constexpr std::string_view kPlaces[] = {"host node",
                                          "inline node",
                                          "infallible node",
                                          "callback",
                                          "what a run holds",
                                          "what a waiter holds",
                                          "what a callback holds",
                                          "log hook",
                                          "stage",
                                          "set function",
                                          "sink",
                                          "progress"};
  std::vector<std::string> rows = CsrRows(devices, {"gone", "runtime first", "exits"}, kPlaces);
  if (devices == "host:1") return rows.push_back("host:1/gone/device thread"), rows;
  for (const char* place : {"launch node", "foreign object"}) rows.push_back("cuda/gone/" + std::string(place));
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Host, LastOwner, ::testing::ValuesIn(AllRows("host:1")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, LastOwner, ::testing::ValuesIn(AllRows("cuda")), NameOfRow);

}  // namespace
}  // namespace penstock::test_support::last_owner_test
