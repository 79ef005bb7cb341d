// A pipeline over two devices, with each call of the driver failing in turn, once and for good: every item reaches the
// sink once and in order, with its right result or with the failure named; one failed call costs one item; a dead
// device ends the pipeline, with the fault in the status of every item that it cost; and nothing is left alive.
#include <optional>

#include "penstock/pipeline.h"
#include "tests/conformance/faults/fault_walk.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::pipeline_faults_test {
namespace {

constexpr int64_t kN = 100;
constexpr int kItems = 6;

struct Numbered {
  int number = 0;
  std::vector<int32_t> x, y;
};

class PipelineFaults : public testing::TestWithParam<Target> {
 protected:
  // The whole life of a pipeline; the calls that its items made.
  static absl::StatusOr<CallLog::Counts> Live(const Fault& fault) {
    const bool deadly = fault.deadly;
    CheckedRuntimes checks;
    std::string devices = GetParam().devices;
    if (devices == "host") devices += ":2";
    auto runtime =
        checks.CreateRuntime({.devices = devices, .workers = 2, .host_device_threads = 1, .log_level = LogLevel::kOff});
    if (!runtime.ok() || runtime->devices().size() < 2) return absl::NotFoundError("needs two devices");
    Graph g("item");
    auto x = g.Input<int32_t>("x", kN);
    auto y = g.Output<int32_t>("y", kN);
    g.ParallelFor("double", kN, Twice{}, Read(x), Write(y));
    Executable executable = *runtime->Compile(g, {.slots = 2, .devices = {0, 1}});
    const CallLog::Counts before = checks.witness().log().counts();
    Plan(fault, checks.witness());

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
        ExpectPlanned(fault, item.status());
        EXPECT_TRUE(deadly || item.status().message().find("graph 'item'") != std::string::npos) << item.status();
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
    const CallLog::Counts counts = CallsSince(before, checks.witness());
    executable = Executable();
    *runtime = *Runtime::Create({.devices = "host"});
    EXPECT_EQ(checks.Complaints(), "");
    return counts;
  }

  void Walk(bool deadly) { WalkFaults({.deadly = deadly, .devices = 2, .kinds = KindsOfARun()}, Live); }
};

TEST_P(PipelineFaults, AFailedCallCostsOneItem) { Walk(false); }
TEST_P(PipelineFaults, ADeadDeviceEndsThePipelineWithEveryItemDelivered) { Walk(true); }

INSTANTIATE_TEST_SUITE_P(Host, PipelineFaults, testing::Values(Target{"host", "stream", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, PipelineFaults, testing::Values(Target{"cuda", "stream", true}));

}  // namespace
}  // namespace penstock::conformance::pipeline_faults_test
