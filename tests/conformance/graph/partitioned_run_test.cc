// Wide runs that several threads submit: what they compute is right whatever the number of submission threads and the
// order of the device, submission threads do help, the owner does without those that do not come, and failures, Cancel,
// traces and a dead device are what they are in a run that one thread submits. The checked driver looks on.
//
// The graph: rows of tasks on lanes of their own, each of which reads what two tasks of the row before have written.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "penstock/trace.h"
#include "src/base/status.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/forwarding_driver.h"

namespace penstock::conformance::partitioned_run_test {
namespace {

using driver::checked::CallKind;
using driver::checked::CallRecorder;

constexpr int64_t kN = 8;
constexpr std::chrono::seconds kLong{60};

PENSTOCK_HOST_DEVICE inline int32_t Mix(int32_t a, int32_t b, int64_t i, int32_t salt) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * 3u + static_cast<uint32_t>(b) * 5u +
                              static_cast<uint32_t>(i) * 7u + static_cast<uint32_t>(salt));
}
struct MixOver {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t salt, const int32_t* a, const int32_t* b,
                                       int32_t* out) const {
    out[i] = Mix(a[i], b[i], i, salt);
  }
};

// Task t of row r > 0 reads tasks of row r - 1, one of row 0 the input.
class Wide {
 public:
  Wide(uint64_t seed, int rows, int width, int devices, bool kernels_only = false)
      : rows_(rows), width_(width), random_(seed) {
    for (int t = 0; t < rows * width; ++t) {
      const int kind = kernels_only || t < width ? 0 : Below(8) < 6 ? 0 : 1 + Below(2);
      tasks_.push_back({kind, Before(t), Before(t), Below(devices), Below(1000)});
    }
  }

  // `gate`: a Host node that everything else waits for.
  void Declare(Graph& g, std::function<void()> gate = nullptr) {
    x = g.Input<int32_t>("x", kN, kPinned);
    BufferHandle<int32_t> from = x;
    if (gate) {
      from = g.Buffer<int32_t>("from", kN);
      g.Host(
          "gate",
          [gate](std::span<const int32_t> in, std::span<int32_t> out) {
            gate();
            std::copy(in.begin(), in.end(), out.begin());
          },
          Read(x), Write(from));
    }
    std::vector<BufferHandle<int32_t>> b;
    y.clear();
    for (int t = 0; t < rows_ * width_; ++t) {
      const std::string name = std::to_string(t / width_) + "/" + std::to_string(t % width_);
      if (t < (rows_ - 1) * width_) {
        b.push_back(g.Buffer<int32_t>("b" + name, kN));
      } else {
        b.push_back(y.emplace_back(g.Output<int32_t>("y" + name, kN, kPinned)));
      }
      const Task& task = tasks_[static_cast<size_t>(t)];
      const auto read = [&](int of) { return of < 0 ? from : b[static_cast<size_t>(of)]; };
      switch (task.kind) {
        case 0:
          g.ParallelFor(name, kN, MixOver{}, task.salt, Read(read(task.a)), Read(read(task.b)), Write(b.back()))
              .On(task.device);
          break;
        case 1: g.Copy(name, read(task.a), b.back()); break;
        default: g.Fill(name, b.back(), task.salt); break;
      }
    }
  }
  std::vector<int32_t> Expected(std::span<const int32_t> in) const {
    std::vector<std::vector<int32_t>> b;
    for (const Task& task : tasks_) {
      const auto read = [&](int of, int64_t i) {
        const auto at = static_cast<size_t>(i);
        return of < 0 ? in[at] : b[static_cast<size_t>(of)][at];
      };
      std::vector<int32_t> out;
      for (int64_t i = 0; i < kN; ++i) {
        out.push_back(task.kind == 0   ? Mix(read(task.a, i), read(task.b, i), i, task.salt)
                      : task.kind == 1 ? read(task.a, i)
                                       : task.salt);
      }
      b.push_back(std::move(out));
    }
    std::vector<int32_t> all;
    for (size_t t = b.size() - static_cast<size_t>(width_); t < b.size(); ++t) {
      all.insert(all.end(), b[t].begin(), b[t].end());
    }
    return all;
  }
  int tasks() const { return rows_ * width_; }

  BufferHandle<int32_t> x;
  std::vector<BufferHandle<int32_t>> y;

 private:
  struct Task {
    int kind, a, b, device;
    int32_t salt;
  };
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int Before(int t) { return t < width_ ? -1 : (t / width_ - 1) * width_ + Below(width_); }

  const int rows_, width_;
  std::mt19937_64 random_;
  std::vector<Task> tasks_;
};

// Calls `launching` before each launch of a kernel, in the thread that does it.
class Watching : public driver::ForwardingDriver {
 public:
  Watching(std::unique_ptr<driver::Driver> behind, std::function<void()> launching)
      : ForwardingDriver(std::move(behind)), launching_(std::move(launching)) {}
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    if (launching_) launching_();
    return ForwardingDriver::Launch(stream, op);
  }

 private:
  const std::function<void()> launching_;
};

// One executable of a wide graph, and memory for one run at a time of each slot.
class SplitRun : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda" && !Runtime::Create({.devices = "cuda"}).ok()) {
      if (RequiredDevices() >= 1) FAIL() << "no CUDA device";
      GTEST_SKIP() << "no CUDA device";
    }
  }
  void TearDown() override {
    Close();
    EXPECT_EQ(Complaints(), "");
  }

  void Open(int submission_threads, uint64_t order_seed = 0) {
    const runtime::ScopedDriverHook hook(
        {.host_options = [order_seed](driver::host::HostDriverOptions& host) { host.order_seed = order_seed; },
         .wrap =
             [this](std::unique_ptr<driver::Driver> driver) {
               witness_ = std::make_shared<CallRecorder>();
               return std::make_unique<Watching>(driver::checked::CreateCheckedDriver(std::move(driver), witness_),
                                                 launching_);
             },
         .pinned = {.slab_bytes = 1 << 20}});
    auto made = Runtime::Create({.devices = GetParam(),
                                 .workers = 2,
                                 .host_device_threads = 1,
                                 .submission_threads = submission_threads,
                                 .log_level = LogLevel::kOff});
    ASSERT_EQ(made.status(), absl::OkStatus());
    runtime_.emplace(*std::move(made));
  }
  void Compile(Wide& wide, CompileOptions options = {}, std::function<void()> gate = nullptr) {
    Graph g("wide");
    wide.Declare(g, std::move(gate));
    options.mode = Mode::kStream;
    auto made = runtime_->Compile(g, options);
    ASSERT_EQ(made.status(), absl::OkStatus());
    exec_ = *std::move(made);
  }
  void Close() {
    exec_ = {};
    runtime_.reset();
  }
  std::string Complaints() const {
    std::string text;
    if (witness_ == nullptr) return text;
    for (const std::string& violation : witness_->violations()) text += violation + "\n";
    if (const auto left = witness_->gauges(); !(left == driver::checked::Gauges{})) text += "alive: " + TextOf(left);
    return text;
  }
  int devices() const { return static_cast<int>(runtime_->devices().size()); }

  // Memory for a run.
  struct Memory {
    HostBuffer<int32_t> in;
    std::vector<HostBuffer<int32_t>> out;
    Bindings io;
    std::vector<int32_t> All() const {
      std::vector<int32_t> all;
      for (const HostBuffer<int32_t>& part : out) all.insert(all.end(), part.begin(), part.end());
      return all;
    }
  };
  Memory Bind(const Wide& wide, int32_t salt) {
    Memory memory{.in = *runtime_->MakeHostBuffer<int32_t>(kN), .out = {}, .io = exec_.bindings()};
    for (int64_t i = 0; i < kN; ++i) memory.in[i] = salt * 100 + static_cast<int32_t>(i);
    memory.io.Set(wide.x, memory.in);
    for (const BufferHandle<int32_t>& y : wide.y) {
      memory.out.push_back(*runtime_->MakeHostBuffer<int32_t>(kN));
      std::fill(memory.out.back().begin(), memory.out.back().end(), 0x5a5a5a5a);
      memory.io.Set(y, memory.out.back());
    }
    return memory;
  }
  void ExpectRight(const Wide& wide, const Memory& memory) {
    EXPECT_EQ(memory.All(), wide.Expected({memory.in.data(), kN}));
  }
  void RunOnceRight(const Wide& wide, int32_t salt) {
    Memory memory = Bind(wide, salt);
    auto run = exec_.Launch(memory.io);
    ASSERT_EQ(run.status(), absl::OkStatus());
    ASSERT_EQ(run->Wait(kLong), absl::OkStatus());
    ExpectRight(wide, memory);
  }

  std::function<void()> launching_;
  std::shared_ptr<CallRecorder> witness_;
  std::optional<Runtime> runtime_;
  Executable exec_;
};

TEST_P(SplitRun, OfRandomDagsIsRightWithAnyNumberOfFeeders) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    for (const int submission_threads : {0, 1, 3}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(submission_threads) + " submission threads");
      Open(submission_threads, seed % 3 == 0 ? 0 : seed);
      Wide wide(seed, 6 + static_cast<int>(seed % 5), 8, devices());
      Compile(wide, {.slots = 2, .max_lanes = 3 + static_cast<int>(seed % 5)});
      std::vector<Memory> memory;
      std::vector<penstock::Run> runs;
      for (int32_t r = 0; r < 6; ++r) {
        memory.push_back(Bind(wide, r));
        auto run = exec_.Launch(memory.back().io);
        ASSERT_EQ(run.status(), absl::OkStatus());
        runs.push_back(*std::move(run));
      }
      for (size_t r = 0; r < runs.size(); ++r) {
        ASSERT_EQ(runs[r].Wait(kLong), absl::OkStatus());
        ExpectRight(wide, memory[r]);
      }
      runs.clear();
      memory.clear();
      Close();
      ASSERT_EQ(Complaints(), "");
    }
  }
}

// Several threads launch at once, in slots of their own: each helps itself, and submission threads go from one to
// another.
TEST_P(SplitRun, OfManyCallersAtOnceIsRight) {
  Open(2);
  Wide wide(3, 8, 8, devices());
  Compile(wide, {.slots = 3, .max_lanes = 4});
  std::vector<std::vector<Memory>> memory(4);
  for (size_t c = 0; c < memory.size(); ++c) {
    for (int32_t r = 0; r < 8; ++r) memory[c].push_back(Bind(wide, static_cast<int32_t>(c) * 10 + r));
  }
  {
    std::vector<std::jthread> callers;
    for (std::vector<Memory>& mine : memory) {
      callers.emplace_back([this, &mine] {
        for (Memory& m : mine) {
          auto run = exec_.Launch(m.io);
          ASSERT_EQ(run.status(), absl::OkStatus());
          ASSERT_EQ(run->Wait(kLong), absl::OkStatus());
        }
      });
    }
  }
  for (const std::vector<Memory>& mine : memory) {
    for (const Memory& m : mine) ExpectRight(wide, m);
  }
}

// Holds the thread that has made it, at the first kernel that it launches in a run, until a submission thread has
// launched one. That may take another run: if the system puts this thread aside before it has submitted what others
// wait for, submission threads find nothing to do and sleep until the next run.
class Help {
 public:
  void Launching() {
    if (!awaited_.load()) return;
    if (std::this_thread::get_id() != caller_) {
      char name[16];
      pthread_getname_np(pthread_self(), name, sizeof(name));
      EXPECT_EQ(std::string(name).rfind("ps-submit/", 0), 0u) << name;
      if (seen_.fetch_add(1) == 0) helped_.release();
    } else if (std::exchange(hold_, false)) {
      (void)helped_.try_acquire_for(std::chrono::seconds(1));
    }
  }
  // Calls `run` until a submission thread has helped, at most 20 times. Returns how often.
  template <class F>
  int Await(F run) {
    int runs = 0;
    for (; runs < 20 && seen() == 0; ++runs) {
      hold_ = true;
      awaited_.store(true);
      run();
      awaited_.store(false);
    }
    return runs;
  }
  int seen() const { return seen_.load(); }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> awaited_{false};
  bool hold_ = false;
  std::counting_semaphore<> helped_{0};
  std::atomic<int> seen_{0};
};

TEST_P(SplitRun, FeedersHelpWhoLaunches) {
  Help help;
  launching_ = [&] { help.Launching(); };
  Open(2);
  Wide wide(1, 20, 8, 1, true);
  Compile(wide, {.max_lanes = 8});
  help.Await([&] { RunOnceRight(wide, 1); });
  EXPECT_GT(help.seen(), 0) << "no submission thread launched a kernel";
  Close();
}

// A range of about a hundred commands is of use for one submission thread. The one that helps stays in its first launch
// for a while, in which the others would come.
TEST_P(SplitRun, FewCommandsAreHelpedWithByFewFeeders) {
  std::mutex mu;
  std::condition_variable came;
  std::set<std::thread::id> helpers;
  const std::thread::id caller = std::this_thread::get_id();
  launching_ = [&] {
    std::unique_lock lock(mu);
    if (std::this_thread::get_id() == caller) {
      came.wait_for(lock, std::chrono::seconds(1), [&] { return !helpers.empty(); });
    } else if (helpers.insert(std::this_thread::get_id()).second) {
      came.notify_all();
      came.wait_for(lock, std::chrono::milliseconds(100), [&] { return helpers.size() > 1; });
    }
  };
  Open(3);
  Wide wide(1, 4, 8, 1, true);
  Compile(wide, {.max_lanes = 8});
  for (int run = 1; run <= 20 && helpers.empty(); ++run) RunOnceRight(wide, run);
  EXPECT_EQ(helpers.size(), 1u);
  Close();
}

struct Triple {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const {
    x[i] = static_cast<int32_t>(static_cast<uint32_t>(x[i]) * 3 + 1);
  }
};

// A wait for what a launch may name for its memory stands before each node, and does nothing unless a run is named.
TEST_P(SplitRun, OverBoundDeviceMemoryIsHelpedAndComesAfterTheRunsThatAreNamed) {
  constexpr int kBuffers = 96;
  Help help;
  launching_ = [&] { help.Launching(); };
  Open(2);
  Graph set("set"), step("step"), get("get");
  std::vector<BufferHandle<int32_t>> to_set, to_step, to_get;
  std::vector<DeviceBuffer<int32_t>> memory;
  const auto found = get.Output<int32_t>("found", kBuffers, kPinned);
  for (int b = 0; b < kBuffers; ++b) {
    memory.push_back(*runtime_->MakeDeviceBuffer<int32_t>(1));
    set.Fill(Name("fill", b), Write(to_set.emplace_back(set.Output<int32_t>(Name("b", b), 1, kDevice))), b);
    step.ParallelFor(Name("step", b), 1, Triple{},
                     ReadWrite(to_step.emplace_back(step.InOut<int32_t>(Name("b", b), 1, kDevice))));
    get.Copy(Name("copy", b), Read(to_get.emplace_back(get.Input<int32_t>(Name("b", b), 1, kDevice))),
             Write(found, Slice({b}, {1})));
  }
  const auto compile = [&](const Graph& graph) {
    return *runtime_->Compile(graph, {.slots = 2, .mode = Mode::kStream, .max_lanes = 8});
  };
  Executable setter = compile(set), stepper = compile(step), getter = compile(get);
  Bindings setting = setter.bindings(), first = stepper.bindings(), second = stepper.bindings(),
           getting = getter.bindings();
  HostBuffer<int32_t> seen = *runtime_->MakeHostBuffer<int32_t>(kBuffers);
  getting.Set(found, seen);
  for (size_t b = 0; b < kBuffers; ++b) {
    setting.Set(to_set[b], memory[b]);
    first.Set(to_step[b], memory[b]);
    second.Set(to_step[b], memory[b]);
    getting.Set(to_get[b], memory[b]);
  }
  ASSERT_EQ(setter.Launch(setting)->Wait(kLong), absl::OkStatus());
  penstock::Run one;
  const int steps = help.Await([&] {
    if (one) {
      ASSERT_EQ(one.Wait(kLong), absl::OkStatus());
    }
    one = *stepper.Launch(first);
  });
  EXPECT_GT(help.seen(), 0) << "no submission thread launched a kernel";
  for (const BufferHandle<int32_t>& b : to_step) second.After(b, one);
  const penstock::Run two = *stepper.Launch(second);
  for (const BufferHandle<int32_t>& b : to_get) getting.After(b, two);
  ASSERT_EQ(getter.Launch(getting)->Wait(kLong), absl::OkStatus());
  for (int b = 0; b < kBuffers; ++b) {
    uint32_t expected = static_cast<uint32_t>(b);
    for (int s = 0; s <= steps; ++s) expected = expected * 3 + 1;
    EXPECT_EQ(static_cast<uint32_t>(seen[b]), expected) << b;
  }
}

TEST_P(SplitRun, TheOwnerSubmitsAllWhereNoFeederComes) {
  pthread_attr_t usual, huge;
  pthread_getattr_default_np(&usual);
  pthread_getattr_default_np(&huge);
  Open(3);
  Wide wide(5, 10, 8, devices());
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);  // no system has room for it
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  Compile(wide, {.max_lanes = 6});
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  for (int32_t r = 0; r < 3; ++r) RunOnceRight(wide, r);
}

TEST_P(SplitRun, EachCallThatFailsIsOneNamedFailureAndTheNextRunIsRight) {
  Open(2);
  Wide wide(2, 9, 8, devices());
  Compile(wide, {.slots = 1, .max_lanes = 5});
  RunOnceRight(wide, 0);
  for (const CallKind kind :
       {CallKind::kLaunch, CallKind::kRecord, CallKind::kWait, CallKind::kCopy, CallKind::kFill}) {
    int failed = 0;
    for (int64_t n = 1;; n += 1 + n / 8) {
      SCOPED_TRACE("call " + std::to_string(n) + " of kind " + std::to_string(static_cast<int>(kind)));
      Memory memory = Bind(wide, 7);
      witness_->FailNth(kind, n, absl::UnavailableError("planned"));
      auto run = exec_.Launch(memory.io);
      ASSERT_EQ(run.status(), absl::OkStatus());
      const absl::Status status = run->Wait(kLong);
      if (!witness_->fault_fired()) {
        witness_->FailNth(kind, 1'000'000'000, absl::OkStatus());
        EXPECT_EQ(status, absl::OkStatus());
        break;
      }
      ++failed;
      const std::string text(status.message());
      EXPECT_NE(text.find("planned"), std::string::npos) << status;
      EXPECT_EQ(text.rfind("graph 'wide'", 0), 0u) << status;
      if (kind == CallKind::kLaunch) {
        EXPECT_NE(text.find("node '"), std::string::npos) << status;
      }
      RunOnceRight(wide, 8);
      if (HasFailure()) return;
    }
    EXPECT_GT(failed, kind == CallKind::kFill || kind == CallKind::kCopy ? 1 : 5);
  }
}

// The worker that ended the host node submits, submission threads help, and Cancel comes when some nodes have been
// submitted.
TEST_P(SplitRun, CancelInTheMiddleSubmitsNothingMoreAndCountsWhatIsLeft) {
  for (const int after : {1, 20, 70, 150}) {
    SCOPED_TRACE(after);
    std::counting_semaphore<> reached(0), cancelled(0);
    std::atomic<int> launched{0}, passed{0};
    std::atomic<bool> held{false};
    launching_ = [&] {
      if (launched.fetch_add(1) + 1 >= after && !held.exchange(true)) {
        reached.release();
        EXPECT_TRUE(cancelled.try_acquire_for(kLong));
      }
      // Those that are inside a call when it comes go on.
      ++passed;
    };
    Open(2);
    Wide wide(4, 20, 8, devices(), true);
    std::counting_semaphore<> launched_all(0);
    Compile(wide, {.slots = 1, .max_lanes = 6}, [&] { EXPECT_TRUE(launched_all.try_acquire_for(kLong)); });
    Memory memory = Bind(wide, 1);
    auto run = exec_.Launch(memory.io);
    ASSERT_EQ(run.status(), absl::OkStatus());
    launched_all.release();
    ASSERT_TRUE(reached.try_acquire_for(kLong));
    run->Cancel();
    const int before = launched.load();
    cancelled.release();
    const absl::Status status = run->Wait(kLong);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LE(launched.load(), before + 2) << "but for those that the two others were about to";
    const std::string left = std::to_string(wide.tasks() - passed.load()) + " of " + std::to_string(wide.tasks() + 1);
    EXPECT_NE(std::string(status.message()).find("cancelled; " + left + " nodes had not been submitted"),
              std::string::npos)
        << status << "; submitted " << passed.load();
    *run = penstock::Run();
    memory = Memory{.in = {}, .out = {}, .io = exec_.bindings()};
    Close();
    EXPECT_EQ(Complaints(), "");
    if (HasFailure()) return;
  }
}

TEST_P(SplitRun, ATraceHasEachNodeOnce) {
  Open(3);
  Wide wide(6, 10, 8, devices(), true);
  auto trace = Trace::Create();
  Compile(wide, {.max_lanes = 6, .trace = trace});
  RunOnceRight(wide, 1);
  std::map<std::string, int> spans;
  for (const Span& span : trace->spans()) ++spans[span.name];
  for (int t = 0; t < wide.tasks(); ++t) {
    EXPECT_EQ(spans[std::to_string(t / 8) + "/" + std::to_string(t % 8)], 1);
  }
}

TEST_P(SplitRun, ADeviceThatDiesEndsItWithTheNodesInTwoLists) {
  if (GetParam() == "cuda") GTEST_SKIP() << "a fault of the checked driver leaves work on the device";
  for (const int64_t n : {1, 30, 60}) {
    SCOPED_TRACE(n);
    Open(2);
    Wide wide(8, 10, 8, devices(), true);
    Compile(wide, {.max_lanes = 6});
    witness_->DieAtNth(CallKind::kLaunch, n);
    Memory memory = Bind(wide, 1);
    auto run = exec_.Launch(memory.io);
    ASSERT_EQ(run.status(), absl::OkStatus());
    const absl::Status status = run->Wait(kLong);
    EXPECT_TRUE(base::IsFatal(status)) << status;
    EXPECT_NE(std::string(status.message()).find("not submitted: "), std::string::npos) << status;
    *run = penstock::Run();
    memory = Memory{.in = {}, .out = {}, .io = exec_.bindings()};
    Close();
  }
}

INSTANTIATE_TEST_SUITE_P(Host, SplitRun, testing::Values("host:1", "host:3"),
                         [](const auto& target) { return target.param == "host:1" ? "one" : "three"; });
INSTANTIATE_TEST_SUITE_P(Cuda, SplitRun, testing::Values("cuda"), [](const auto&) { return "cuda"; });

TEST(SubmissionThreadOptions, AreRefusedWhereTheyAreNegativeAndNotLeftOpen) {
  const absl::Status status = Runtime::Create({.devices = "host", .submission_threads = -2}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("submission_threads = -2"), std::string::npos) << status;
  const EnvironmentScope scope("PENSTOCK_SUBMISSION_THREADS", "many");
  EXPECT_EQ(Runtime::Create({.devices = "host"}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::conformance::partitioned_run_test
