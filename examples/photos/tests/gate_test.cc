// The limit on threads at work: reached, never passed.
#include "examples/photos/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace photos::gate_test {
namespace {

void RunThreads(int count, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

TEST(GateTest, LetsAsManyThroughAtOnceAsItHasPasses) {
  TrySemaphore gate(3);
  std::latch all_inside(3);  // opens only if three hold a pass together
  RunThreads(3, [&] {
    const TrySemaphore::Pass pass(&gate);
    all_inside.arrive_and_wait();
  });
}

TEST(GateTest, NeverLetsMoreThrough) {
  TrySemaphore gate(2);
  std::atomic<int> inside{0}, most{0};
  RunThreads(6, [&] {
    for (int i = 0; i < 500; ++i) {
      const TrySemaphore::Pass pass(&gate);
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::yield();
      --inside;
    }
  });
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace photos::gate_test
