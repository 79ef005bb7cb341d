// The watchdog's beats: what they say of the poller, and what counts of the time.
#include "src/host/hostcall_poller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "src/base/mutex.h"
#include "tests/support/latch.h"

namespace penstock::host::hostcall_poller_test {
namespace {

using std::chrono::seconds;

// What is looked at; it notes its beats, and may hold the poller.
class Noted final : public HostcallPoller::Source {
 public:
  explicit Noted(driver::Latch* holds) : holds_(holds) {}
  bool Look() override {
    if (holds_ != nullptr) holds_->Arrive();
    return false;
  }
  void Beat(const HostcallPoller::Sign& sign) override {
    base::MutexLock lock(mu_);
    signs_.push_back(sign);
    more_.NotifyAll();
  }
  std::string Calling() const override { return ""; }
  // Waits for so many that come from now on.
  std::vector<HostcallPoller::Sign> Await(size_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    base::MutexLock lock(mu_);
    signs_.clear();
    while (signs_.size() < count && more_.WaitUntil(mu_, until)) continue;
    return signs_;
  }

 private:
  driver::Latch* const holds_;
  base::Mutex mu_;
  base::CondVar more_;
  std::vector<HostcallPoller::Sign> signs_ ABSL_GUARDED_BY(mu_);
};

// Goes on by a step at each look.
struct StepClock {
  std::atomic<int64_t> step_ns{0}, now_ns{0};
  std::chrono::steady_clock::time_point operator()() {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(now_ns += step_ns));
  }
};

constexpr std::chrono::milliseconds kPatience{16};  // a beat each millisecond

TEST(PollerWatchdog, SeesThatThePollerLooks) {
  HostcallPoller poller({.patience = kPatience});
  Noted noted(nullptr);
  poller.Watch(&noted);
  const std::vector<HostcallPoller::Sign> signs = noted.Await(20);
  poller.Forget(&noted);
  ASSERT_GE(signs.size(), 20u);
  EXPECT_GT(signs.back().looks, signs.front().looks);
}

TEST(PollerWatchdog, SeesThatThePollerIsHeldAndByWhat) {
  driver::Latch held;
  HostcallPoller poller({.patience = kPatience});
  Noted holder(&held), other(nullptr);
  poller.Watch(&holder);
  ASSERT_TRUE(held.AwaitArrived());
  poller.Watch(&other);
  const std::vector<HostcallPoller::Sign> signs = other.Await(5);
  ASSERT_GE(signs.size(), 5u);
  for (const HostcallPoller::Sign& sign : signs) {
    EXPECT_EQ(sign.looks, signs[0].looks);
    EXPECT_EQ(sign.looking_at, &holder);
  }
  held.Open();
  poller.Forget(&other);
  poller.Forget(&holder);
}

TEST(PollerWatchdog, CountsNothingOfTheTimeThatStoodStill) {
  StepClock clock;
  HostcallPoller poller({.patience = kPatience, .now = [&] { return clock(); }});
  Noted noted(nullptr);
  poller.Watch(&noted);
  const auto counts = [&](seconds step) {
    clock.step_ns = std::chrono::nanoseconds(step).count();
    (void)noted.Await(2);  // the one that may have been under way
    std::chrono::nanoseconds most{0};
    for (const HostcallPoller::Sign& sign : noted.Await(3)) most = std::max(most, sign.counted);
    return most;
  };
  EXPECT_EQ(counts(seconds(1)), seconds(1));
  EXPECT_EQ(counts(seconds(12)), seconds(0));
  poller.Forget(&noted);
}

}  // namespace
}  // namespace penstock::host::hostcall_poller_test
