// A runtime with four devices and nothing in flight sleeps: in ten seconds the process uses less than 10 ms of CPU.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/world.h"

namespace penstock::testing {
namespace {

constexpr double kMostMs = 10;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

double CpuMs() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

const Scenario kIdle("idle", [](const std::string& devices) -> int {
  World world(devices);
  world.Start("nothing");
  const double before = CpuMs();
  std::this_thread::sleep_for(std::chrono::seconds(10));  // what is measured
  const double used = CpuMs() - before;
  std::printf("%.3f ms of CPU in 10 s\n", used);
  return used < kMostMs ? 0 : 1;
});

class Idle : public ::testing::TestWithParam<std::string> {};

TEST_P(Idle, UsesLessThanTenMillisecondsInTenSeconds) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has work of its own";
  const ChildResult child = RunInChild(kIdle, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 0") << child;
  std::printf("%s: %s", GetParam().c_str(), child.output.c_str());
}

INSTANTIATE_TEST_SUITE_P(Host, Idle, ::testing::Values("host:4"), [](const auto&) { return "four_devices"; });
INSTANTIATE_TEST_SUITE_P(Cuda, Idle, ::testing::Values("cuda"), [](const auto&) { return "all_devices"; });

}  // namespace
}  // namespace penstock::testing
