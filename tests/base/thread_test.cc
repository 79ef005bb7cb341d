// What a thread of the library's blocks, and what becomes of its creator's mask.
#include "src/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <system_error>
#include <vector>

namespace penstock::base::thread_test {
namespace {

std::vector<int> Blocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::vector<int> blocked;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&mask, signal) == 1) blocked.push_back(signal);
  }
  return blocked;
}

std::vector<int> WantedOfOwnThreads() {
  std::vector<int> all;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool never = signal == SIGKILL || signal == SIGSTOP || (signal > 31 && signal < SIGRTMIN);
    const bool open = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
                      signal == SIGTRAP || signal == SIGABRT || signal == SIGSYS || signal == SIGPROF;
    if (!never && !open) all.push_back(signal);
  }
  return all;
}

// Blocks these, and some that threads of the library do not, while it lives.
class CreatorsMask {
 public:
  CreatorsMask() {
    sigset_t some;
    sigemptyset(&some);
    for (const int signal : {SIGUSR1, SIGPROF, SIGTRAP}) sigaddset(&some, signal);
    pthread_sigmask(SIG_SETMASK, &some, &before_);
  }
  ~CreatorsMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

TEST(StartThread, BlocksAllSignalsButThoseOfItsOwnMistakesAndProfilers) {
  const CreatorsMask mask;
  std::vector<int> blocked;
  StartThread("ps-test", [&] { blocked = Blocked(); }).join();
  EXPECT_EQ(blocked, WantedOfOwnThreads());
}

TEST(StartThread, LeavesTheCreatorsMaskAsItWas) {
  const CreatorsMask mask;
  const std::vector<int> before = Blocked();
  StartThread("ps-test", [] {}).join();
  EXPECT_EQ(Blocked(), before);
}

TEST(StartThread, LeavesTheMaskAsItWasWhereTheSystemRefusesAThread) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&huge);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);  // no system has room for it
  const CreatorsMask mask;
  const std::vector<int> before = Blocked();
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(StartThread("ps-test", [] {}).join(), std::system_error);
  pthread_setattr_default_np(&usual);
  EXPECT_EQ(Blocked(), before);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

TEST(StartThread, SaysWhichThreadsAreOurs) {
  bool inside = false;
  StartThread("ps-test", [&] { inside = OnOwnThread(); }).join();
  EXPECT_TRUE(inside);
  EXPECT_FALSE(OnOwnThread());
}

}  // namespace
}  // namespace penstock::base::thread_test
