// Executables chained on the device, with a fault at every call in turn: what fails fails all that comes behind it and
// nothing else, and what ends well is right.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/conformance/faults/fault_walk.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::chain_faults_test {
namespace {

constexpr int64_t kN = 200;
constexpr int kLinks = 3;  // of a run that writes the memory and one that reads it

class ChainFaults : public testing::TestWithParam<Target> {
 protected:
  // Three times: writer (host node, kernel) -> memory -> reader (kernel, host node), each behind the one before.
  // The counts are those of the launches and waits.
  static absl::StatusOr<CallLog::Counts> Live(const Fault& fault) {
    CheckedRuntimes checks;
    CallLog::Counts counts{};
    {
      PENSTOCK_ASSIGN_OR_RETURN(
          Runtime runtime,
          checks.CreateRuntime({.devices = GetParam().devices, .workers = 2, .log_level = LogLevel::kOff},
                               GetParam().order_seed));
      counts = Use(runtime, checks.witness(), fault);
    }
    EXPECT_EQ(checks.Complaints(), "");
    return counts;
  }

  static CallLog::Counts Use(Runtime& runtime, CallRecorder& witness, const Fault& fault) {
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
    auto a = runtime.Compile(writer), b = runtime.Compile(reader);
    auto memory = runtime.MakeDeviceBuffer<int32_t>(kN);
    EXPECT_OK(a.status());
    EXPECT_OK(b.status());
    EXPECT_OK(memory.status());
    if (!a.ok() || !b.ok() || !memory.ok()) return {};
    const CallLog::Counts before = witness.log().counts();
    Plan(fault, witness);
    std::vector<absl::Status> ends;  // run by run: writer, reader, writer, ...
    for (int round = 0; round < (fault.deadly ? 1 : 2); ++round) Round(*a, *b, x, middle, in, y, *memory, round, ends);
    Judge(ends, fault);
    return CallsSince(before, witness);
  }

  static void Round(Executable& a, Executable& b, BufferHandle<int32_t> x, BufferHandle<int32_t> middle,
                    BufferHandle<int32_t> in, BufferHandle<int32_t> y, const DeviceBuffer<int32_t>& memory, int round,
                    std::vector<absl::Status>& ends) {
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
      ends.push_back(runs[r].ok() ? runs[r]->Wait(std::chrono::seconds(60)) : runs[r].status());
      if (r % 2 == 0 || !ends.back().ok()) continue;
      EXPECT_EQ(got[r / 2], std::vector<int32_t>(kN, given[r / 2][0] + 2)) << "run " << r;
    }
  }

  static void Judge(const std::vector<absl::Status>& ends, const Fault& fault) {
    for (size_t r = 0; r < ends.size(); ++r) {
      EXPECT_TRUE(fault.n > 0 || ends[r].ok()) << r << ": " << ends[r];
      EXPECT_NE(ends[r].code(), absl::StatusCode::kDeadlineExceeded) << r;
      if (r % (2 * kLinks) == 0 || ends[r - 1].ok()) continue;  // the first of a round, or behind one that went well
      EXPECT_FALSE(ends[r].ok()) << "run " << r << " is behind " << ends[r - 1];
      if (!fault.deadly) ExpectPlanned(fault, ends[r]);
    }
    if (fault.deadly || std::all_of(ends.begin(), ends.end(), [](const absl::Status& s) { return s.ok(); })) return;
    if (ends[2 * kLinks - 1].ok()) return;  // the fault came in the second round; else it is over by then
    for (size_t r = 2 * kLinks; r < ends.size(); ++r) EXPECT_OK(ends[r]) << r;
  }

  void Walk(bool deadly) {
    const ModeScope mode(GetParam().mode);
    WalkFaults({.deadly = deadly, .kinds = KindsOfARun()}, Live);
  }
};

TEST_P(ChainFaults, AFailedCallFailsItsRunAndThoseAfterIt) { Walk(false); }
TEST_P(ChainFaults, ADeadDeviceEndsEveryRun) { Walk(true); }

INSTANTIATE_TEST_SUITE_P(Host, ChainFaults,
                         testing::Values(Target{"host", "stream", true}, Target{"host", "stream", true, 5},
                                         Target{"host", "graph", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, ChainFaults,
                         testing::Values(Target{"cuda", "stream", true}, Target{"cuda", "graph", true}));

}  // namespace
}  // namespace penstock::conformance::chain_faults_test
