// ThreadRole: threads are listed under their names while they run, with what the system says they have used.
#include "src/base/thread_role.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <latch>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "src/base/process_life.h"

namespace penstock::base::thread_role_test {
namespace {

int64_t UsedByThisThread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

std::optional<ThreadRole::Time> TimeOf(const std::string& name) {
  for (const ThreadRole::Time& time : ThreadRole::Times()) {
    if (time.name == name) return time;
  }
  return std::nullopt;
}

// With a role, having worked so long, until it is destroyed.
class Worker {
 public:
  Worker(const std::string& name, int64_t nanoseconds)
      : thread_([this, name, nanoseconds] {
          const ThreadRole role(name);
          while (UsedByThisThread() < nanoseconds) continue;
          used_ = UsedByThisThread();
          char shown[16] = "";
          pthread_getname_np(pthread_self(), shown, sizeof(shown));
          shown_ = shown;
          worked_.count_down();
          done_.wait();
        }) {
    worked_.wait();
  }
  ~Worker() {
    done_.count_down();
    thread_.join();
  }
  int64_t used() const { return used_; }
  const std::string& shown() const { return shown_; }

 private:
  std::latch worked_{1}, done_{1};
  int64_t used_ = 0;
  std::string shown_;
  std::thread thread_;
};

TEST(ThreadRole, ThreadsAreListedWithWhatTheyHaveUsedWhileTheyRun) {
  constexpr int64_t kLong = 20'000'000;
  {
    const Worker busy("busy", kLong), idle("idle", 0);
    const auto of_busy = TimeOf("busy"), of_idle = TimeOf("idle");
    ASSERT_TRUE(of_busy && of_idle);
    EXPECT_GE(of_busy->cpu_ns, busy.used());
    EXPECT_LT(of_busy->cpu_ns, 2 * busy.used());  // of this thread alone, not of the process
    EXPECT_LT(of_idle->cpu_ns, kLong / 2);
    EXPECT_LT(of_busy->serial, of_idle->serial);
  }
  EXPECT_FALSE(TimeOf("busy"));
  EXPECT_FALSE(TimeOf("idle"));
}

TEST(ThreadRole, DebuggersShowTheBeginningOfALongName) {
  const Worker worker("a-name-of-over-fifteen", 0);
  EXPECT_EQ(worker.shown(), "a-name-of-over-");
  EXPECT_TRUE(TimeOf("a-name-of-over-fifteen"));
}

TEST(ThreadRole, SerialsAreNotUsedAgain) {
  uint64_t first = 0;
  {
    const Worker worker("first", 0);
    first = TimeOf("first").value().serial;
  }
  const Worker worker("second", 0);
  EXPECT_GT(TimeOf("second").value().serial, first);
}

// A fork's copy has none of the threads; their stacks may be gone, and one may have held the list's mutex.
TEST(ThreadRole, AForksCopyHasAListOfItsOwn) {
  WatchForks();
  const Worker worker("here", 0);
  const std::jthread looks([](const std::stop_token& stop) {
    while (!stop.stop_requested()) ThreadRole::Times();
  });
  for (int n = 0; n < 20; ++n) {
    const pid_t copy = fork();
    ASSERT_GE(copy, 0);
    if (copy == 0) {
      alarm(20);  // ends a copy that hangs
      const bool empty = ThreadRole::Times().empty();
      const ThreadRole mine("mine");
      _exit(empty && ThreadRole::Times().size() == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(copy, &status, 0), copy);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << n;
  }
  EXPECT_TRUE(TimeOf("here"));
}

}  // namespace
}  // namespace penstock::base::thread_role_test
