// Every call of the driver fails once: for each graph below and each kind of call, the first, the second, and so on up
// to as many as a run without faults makes. Each time exactly one failure comes out, named, with what was planned for
// it; nothing is submitted after it; the other runs are right; the executable works again; and nothing is left alive.
// Then the same with a device that stays dead from that call on.
//
// A graph here maps x to y by a rule the test knows, for as many runs at once as it has slots.
#include <algorithm>
#include <memory>

#include "tests/conformance/faults/fault_walk.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::fault_walk_test {
namespace {

constexpr int64_t kN = 300;

struct Plus {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* out) const {
    out[i] = a[i] + b[i];
  }
};
struct IsBelow {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> x, int32_t limit) const { return x(0) < limit; }
};
struct TimesParam {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t by, const int32_t* a, int32_t* out) const {
    out[i] = a[i] * by;
  }
};
TEST_KERNEL void Negate([[maybe_unused]] const int32_t* x, [[maybe_unused]] int32_t* y) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kN) y[i] = -x[i];
#endif
}
void NegateOnHost(const int32_t* x, int32_t* y) {
  for (int64_t i = 0; i < kN; ++i) y[i] = -x[i];
}
absl::Status CopyForeign(LaunchContext& launch, const int32_t* from, int32_t* to) {
#if defined(__CUDACC__)
  return ToStatus(cudaMemcpyAsync(to, from, kN * sizeof(int32_t), cudaMemcpyDeviceToDevice, CudaStream(launch)));
#else
  (void)launch, (void)from, (void)to;
  return absl::InternalError("called on a host device");
#endif
}

struct Io {
  BufferHandle<int32_t> x, y;
  ParamHandle<int32_t> by;   // set to 3 where has_by
  ParamHandle<int64_t> size; // set to kN where has_size
  bool has_by = false, has_size = false;
};

struct Scenario {
  const char* name;
  int devices;
  int slots;
  bool pinned, traced;
  Io (*declare)(Graph& g);
  int32_t (*expected)(int32_t x);
  bool ring = false;  // what is not pinned goes through the ring
};

Io Chain(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto t = g.Buffer<int32_t>("t", kN);
  g.Copy("in", io.x, t);
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(t));
  g.ParallelFor("two", kN, AddOne{}, ReadWrite(t));
  g.Copy("out", t, io.y);
  return io;
}

Io Diamond(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto a = g.Buffer<int32_t>("a", kN), b = g.Buffer<int32_t>("b", kN);
  g.Copy("a", io.x, a);
  g.Copy("b", io.x, b);
  g.ParallelFor("left", kN, AddOne{}, ReadWrite(a));
  g.ParallelFor("right", kN, AddOne{}, ReadWrite(b));
  g.ParallelFor("join", kN, Plus{}, Read(a), Read(b), Write(io.y));
  return io;
}

Io Pinned(Graph& g) {
  Io io{g.Input<int32_t>("x", kN, kPinned), g.Output<int32_t>("y", kN, kPinned), {}, {}};
  g.ParallelFor("twice", kN, Plus{}, Read(io.x), Read(io.x), Write(io.y));
  return io;
}

Io HostInTheMiddle(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto t = g.Buffer<int32_t>("t", kN);
  g.Copy("in", io.x, t);
  g.ParallelFor("before", kN, AddOne{}, ReadWrite(t));
  g.Host(
      "ten",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) e += 10;
      },
      ReadWrite(t));
  g.ParallelFor("after", kN, Plus{}, Read(t), Read(t), Write(io.y));
  return io;
}

Io FillsAndSizes(Graph& g) {
  Io io;
  io.by = g.Param<int32_t>("by");
  io.size = g.Param<int64_t>("size", AtMost(2 * kN));
  io.has_by = io.has_size = true;
  io.x = g.Input<int32_t>("x", io.size);
  io.y = g.Output<int32_t>("y", io.size);
  auto t = g.Buffer<int32_t>("t", io.size), seven = g.Buffer<int32_t>("seven", io.size);
  g.Fill("fill", seven, 7);
  g.ParallelFor("times", io.size, TimesParam{}, io.by, Read(io.x), Write(t));
  g.ParallelFor("plus", io.size, Plus{}, Read(t), Read(seven), Write(io.y));
  return io;
}

Io ForeignAndKernel(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto t = g.Buffer<int32_t>("t", kN);
  g.Kernel("negate", Negate, Threads(kN), Read(io.x), Write(t)).HostFallback(NegateOnHost);
  g.Launch("foreign", CopyForeign, Read(t), Write(io.y)).HostFallback([](const int32_t* from, int32_t* to) {
    std::copy(from, from + kN, to);
  });
  return io;
}

Io TwoDevices(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto a = g.Buffer<int32_t>("a", kN), b = g.Buffer<int32_t>("b", kN);
  g.ParallelFor("here", kN, Plus{}, Read(io.x), Read(io.x), Write(a)).On(0);
  g.ParallelFor("there", kN, Plus{}, Read(a), Read(io.x), Write(b)).On(1);
  g.ParallelFor("back", kN, Plus{}, Read(b), Read(a), Write(io.y)).On(0);
  return io;
}

// A batch each way, and six host copies that join each other.
Io Tiles(Graph& g) {
  constexpr int64_t kTiles = 6;
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  auto host = g.Buffer<int32_t>("host", kN, kPinned);
  auto t = g.Buffer<int32_t>("t", kN);
  const auto tile = [](int64_t i) { return Slice(i * kN / kTiles, (i + 1) * kN / kTiles - i * kN / kTiles); };
  for (int64_t i = 0; i < kTiles; ++i) g.Copy("host" + std::to_string(i), Read(io.x, tile(i)), Write(host, tile(i)));
  for (int64_t i = 0; i < kTiles; ++i) g.Copy("in" + std::to_string(i), Read(host, tile(i)), Write(t, tile(i)));
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(t));
  for (int64_t i = 0; i < kTiles; ++i) g.Copy("out" + std::to_string(i), Read(t, tile(i)), Write(io.y, tile(i)));
  return io;
}

// What only a body does, and what is inside of one, can fail too.
template <bool kDriven>
Io Constructs(Graph& g) {
  Io io{g.Input<int32_t>("x", kN), g.Output<int32_t>("y", kN), {}, {}};
  io.by = g.Param<int32_t>("by");
  io.has_by = true;
  auto t = g.Buffer<int32_t>("t", kN), count = g.Buffer<int32_t>("count", 1);
  g.Copy("in", io.x, t);
  g.Fill("none", count, 0);
  g.While("loop", When(IsBelow{}, Read(count), io.by), {.max = 9}, [&](Graph& body) {
    body.ParallelFor("one", kN, AddOne{}, ReadWrite(t));
    if (kDriven) {
      body.Host(
          "host",
          [](View<int32_t> values) {
            for (int64_t i = 0; i < kN; ++i) ++values(i);
          },
          ReadWrite(t));
    }
    body.ParallelFor("count", 1, AddOne{}, ReadWrite(count));
  });
  const auto one = [&](Graph& body) { body.ParallelFor("one", kN, AddOne{}, ReadWrite(t)); };
  g.If("if", When(IsBelow{}, Read(count), io.by), [](Graph&) {}, one);
  g.Repeat("repeat", io.by, one);
  g.Copy("out", t, io.y);
  return io;
}

const Scenario kScenarios[] = {
    {"chain", 1, 1, false, false, &Chain, [](int32_t x) { return x + 2; }},
    {"diamond", 1, 1, false, false, &Diamond, [](int32_t x) { return 2 * x + 2; }},
    {"pinned", 1, 1, true, false, &Pinned, [](int32_t x) { return 2 * x; }},
    {"host", 1, 1, false, false, &HostInTheMiddle, [](int32_t x) { return 2 * (x + 11); }},
    {"sizes", 1, 1, false, false, &FillsAndSizes, [](int32_t x) { return 3 * x + 7; }},
    {"foreign", 1, 1, false, false, &ForeignAndKernel, [](int32_t x) { return -x; }},
    {"two_devices", 2, 1, false, false, &TwoDevices, [](int32_t x) { return 5 * x; }},
    {"tiles", 1, 1, false, false, &Tiles, [](int32_t x) { return x + 1; }},
    {"traced", 1, 1, false, true, &HostInTheMiddle, [](int32_t x) { return 2 * (x + 11); }},
    {"slots", 1, 3, false, false, &HostInTheMiddle, [](int32_t x) { return 2 * (x + 11); }},
    {"ring", 1, 1, false, false, &HostInTheMiddle, [](int32_t x) { return 2 * (x + 11); }, true},
    {"ring_slots", 1, 3, false, false, &Chain, [](int32_t x) { return x + 2; }, true},
    {"pinned_slots", 1, 3, true, false, &Chain, [](int32_t x) { return x + 2; }},
    {"constructs", 1, 1, false, false, &Constructs<false>, [](int32_t x) { return x + 7; }},
    {"driven", 1, 1, false, false, &Constructs<true>, [](int32_t x) { return x + 10; }},
};

bool IsWork(CallKind kind) {
  return kind == CallKind::kCopy || kind == CallKind::kCopyBatch || kind == CallKind::kFill ||
         kind == CallKind::kLaunch || kind == CallKind::kExternal || kind == CallKind::kLaunchGraph ||
         kind == CallKind::kSetNode || kind == CallKind::kEnableNode;
}
// A span missing from a trace fails nobody.
bool IsBorne(CallKind kind) { return kind == CallKind::kElapsed; }

// One scenario on a fresh runtime with one planned fault.
class Session {
 public:
  Session(const Target& target, const Scenario& scenario, Fault fault)
      : mode_(target.mode), scenario_(scenario), fault_(fault), graph_(scenario.name), io_(scenario.declare(graph_)) {
    std::string devices = target.devices;
    if (devices == "host") devices += ":" + std::to_string(scenario.devices);
    RuntimeOptions options{.devices = devices, .workers = 2, .host_device_threads = 2, .log_level = LogLevel::kOff};
    if (scenario.ring) options.staging = {.threads = 1, .chunk_bytes = 512, .from_bytes = 0};
    absl::StatusOr<Runtime> made = checks_.CreateRuntime(options, target.order_seed);
    if (!made.ok()) {
      unavailable_ = made.status();
      return;
    }
    runtime_.emplace(*std::move(made));
    if (static_cast<int>(runtime_->devices().size()) < scenario.devices) {
      unavailable_ = absl::NotFoundError("needs " + std::to_string(scenario.devices) + " devices");
    }
  }

  // The whole life; the counts of calls it made.
  absl::StatusOr<CallLog::Counts> Live() {
    if (!unavailable_.ok()) return unavailable_;
    witness().KeepCalls(true);
    Plan(fault_, witness());
    const bool ready = Retry([&] { return MakeMemory(); }, false) && Retry([&] { return Compile(); }, true);
    running_ = ready;
    if (ready) {
      for (int round = 0; round < 2; ++round) RunAll(round);
    }
    CheckFailures();
    const CallLog log = witness().log();
    CheckNothingFollows(log);
    Drop();
    EXPECT_EQ(checks_.Complaints(), "");
    return log.counts();
  }

 private:
  CallRecorder& witness() { return checks_.witness(); }

  // What failed by the planned fault works the second time.
  template <class F>
  bool Retry(F f, bool named) {
    absl::Status status = f();
    if (!status.ok()) Failed(status, named);
    if (!status.ok() && !fault_.deadly) {
      status = f();
      EXPECT_OK(status);
    }
    return status.ok();
  }

  absl::Status MakeMemory() {
    const size_t runs = static_cast<size_t>(scenario_.slots);
    x_.assign(runs, {});
    y_.assign(runs, {});
    pinned_.clear();
    for (size_t r = 0; r < runs; ++r) {
      for (std::vector<std::span<int32_t>>* spans : {&x_, &y_}) {
        if (scenario_.pinned) {
          PENSTOCK_ASSIGN_OR_RETURN(HostBuffer<int32_t> buffer, runtime_->MakeHostBuffer<int32_t>(kN));
          pinned_.push_back(std::move(buffer));
          (*spans)[r] = {pinned_.back().data(), static_cast<size_t>(kN)};
        } else {
          pageable_.push_back(std::make_unique<std::vector<int32_t>>(kN));
          (*spans)[r] = *pageable_.back();
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Compile() {
    CompileOptions options{.slots = scenario_.slots};
    if (scenario_.traced) options.trace = Trace::Create();
    PENSTOCK_ASSIGN_OR_RETURN(exec_, runtime_->Compile(graph_, options));
    return absl::OkStatus();
  }

  // As many runs at once as there are slots. Those that end well are right.
  void RunAll(int round) {
    std::vector<std::pair<size_t, penstock::Run>> runs;
    for (size_t r = 0; r < x_.size(); ++r) {
      for (size_t i = 0; i < kN; ++i) x_[r][i] = static_cast<int32_t>(1000 * round + 17 * r + i);
      std::fill(y_[r].begin(), y_[r].end(), 0x5a5a5a5a);
      Bindings bindings = exec_.bindings();
      if (scenario_.pinned) {
        bindings.Set(io_.x, pinned_[2 * r]).Set(io_.y, pinned_[2 * r + 1]);
      } else {
        bindings.Set(io_.x, x_[r]).Set(io_.y, y_[r]);
      }
      if (io_.has_by) bindings.Set(io_.by, 3);
      if (io_.has_size) bindings.Set(io_.size, kN);
      absl::StatusOr<penstock::Run> run = exec_.Launch(bindings);
      if (run.ok()) {
        runs.emplace_back(r, *std::move(run));
      } else {
        Failed(run.status(), true);
      }
    }
    for (auto& [r, run] : runs) {
      const absl::Status status = run.Wait(std::chrono::seconds(60));
      if (!status.ok()) {
        Failed(status, true);
        continue;
      }
      for (size_t i = 0; i < kN; ++i) ASSERT_EQ(y_[r][i], scenario_.expected(x_[r][i])) << "run " << r << " at " << i;
    }
  }

  void Failed(const absl::Status& status, bool named) {
    failures_.push_back(status);
    failed_running_ = failed_running_ || running_;
    const std::string text(status.message());
    const std::string graph = "graph '" + std::string(scenario_.name) + "'";
    EXPECT_TRUE(!named || text.find(graph) != std::string::npos) << status;
    if (running_ && IsWork(fault_.kind) && failures_.size() == 1) {
      if (fault_.kind == CallKind::kLaunchGraph && !fault_.deadly) {
        const bool one = text.rfind(graph + " node '", 0) == 0;  // the graph is that of a construct
        EXPECT_TRUE(one || text.rfind(graph + ": launching nodes '", 0) == 0) << "no node is named: " << status;
      } else if (!fault_.deadly) {
        EXPECT_EQ(text.rfind(graph + " node '", 0), 0u) << "the node is not named: " << status;
      } else if (scenario_.slots == 1) {  // of several runs, another than the one whose call died may be told first
        const bool listed = text.find("; not submitted: '") != std::string::npos;
        const bool in_construct = text.rfind(graph + " node '", 0) == 0;
        EXPECT_TRUE(listed || in_construct) << "no nodes are named: " << status;
      }
    }
    ExpectPlanned(fault_, status);
  }

  void CheckFailures() {
    const bool fired = witness().fault_fired();
    if (!fired || IsBorne(fault_.kind)) {
      EXPECT_TRUE(fault_.deadly || failures_.empty()) << failures_[0];
    } else if (fault_.deadly) {
      EXPECT_GE(failures_.size(), 1u);
    } else {
      EXPECT_EQ(failures_.size(), 1u) << "the fault went unnoticed, or was told twice";
    }
    // What a slot sets depends on which run it had before.
    const bool sets = fault_.kind == CallKind::kSetNode || fault_.kind == CallKind::kEnableNode;
    EXPECT_TRUE(fired == (fault_.n > 0) || fault_.kind == CallKind::kQuery || (sets && scenario_.slots > 1));
  }

  // With one run at a time, nothing is submitted after the call that failed, up to the next round's Inspect. Only the
  // thread of the ring may be about to submit what it has begun while a call of another thread fails.
  void CheckNothingFollows(const CallLog& log) {
    constexpr int kMostBegun = 3;  // chunks of a copy: 1200 bytes, 512 at a time
    if (scenario_.ring && fault_.kind == CallKind::kQuery) return;
    if (fault_.n == 0 || fault_.deadly || scenario_.slots > 1 || IsBorne(fault_.kind) || !failed_running_) {
      return;
    }
    int chunks = 0;
    for (const Call& call : CallsAfter(fault_, log)) {
      if (call.kind == CallKind::kInspect) return;
      if (!IsWork(call.kind)) continue;
      chunks += scenario_.ring && call.kind == CallKind::kCopy;
      EXPECT_TRUE(scenario_.ring && call.kind == CallKind::kCopy && chunks <= kMostBegun)
          << TextOf(call) << " after the failure";
    }
  }

  void Drop() {
    exec_ = Executable();
    pinned_.clear();
    runtime_.reset();
  }

  const ModeScope mode_;
  const Scenario& scenario_;
  const Fault fault_;
  CheckedRuntimes checks_;
  absl::Status unavailable_;
  std::optional<Runtime> runtime_;
  Graph graph_;
  const Io io_;
  Executable exec_;
  std::vector<std::span<int32_t>> x_, y_;
  std::vector<HostBuffer<int32_t>> pinned_;
  std::vector<std::unique_ptr<std::vector<int32_t>>> pageable_;
  std::vector<absl::Status> failures_;
  bool running_ = false, failed_running_ = false;  // the executable is there
};

struct WalkParam {
  Target target;
  const Scenario* scenario;
};
std::ostream& operator<<(std::ostream& out, const WalkParam& p) { return out << p.target << " " << p.scenario->name; }

class FaultWalk : public testing::TestWithParam<WalkParam> {
 protected:
  void Walk(bool deadly) {
    const WalkParam& p = GetParam();
    WalkFaults({.deadly = deadly, .devices = p.scenario->devices},
               [&](const Fault& fault) { return Session(p.target, *p.scenario, fault).Live(); });
  }
};

TEST_P(FaultWalk, EveryCallThatFailsOnceIsOneNamedFailure) { Walk(false); }

TEST_P(FaultWalk, ADeviceThatDiesAtAnyCallEndsEverythingAndLeavesNothing) { Walk(true); }

std::vector<WalkParam> Walks(const std::string& devices) {
  std::vector<WalkParam> all;
  for (const char* const mode : {"stream", "graph"}) {
    for (const Scenario& scenario : kScenarios) all.push_back({{devices, mode, true}, &scenario});
  }
  return all;
}
std::string WalkName(const testing::TestParamInfo<WalkParam>& info) {
  return info.param.scenario->name + ("_" + info.param.target.mode);
}

INSTANTIATE_TEST_SUITE_P(Host, FaultWalk, testing::ValuesIn(Walks("host")), WalkName);
INSTANTIATE_TEST_SUITE_P(Cuda, FaultWalk, testing::ValuesIn(Walks("cuda")), WalkName);

}  // namespace
}  // namespace penstock::conformance::fault_walk_test
