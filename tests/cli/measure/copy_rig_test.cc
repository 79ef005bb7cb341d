// What is timed is what the figure is about: the planner leaves no copy or kernel of a chain out, and a copy that
// brings something else is found.
#include "src/cli/measure/copy_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/cli/measure/peers.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/status.h"

namespace penstock::cli::measure::copy_rig_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kBytes = 96;

// Executes each graph, and each copy of a chain on streams, only twice, as often as a chain runs before it is timed.
// What comes later does nothing.
class Forgetful : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::Status LaunchGraph(driver::GraphExec exec, driver::Stream stream) override {
    return IsNew({exec.bits, nullptr}) ? ForwardingDriver::LaunchGraph(exec, stream) : absl::OkStatus();
  }
  void DestroyExec(driver::GraphExec exec) override {
    {
      const std::lock_guard lock(mutex_);
      times_.erase({exec.bits, nullptr});
    }
    ForwardingDriver::DestroyExec(exec);
  }
  absl::Status Copy(driver::Stream stream, const driver::CopyOp& op) override {
    const auto run = reinterpret_cast<uintptr_t>(op.tag.fault);
    return run == 0 || IsNew({run, op.dst}) ? ForwardingDriver::Copy(stream, op) : absl::OkStatus();
  }

 private:
  using Work = std::pair<uint64_t, void*>;  // the graph, or the run and where it copies to
  bool IsNew(const Work& work) {
    const std::lock_guard lock(mutex_);
    return ++times_[work] <= 2;
  }

  std::mutex mutex_;
  std::map<Work, int> times_;
};

TEST(CopyRig, EveryCopyOfAChainIsInItsPlan) {
  auto runtime = Runtime::Create({.devices = "host", .host_device_threads = 1});
  ASSERT_OK(runtime.status());
  auto rig = CopyRig::Make(*runtime, 0, 7 * kBytes);
  ASSERT_OK(rig.status());
  for (const Route route : {Route::kUpload, Route::kDownload, Route::kWithin}) {
    for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
      auto chain = Chain::Make(*runtime, rig->Copies(route, kBytes), 7, {.mode = mode});
      ASSERT_OK(chain.status());
      ASSERT_OK(chain->Time().status());
      EXPECT_THAT(chain->executable().PlanText(),
                  AllOf(HasSubstr("plan 'measured': 7 nodes"), Not(HasSubstr("not made"))));
      EXPECT_EQ(chain->executable().submission_report().mode, mode);
    }
  }
}

TEST(CopyRig, MeasuresEveryRouteAndFills) {
  auto runtime = Runtime::Create({.devices = "host", .host_device_threads = 1});
  ASSERT_OK(runtime.status());
  auto rig = CopyRig::Make(*runtime, 0, 5 * kBytes + 1);
  ASSERT_OK(rig.status());
  for (const Route route : {Route::kUpload, Route::kDownload, Route::kUploadBothWays, Route::kDownloadBothWays,
                            Route::kStagedUpload, Route::kStagedDownload, Route::kWithin}) {
    for (const int64_t bytes : {int64_t{1}, kBytes, 5 * kBytes + 1}) {
      const auto rate = rig->Rate(route, bytes, kQuickEffort);
      ASSERT_OK(rate.status()) << static_cast<int>(route) << ", " << bytes;
      EXPECT_GT(*rate, 0) << static_cast<int>(route) << ", " << bytes;
    }
  }
  const auto fill = rig->FillRate(kBytes, kQuickEffort);
  ASSERT_OK(fill.status());
  EXPECT_GT(*fill, 0);
}

class ForgetfulDevices : public testing::Test {
 protected:
  const runtime::ScopedDriverHook hook_{
      {.host_options = nullptr, .wrap = [](auto driver) { return std::make_unique<Forgetful>(std::move(driver)); }}};
  absl::StatusOr<Runtime> runtime_ = Runtime::Create({.devices = "host:2", .host_device_threads = 1});
};

// Not the staged download: host threads copy what an earlier run has left in the staging memory.
TEST_F(ForgetfulDevices, AreFoundByTheirCopies) {
  ASSERT_OK(runtime_.status());
  auto rig = CopyRig::Make(*runtime_, 0, 5 * kBytes);
  ASSERT_OK(rig.status());
  for (const Route route : {Route::kUpload, Route::kDownload, Route::kUploadBothWays, Route::kDownloadBothWays,
                            Route::kStagedUpload, Route::kWithin}) {
    EXPECT_THAT(Text(rig->Rate(route, kBytes, kQuickEffort).status()), HasSubstr("copied is not what was there"))
        << static_cast<int>(route);
  }
}

TEST_F(ForgetfulDevices, AreFoundByCopiesBetweenThem) {
  ASSERT_OK(runtime_.status());
  EXPECT_THAT(Text(PeerRates(*runtime_, kBytes, kQuickEffort, [](const std::string&) {}).status()),
              HasSubstr("copied is not what was there"));
}

TEST(CopyRig, SaysWhichByteIsWrong) {
  std::vector<uint8_t> pattern(1000);
  FillPattern(pattern);
  std::vector<uint8_t> copied = pattern;
  EXPECT_OK(CheckCopied(copied, pattern));
  copied[617] ^= 4;
  const absl::Status status = CheckCopied(copied, pattern);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(status), HasSubstr("byte 617 of 1000"));
}

TEST(CopyRig, APatternHasNoPartTwice) {
  std::vector<uint8_t> pattern(4096);
  FillPattern(pattern);
  const std::string all(pattern.begin(), pattern.end());
  for (size_t at = 0; at + 64 <= all.size(); at += 64) EXPECT_EQ(all.find(all.substr(at, 64)), at);
}

}  // namespace
}  // namespace penstock::cli::measure::copy_rig_test
