// Executables chained on the device, with a fault at every call in turn: what fails fails all that comes behind it and
// nothing else, and what ends well is right.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::chain_faults_test {
namespace {

using driver::checked::CallKind;
using driver::checked::CallLog;
using driver::checked::NameOf;

constexpr int64_t kN = 200;
constexpr int kLinks = 3;  // of a run that writes the memory and one that reads it
constexpr int64_t kMostPolled = 12;  // how often an event is looked at depends on time

struct PlusOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = x[i] + 1; }
};
struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] += 1; }
};

struct Outcome {
  std::vector<absl::Status> ends;  // run by run: writer, reader, writer, ...
  CallLog::Counts counts{};  // of the launches and waits
};

class ChainFaults : public testing::TestWithParam<Target> {
 protected:
  // Three times: writer (host node, kernel) -> memory -> reader (kernel, host node), each behind the one before.
  // Nothing where there is no device.
  std::optional<Outcome> Live(CallKind kind, int64_t n, bool deadly) {
    CheckedRuntimes checks;
    std::optional<Outcome> outcome;
    {
      absl::StatusOr<Runtime> made = checks.CreateRuntime(
          {.devices = GetParam().devices, .workers = 2, .log_level = LogLevel::kOff}, GetParam().order_seed);
      if (!made.ok()) return {};
      outcome = Use(*made, checks, kind, n, deadly);
    }
    EXPECT_EQ(checks.Complaints(), "");
    return outcome;
  }

  static Outcome Use(Runtime& runtime, CheckedRuntimes& checks, CallKind kind, int64_t n, bool deadly) {
    Graph writer("writer"), reader("reader");
    auto x = writer.Input<int32_t>("x", kN), middle = writer.Output<int32_t>("middle", kN, kDevice);
    auto t = writer.Buffer<int32_t>("t", kN);
    writer.Host(
        "in", [](std::span<const int32_t> from, std::span<int32_t> to) { std::copy_n(from.begin(), kN, to.begin()); },
        Read(x), Write(t));
    writer.ParallelFor("plus one", kN, PlusOne{}, Read(t), Write(middle));
    auto in = reader.InOut<int32_t>("in", kN, kDevice), y = reader.Output<int32_t>("y", kN);
    reader.ParallelFor("again", kN, AddOne{}, ReadWrite(in));
    reader.Host(
        "out", [](std::span<const int32_t> from, std::span<int32_t> to) { std::copy_n(from.begin(), kN, to.begin()); },
        Read(in), Write(y));
    Outcome outcome;
    auto a = runtime.Compile(writer), b = runtime.Compile(reader);
    auto memory = runtime.MakeDeviceBuffer<int32_t>(kN);
    EXPECT_OK(a.status());
    EXPECT_OK(b.status());
    EXPECT_OK(memory.status());
    if (!a.ok() || !b.ok() || !memory.ok()) return outcome;
    checks.witness().KeepCalls(true);
    const CallLog::Counts before = checks.witness().log().counts();
    if (n > 0 && deadly) checks.witness().DieAtNth(kind, n);
    if (n > 0 && !deadly) checks.witness().FailNth(kind, n, absl::UnavailableError("planned"));
    for (int round = 0; round < (deadly ? 1 : 2); ++round) Round(*a, *b, x, middle, in, y, *memory, round, outcome);
    outcome.counts = checks.witness().log().counts();
    for (size_t k = 0; k < outcome.counts.size(); ++k) outcome.counts[k] -= before[k];
    return outcome;
  }

  static void Round(Executable& a, Executable& b, BufferHandle<int32_t> x, BufferHandle<int32_t> middle,
                    BufferHandle<int32_t> in, BufferHandle<int32_t> y, const DeviceBuffer<int32_t>& memory, int round,
                    Outcome& outcome) {
    Bindings ia = a.bindings(), ib = b.bindings();
    std::vector<std::vector<int32_t>> given, got;
    for (int i = 0; i < kLinks; ++i) {
      given.emplace_back(kN, 1000 * round + 10 * i);
      got.emplace_back(kN, 0x5a5a5a5a);
    }
    std::vector<absl::StatusOr<penstock::Run>> runs;
    for (size_t i = 0; i < kLinks; ++i) {
      ia.Set(x, given[i]).Set(middle, memory);
      if (i > 0 && runs.back().ok()) ia.After(middle, *runs.back());
      runs.push_back(runs.empty() || runs.back().ok() ? a.Launch(ia) : runs.back().status());
      ib.Set(in, memory).Set(y, got[i]);
      if (runs.back().ok()) ib.After(in, *runs.back());
      runs.push_back(runs.back().ok() ? b.Launch(ib) : runs.back().status());
    }
    for (size_t r = 0; r < runs.size(); ++r) {
      outcome.ends.push_back(runs[r].ok() ? runs[r]->Wait(std::chrono::seconds(60)) : runs[r].status());
      if (r % 2 == 0 || !outcome.ends.back().ok()) continue;
      EXPECT_EQ(got[r / 2], std::vector<int32_t>(kN, given[r / 2][0] + 2)) << "run " << r;
    }
  }

  static void Judge(const Outcome& outcome, bool deadly) {
    for (size_t r = 0; r < outcome.ends.size(); ++r) {
      const absl::Status& end = outcome.ends[r];
      const std::string text(end.message());
      EXPECT_NE(end.code(), absl::StatusCode::kDeadlineExceeded) << r;
      if (r % (2 * kLinks) == 0) continue;  // the first of a round
      const bool behind_failure = !outcome.ends[r - 1].ok();
      EXPECT_TRUE(!behind_failure || !end.ok()) << "run " << r << " is behind " << outcome.ends[r - 1];
      if (deadly || !behind_failure) continue;
      EXPECT_NE(text.find("planned"), std::string::npos) << end;
    }
    const size_t failed = static_cast<size_t>(
        std::count_if(outcome.ends.begin(), outcome.ends.end(), [](const absl::Status& s) { return !s.ok(); }));
    if (deadly || failed == 0) return;
    for (size_t r = 2 * kLinks; r < outcome.ends.size(); ++r) {  // the fault is over
      if (outcome.ends[2 * kLinks - 1].ok()) break;  // it came in this round
      EXPECT_OK(outcome.ends[r]) << r;
    }
  }

  void Walk(bool deadly) {
    const std::optional<Outcome> whole = Live(CallKind::kCopy, 0, false);
    const char* require = std::getenv("PENSTOCK_REQUIRE_GPU");
    ASSERT_FALSE(!whole && require != nullptr && std::atoi(require) >= 1) << "a device is required";
    if (!whole) GTEST_SKIP() << "needs " << GetParam().devices;
    for (const absl::Status& end : whole->ends) ASSERT_OK(end);
    for (const CallKind kind : {CallKind::kCopy, CallKind::kLaunch, CallKind::kRecord, CallKind::kWait,
                                CallKind::kInspect, CallKind::kQuery}) {
      int64_t most = whole->counts[static_cast<size_t>(kind)];
      if (kind == CallKind::kQuery) most = std::min(most, kMostPolled);
      for (int64_t n = 1; n <= most && !HasFatalFailure(); ++n) {
        SCOPED_TRACE(std::string(NameOf(kind)) + " call " + std::to_string(n) + (deadly ? ", deadly" : ""));
        const std::optional<Outcome> outcome = Live(kind, n, deadly);
        ASSERT_TRUE(outcome.has_value());
        Judge(*outcome, deadly);
      }
    }
  }
};

TEST_P(ChainFaults, AFailedCallFailsItsRunAndThoseBehindIt) { Walk(false); }
TEST_P(ChainFaults, ADeadDeviceEndsEveryRun) { Walk(true); }

INSTANTIATE_TEST_SUITE_P(Host, ChainFaults,
                         testing::Values(Target{"host", "stream", true}, Target{"host", "stream", true, 5},
                                         Target{"host", "graph", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, ChainFaults,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}));

}  // namespace
}  // namespace penstock::conformance::chain_faults_test
