// Random graphs, with a random call of the driver failing, on host devices that take up work in a random legal order.
// The oracle runs the same nodes one after another on plain vectors. Either every run is right, or the one that met the
// fault names it and the others are right; nothing is left alive and no rule is broken.
//
// One seed gives graph, fault and order. PENSTOCK_RANDOM_FAULTS=n runs n seeds in place of 500.
#include <random>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/environment.h"
#include "tests/support/sanitized.h"

namespace penstock::conformance::random_faults_test {
namespace {

using driver::checked::CallKind;

constexpr int64_t kN = 40;
constexpr int kRuns = 4, kSlots = 2;
constexpr uint64_t kSeedsInCi = kSanitized ? 150 : 500;

// The nodes' arithmetic, modulo 2^32, for devices, host nodes and the oracle.
PENSTOCK_HOST_DEVICE inline int32_t Mix(int32_t a, int32_t b, int64_t i, int32_t salt) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * 3u + static_cast<uint32_t>(b) * 5u +
                              static_cast<uint32_t>(i) * 7u + static_cast<uint32_t>(salt));
}
struct MixInto {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t salt, const int32_t* a, int32_t* out) const {
    out[i] = Mix(a[i], out[i], i, salt);
  }
};
struct MixOver {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t salt, const int32_t* a, const int32_t* b,
                                       int32_t* out) const {
    out[i] = Mix(a[i], b[i], i, salt);
  }
};

// What one node does, for the graph and for the oracle.
struct Step {
  enum Kind { kInto, kOver, kHostInto, kFill, kCopy } kind;
  size_t a, b, out;
  int32_t salt;
  int device;
};

class Sample {
 public:
  explicit Sample(uint64_t seed) : random_(seed) {
    devices_ = 1 + Below(3);
    const size_t buffers = 3 + Below(5);
    std::vector<bool> written(buffers);
    written[0] = true;  // the input
    const size_t steps = 1 + Below(14);
    for (size_t s = 0; s < steps; ++s) AddStep(written);
    // The output is the last buffer.
    steps_.push_back({Step::kOver, Written(written), Written(written), buffers - 1, Salt(), Device()});
    buffers_ = buffers;
  }

  size_t devices() const { return devices_; }

  void Declare(Graph& g, BufferHandle<int32_t>& x, BufferHandle<int32_t>& y) {
    std::vector<BufferHandle<int32_t>> b;
    x = g.Input<int32_t>("x", kN, Chance(3) ? kPinned : kHost);
    b.push_back(x);
    for (size_t i = 1; i + 1 < buffers_; ++i) b.push_back(g.Buffer<int32_t>("b" + std::to_string(i), kN));
    y = g.Output<int32_t>("y", kN, Chance(3) ? kPinned : kHost);
    b.push_back(y);
    for (size_t s = 0; s < steps_.size(); ++s) DeclareStep(g, b, steps_[s], "n" + std::to_string(s));
  }

  std::vector<int32_t> Expected(std::span<const int32_t> x) const {
    std::vector<std::vector<int32_t>> b(buffers_, std::vector<int32_t>(kN));
    b[0].assign(x.begin(), x.end());
    for (const Step& s : steps_) {
      for (int64_t i = 0; i < kN; ++i) {
        const auto at = static_cast<size_t>(i);
        switch (s.kind) {
          case Step::kInto:
          case Step::kHostInto: b[s.out][at] = Mix(b[s.a][at], b[s.out][at], i, s.salt); break;
          case Step::kOver: b[s.out][at] = Mix(b[s.a][at], b[s.b][at], i, s.salt); break;
          case Step::kFill: b[s.out][at] = s.salt; break;
          case Step::kCopy: b[s.out][at] = b[s.a][at]; break;
        }
      }
    }
    return b.back();
  }

  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }

 private:
  int32_t Salt() { return static_cast<int32_t>(Below(1000)); }
  int Device() { return static_cast<int>(Below(devices_)); }
  size_t Written(const std::vector<bool>& written) {
    for (;;) {
      if (const size_t b = Below(written.size()); written[b]) return b;
    }
  }

  void AddStep(std::vector<bool>& written) {
    const size_t out = 1 + Below(written.size() - 2);  // neither input nor output
    Step step{Step::kFill, Written(written), Written(written), out, Salt(), Device()};
    if (written[out] && step.a != out && Chance(2)) {
      step.kind = Chance(3) ? Step::kHostInto : Step::kInto;
    } else if (step.a != out && step.b != out && !Chance(4)) {
      step.kind = Chance(4) ? Step::kCopy : Step::kOver;
    }
    written[out] = true;
    steps_.push_back(step);
  }

  static void DeclareStep(Graph& g, const std::vector<BufferHandle<int32_t>>& b, const Step& s,
                          const std::string& name) {
    const int32_t salt = s.salt;
    switch (s.kind) {
      case Step::kInto: g.ParallelFor(name, kN, MixInto{}, salt, Read(b[s.a]), ReadWrite(b[s.out])).On(s.device); break;
      case Step::kOver:
        g.ParallelFor(name, kN, MixOver{}, salt, Read(b[s.a]), Read(b[s.b]), Write(b[s.out])).On(s.device);
        break;
      case Step::kHostInto:
        g.Host(
            name,
            [salt](std::span<const int32_t> a, std::span<int32_t> out) {
              for (int64_t i = 0; i < kN; ++i) {
                const auto at = static_cast<size_t>(i);
                out[at] = Mix(a[at], out[at], i, salt);
              }
            },
            Read(b[s.a]), ReadWrite(b[s.out]));
        break;
      case Step::kFill: g.Fill(name, b[s.out], salt); break;
      case Step::kCopy: g.Copy(name, b[s.a], b[s.out]); break;
    }
  }

  std::mt19937_64 random_;
  size_t devices_ = 1, buffers_ = 0;
  std::vector<Step> steps_;
};

CallKind RandomKind(Sample& sample) {
  static constexpr CallKind kKinds[] = {CallKind::kCopy,   CallKind::kCopyBatch,   CallKind::kLaunch,
                                        CallKind::kRecord, CallKind::kWait,        CallKind::kQuery,
                                        CallKind::kFill,   CallKind::kCreateEvent, CallKind::kAllocateDevice};
  return kKinds[sample.Below(std::size(kKinds))];
}

// How a seed went.
enum class Outcome { kRight, kNamed, kNotCompiled };

class RandomFaults : public testing::Test {
 protected:
  Outcome Try(uint64_t seed) {
    const ModeScope mode(seed % 2 == 0 ? "stream" : "graph");
    Sample sample(seed);
    CheckedRuntimes checks;
    Graph g("random");
    BufferHandle<int32_t> x, y;
    sample.Declare(g, x, y);
    int failures = 0;
    Outcome outcome = Outcome::kRight;
    {
      auto runtime = checks.CreateRuntime({.devices = "host:" + std::to_string(sample.devices()),
                                           .workers = 2,
                                           .host_device_threads = 1 + static_cast<int>(sample.Below(2)),
                                           .log_level = LogLevel::kOff},
                                          seed + 1);
      EXPECT_OK(runtime.status());
      std::vector<HostBuffer<int32_t>> memory;
      for (int i = 0; i < 2 * kRuns; ++i) memory.push_back(*runtime->MakeHostBuffer<int32_t>(kN));
      if (!sample.Chance(4)) {
        checks.witness().FailNth(RandomKind(sample), 1 + static_cast<int64_t>(sample.Below(30)),
                                 absl::UnavailableError("planned"));
      }
      auto exec = runtime->Compile(g, {.slots = kSlots, .max_lanes = 1 + static_cast<int>(sample.Below(4))});
      if (!exec.ok()) {
        EXPECT_TRUE(IsPlanned(exec.status())) << exec.status();
        outcome = Outcome::kNotCompiled;
        exec = runtime->Compile(g, {.slots = kSlots});
        EXPECT_OK(exec.status());
      }
      std::vector<std::pair<size_t, penstock::Run>> runs;
      for (size_t r = 0; r < kRuns; ++r) {
        HostBuffer<int32_t>&in = memory[2 * r], &out = memory[2 * r + 1];
        for (int64_t i = 0; i < kN; ++i) in[i] = static_cast<int32_t>(100 * r) + static_cast<int32_t>(i);
        std::fill(out.begin(), out.end(), 0x5a5a5a5a);
        Bindings io = exec->bindings();
        auto run = exec->Launch(io.Set(x, in).Set(y, out));
        if (run.ok()) runs.emplace_back(r, *std::move(run));
        else failures += CountPlanned(run.status());
      }
      for (auto& [r, run] : runs) {
        const absl::Status status = run.Wait(std::chrono::seconds(60));
        if (!status.ok()) {
          failures += CountPlanned(status);
          continue;
        }
        const std::vector<int32_t> expected = sample.Expected({memory[2 * r].data(), kN});
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory[2 * r + 1].begin())) << "run " << r;
      }
    }
    EXPECT_EQ(failures, checks.witness().fault_fired() && outcome == Outcome::kRight ? 1 : 0);
    EXPECT_EQ(checks.Complaints(), "");
    return failures > 0 ? Outcome::kNamed : outcome;
  }

 private:
  static bool IsPlanned(const absl::Status& status) {
    const std::string text(status.message());
    return text.rfind("graph 'random'", 0) == 0 && text.find("planned") != std::string::npos;
  }
  static int CountPlanned(const absl::Status& status) {
    EXPECT_TRUE(IsPlanned(status)) << status;
    return 1;
  }
};

TEST_F(RandomFaults, AreRightOrTheOneNamedFailureInAnyOrder) {
  const uint64_t seeds = FromEnvironment("PENSTOCK_RANDOM_FAULTS", kSeedsInCi);
  int right = 0, named = 0, not_compiled = 0;
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Outcome outcome = Try(seed);
    right += outcome == Outcome::kRight;
    named += outcome == Outcome::kNamed;
    not_compiled += outcome == Outcome::kNotCompiled;
  }
  RecordProperty("right", right);
  RecordProperty("named", named);
  if (seeds < kSeedsInCi || HasFailure()) return;
  EXPECT_GT(right, static_cast<int>(seeds / 10));
  EXPECT_GT(named, static_cast<int>(seeds / 10));
  EXPECT_GT(not_compiled, static_cast<int>(seeds / 50));
}

}  // namespace
}  // namespace penstock::conformance::random_faults_test
