// A pipeline over two devices, with each call of the driver failing in turn, once and for good: every item reaches the
// sink once and in order, with its right result or with the failure named; one failed call costs one item; a dead
// device ends the pipeline, with the fault in the status of every item that it cost; and nothing is left alive.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "penstock/pipeline.h"
#include "src/base/status.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::pipeline_faults_test {
namespace {

using driver::checked::CallKind;
using driver::checked::CallLog;

constexpr int64_t kN = 100;
constexpr int kItems = 6;
constexpr int64_t kMostPolled = 12;  // queries: how many there are depends on time

struct Double {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = 2 * x[i]; }
};

struct Numbered {
  int number = 0;
  std::vector<int32_t> x, y;
};

class PipelineFaults : public testing::TestWithParam<Target> {
 protected:
  // The whole life of a pipeline; the calls that its items made.
  std::optional<CallLog::Counts> Live(CallKind kind, int64_t n, bool deadly) {
    CheckedRuntimes checks;
    std::string devices = GetParam().devices;
    if (devices == "host") devices += ":2";
    auto runtime =
        checks.CreateRuntime({.devices = devices, .workers = 2, .host_device_threads = 1, .log_level = LogLevel::kOff});
    if (!runtime.ok() || runtime->devices().size() < 2) return std::nullopt;
    Graph g("item");
    auto x = g.Input<int32_t>("x", kN);
    auto y = g.Output<int32_t>("y", kN);
    g.ParallelFor("double", kN, Double{}, Read(x), Write(y));
    Executable executable = *runtime->Compile(g, {.slots = 2, .devices = {0, 1}});
    CallLog::Counts before = checks.witness().log().counts();
    if (n > 0 && deadly) checks.witness().DieAtNth(kind, n);
    if (n > 0 && !deadly) checks.witness().FailNth(kind, n, absl::UnavailableError("planned"));

    int pulled = 0, delivered = 0, failed = 0;
    const auto source = [&]() -> std::optional<Numbered> {
      if (pulled == kItems) return std::nullopt;
      Numbered item{pulled++, std::vector<int32_t>(kN), std::vector<int32_t>(kN, -1)};
      for (size_t i = 0; i < kN; ++i) item.x[i] = item.number * 1000 + static_cast<int32_t>(i);
      return item;
    };
    const auto sink = [&](Item<Numbered>& item) {
      EXPECT_EQ(item->number, delivered++);
      if (!item.status().ok()) {
        ++failed;
        ExpectNamed(item.status(), deadly);
        return;
      }
      for (size_t i = 0; i < kN; ++i) ASSERT_EQ(item->y[i], 2 * item->x[i]) << "item " << item->number;
    };
    Stages<Numbered> stages;
    stages.Run("item", executable, [&](Item<Numbered>& item) { item.Set(x, item->x).Set(y, item->y); });
    {
      auto pipeline = Pipeline<Numbered>::Create(std::move(stages));
      const absl::Status ran = pipeline->Run(source, sink);
      EXPECT_EQ(base::IsFatal(ran), deadly && failed > 0) << ran;
      EXPECT_EQ(ran.ok(), !base::IsFatal(ran)) << ran;
    }
    EXPECT_EQ(delivered, pulled);
    if (!deadly) {
      EXPECT_EQ(delivered, kItems);
    }
    const bool fired = checks.witness().fault_fired();
    if (!deadly) {
      EXPECT_EQ(failed, fired ? 1 : 0);
    } else {
      EXPECT_TRUE(!fired || failed >= 1);
    }
    CallLog::Counts counts = checks.witness().log().counts();
    for (size_t k = 0; k < counts.size(); ++k) counts[k] -= before[k];
    executable = Executable();
    *runtime = *Runtime::Create({.devices = "host"});
    EXPECT_EQ(checks.Complaints(), "");
    return counts;
  }

  void ExpectNamed(const absl::Status& status, bool deadly) {
    const std::string text(status.message());
    const auto fault = base::FaultOf(status);
    if (deadly) {
      EXPECT_TRUE(fault && fault->fatal) << status;
    } else {
      EXPECT_NE(text.find("graph 'item'"), std::string::npos) << status;
      EXPECT_NE(text.find("planned"), std::string::npos) << status;
    }
  }

  void Walk(bool deadly) {
    const auto counts = Live(CallKind::kCopy, 0, false);
    const char* require = std::getenv("PENSTOCK_REQUIRE_GPU");
    ASSERT_FALSE(!counts && require != nullptr && std::atoi(require) >= 2) << "two devices are required";
    if (!counts) GTEST_SKIP() << "needs two devices";
    for (const CallKind kind : {CallKind::kCopy, CallKind::kLaunch, CallKind::kRecord, CallKind::kWait,
                                CallKind::kInspect, CallKind::kQuery}) {
      int64_t most = (*counts)[static_cast<size_t>(kind)];
      if (kind == CallKind::kQuery) most = std::min(most, kMostPolled);
      for (int64_t n = 1; n <= most && !HasFatalFailure(); ++n) {
        SCOPED_TRACE(std::string(NameOf(kind)) + " call " + std::to_string(n) + (deadly ? ", deadly" : ""));
        Live(kind, n, deadly);
      }
    }
  }
};

TEST_P(PipelineFaults, AFailedCallCostsOneItem) { Walk(false); }
TEST_P(PipelineFaults, ADeadDeviceEndsThePipelineWithEveryItemDelivered) { Walk(true); }

INSTANTIATE_TEST_SUITE_P(Host, PipelineFaults, testing::Values(Target{"host", "stream", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, PipelineFaults, testing::Values(Target{"cuda", "stream", true}));

}  // namespace
}  // namespace penstock::conformance::pipeline_faults_test
