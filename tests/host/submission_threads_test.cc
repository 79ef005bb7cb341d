// SubmissionThreads: they feed what is added until it is removed, sleep otherwise, and do without where there are no
// threads. Their places under every schedule: nobody is inside what has been removed, and nothing that is added is
// slept through; with mistakes planted that the exploration must find.
#include "src/host/submission_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "tests/support/explored.h"

namespace penstock::host::submission_threads_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::kForever;
using interleave::ModelAtomic;
using interleave::ModelBell;
using interleave::Scenario;

constexpr std::chrono::seconds kLong{20};

// Has something to do as often as it is told to.
class Work final : public SubmissionClient {
 public:
  bool Feed() override {
    ++looks_;
    if (left_.fetch_sub(1) <= 0) return left_.fetch_add(1), false;
    done_.release();
    return true;
  }
  void Give(int n) { left_.fetch_add(n); }
  int64_t looks() const { return looks_.load(); }
  bool AwaitDone() { return done_.try_acquire_for(kLong); }

 private:
  std::atomic<int> left_{0};
  std::atomic<int64_t> looks_{0};
  std::counting_semaphore<> done_{0};
};

double CpuMs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

TEST(SubmissionThreads, FeedAllThatIsAdded) {
  SubmissionThreads submission_threads({.threads = 2, .name = "test"});
  EXPECT_EQ(submission_threads.threads(), 2);
  Work works[3];
  for (Work& work : works) {
    work.Give(100);
    ASSERT_TRUE(submission_threads.Add(&work));
  }
  for (Work& work : works) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(work.AwaitDone());
  }
  for (Work& work : works) submission_threads.Remove(&work);
}

TEST(SubmissionThreads, HaveRoomForSoMuchAndRefuseMore) {
  SubmissionThreads submission_threads({.threads = 1, .name = "test"});
  Work works[ClientSlots<>::kPlaces + 1];
  for (size_t w = 0; w < ClientSlots<>::kPlaces; ++w) EXPECT_TRUE(submission_threads.Add(&works[w]));
  EXPECT_FALSE(submission_threads.Add(&works[ClientSlots<>::kPlaces]));
  submission_threads.Remove(&works[3]);
  EXPECT_TRUE(submission_threads.Add(&works[ClientSlots<>::kPlaces]));
  for (size_t w = 0; w <= ClientSlots<>::kPlaces; ++w) {
    if (w != 3) submission_threads.Remove(&works[w]);
  }
}

// Stays inside until it has been removed, or long enough for a Remove that does not wait.
class Slow final : public SubmissionClient {
 public:
  bool Feed() override {
    inside.store(true);
    entered.release();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (!removed.load() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    inside.store(false);
    return false;
  }
  std::atomic<bool> inside{false}, removed{false};
  std::counting_semaphore<> entered{0};
};

TEST(SubmissionThreads, RemoveReturnsWhenNobodyIsInside) {
  SubmissionThreads submission_threads({.threads = 2, .name = "test"});
  Slow slow;
  ASSERT_TRUE(submission_threads.Add(&slow));
  ASSERT_TRUE(slow.entered.try_acquire_for(kLong));
  submission_threads.Remove(&slow);
  EXPECT_FALSE(slow.inside.load());
  slow.removed.store(true);
}

TEST(SubmissionThreads, AreWokenByWhatIsAdded) {
  SubmissionThreads submission_threads({.threads = 2, .name = "test"});
  Work work;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // they sleep by now, but need not
    work.Give(1);
    ASSERT_TRUE(submission_threads.Add(&work));
    ASSERT_TRUE(work.AwaitDone());
    submission_threads.Remove(&work);
  }
}

// Stays inside for long enough that others would come in too.
class Roomy final : public SubmissionClient {
 public:
  explicit Roomy(int max_threads) : SubmissionClient(max_threads) {}
  bool Feed() override {
    const int now = inside_.fetch_add(1) + 1;
    int most = most_.load();
    while (most < now && !most_.compare_exchange_weak(most, now)) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    inside_.fetch_sub(1);
    left_.release();
    return true;  // or they go to sleep
  }
  bool AwaitLeft() { return left_.try_acquire_for(kLong); }
  int most() const { return most_.load(); }

 private:
  std::atomic<int> inside_{0}, most_{0};
  std::counting_semaphore<> left_{0};
};

TEST(SubmissionThreads, AreAsManyAsAreOfUse) {
  SubmissionThreads submission_threads({.threads = 4, .name = "test"});
  Roomy one(1), two(2);
  ASSERT_TRUE(submission_threads.Add(&one));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(one.AwaitLeft());
  EXPECT_EQ(one.most(), 1);
  ASSERT_TRUE(submission_threads.Add(&two));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(two.AwaitLeft());
  submission_threads.Remove(&one);
  EXPECT_LE(one.most(), 3);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(two.AwaitLeft());
  submission_threads.Remove(&two);
  EXPECT_LE(two.most(), 3) << "one of them came for the other";
}

// Has something to do again, behind a while without.
TEST(SubmissionThreads, AreWokenWhereTheySleepThoughThereIsSomethingToDo) {
  SubmissionThreads submission_threads({.threads = 2, .name = "test"});
  Work work;
  ASSERT_TRUE(submission_threads.Add(&work));
  for (int round = 0; round < 3; ++round) {
    for (int64_t looks = -1; looks != work.looks();) {
      looks = work.looks();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    work.Give(1);
    round == 0 ? submission_threads.Call() : submission_threads.Wake();
    ASSERT_TRUE(work.AwaitDone());
  }
  submission_threads.Remove(&work);
}

// Whether `done` comes to hold some time.
template <class F>
bool Soon(F done) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
  }
  return true;
}

TEST(SubmissionThreads, SleepWithNothingToDo) {
  SubmissionThreads submission_threads({.threads = 4, .name = "test"});
  Work work;
  for (const bool added : {false, true}) {
    if (added) {
      ASSERT_TRUE(submission_threads.Add(&work));
    }
    EXPECT_TRUE(Soon([&] {
      const double before = CpuMs();
      const int64_t looks = work.looks();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what is measured
      return CpuMs() - before < 5 && work.looks() == looks;
    })) << (added ? "with something that has nothing to do" : "with nothing");
    if (added) submission_threads.Remove(&work);
  }
}

TEST(SubmissionThreads, HaveTheirNameAndBeginAndEndInTheirThreads) {
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> named{true};
  const auto check = [&] {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof(name));
    if (std::string(name) != "ps-submit/7") named.store(false);
  };
  SubmissionThreads submission_threads(
      {.threads = 3, .name = "ps-submit/7", .begin = [&] { check(), ++begun; }, .end = [&] { check(), ++ended; }});
  submission_threads.Stop();
  submission_threads.Stop();
  EXPECT_EQ(begun.load(), 3);
  EXPECT_EQ(ended.load(), 3);
  EXPECT_TRUE(named.load());
  Work work;
  if (submission_threads.Add(&work)) submission_threads.Remove(&work);
}

TEST(SubmissionThreads, AreFewerWhereTheSystemRefusesThreads) {
  pthread_attr_t usual, huge;
  pthread_getattr_default_np(&usual);
  pthread_getattr_default_np(&huge);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);  // no system has room for it
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  SubmissionThreads submission_threads({.threads = 4, .name = "test"});
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(submission_threads.threads(), 0);
  Work work;
  EXPECT_FALSE(submission_threads.Add(&work)) << "nobody would feed it";
}

// Rests until something has changed since it looked.
int64_t changes = 0;
template <class T>
class Counting {
 public:
  Counting(T value = T{}) : of_(value) {}  // NOLINT: implicit, as std::atomic's
  T load(std::memory_order = std::memory_order_seq_cst) const { return of_.load(); }
  void store(T value, std::memory_order = std::memory_order_seq_cst) { of_.store(value), ++changes; }
  T fetch_add(T n, std::memory_order = std::memory_order_seq_cst) { return ++changes, of_.fetch_add(n); }
  T fetch_sub(T n, std::memory_order = std::memory_order_seq_cst) { return ++changes, of_.fetch_sub(n); }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst) {
    return ++changes, of_.compare_exchange_strong(expected, value);
  }

 private:
  ModelAtomic<T> of_;
};
class UntilChanged {
 public:
  void Look() { seen_ = changes; }
  void Rest() {
    interleave::BlockUntil([seen = seen_] { return changes != seen; });
  }

 private:
  int64_t seen_ = 0;
};

// Who removes it finds nobody inside.
class Inside final : public SubmissionClient {
 public:
  bool Feed() override {
    interleave::Point();
    if (removed) problem = "a submission thread is inside what has been removed";
    return false;
  }
  bool removed = false;
  std::string problem;
};

template <class Places>
struct PlacesState {
  explicit PlacesState(size_t submission_threads) : places(submission_threads) {}
  Places places;
  Inside fed;
  ModelBell event_count;
};

// One removes what submission threads look at, each once.
template <class Places>
Scenario OneRemoves(size_t submission_threads) {
  auto state = std::make_shared<PlacesState<Places>>(submission_threads);
  (void)state->places.Add(&state->fed);
  Scenario scenario;
  scenario.threads.push_back([state] {
    state->places.template Remove<UntilChanged>(&state->fed);
    state->fed.removed = true;
  });
  for (size_t f = 0; f < submission_threads; ++f) {
    scenario.threads.push_back([state, f] {
      if (SubmissionClient* const fed = state->places.Enter(f, 0); fed != nullptr) {
        fed->Feed();
        state->places.Leave(f);
      }
    });
  }
  scenario.check = [state] { return state->fed.problem; };
  return scenario;
}

// A submission thread sleeps on the event count until it has been inside what another adds.
template <class Places, bool kRingFirst = false>
Scenario OneAdds() {
  auto state = std::make_shared<PlacesState<Places>>(1);
  Scenario scenario;
  scenario.threads = {[state] {
                        if (kRingFirst) state->event_count.Notify();
                        (void)state->places.Add(&state->fed);
                        if (!kRingFirst) state->event_count.Notify();
                      },
                      [state] {
                        for (;;) {
                          const uint64_t ticket = state->event_count.ticket();
                          if (state->places.Wants(0) && state->places.Enter(0, 0) != nullptr) return;
                          state->event_count.Wait(ticket, kForever);
                        }
                      }};
  scenario.check = [] { return std::string(); };
  return scenario;
}

TEST(ClientSlots, NobodyIsInsideWhatHasBeenRemovedWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneRemoves<ClientSlots<Counting>>(1); }));
  EXPECT_EQ(Explore([] { return OneRemoves<ClientSlots<Counting>>(2); }, 5000).problem, "");
}

TEST(ClientSlots, WhatIsAddedIsNotSleptThroughWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneAdds<ClientSlots<Counting>>(); }));
}

// Goes in without looking again.
class HastyPlaces : public ClientSlots<Counting> {
 public:
  using ClientSlots::ClientSlots;
  SubmissionClient* Enter(size_t submitter, size_t place) {
    seen_.store(ClientSlots::Enter(submitter, place));
    if (seen_.load() == nullptr) return nullptr;
    Leave(submitter);
    inside_.store(true);
    return seen_.load();
  }

 private:
  Counting<SubmissionClient*> seen_{nullptr};
  Counting<bool> inside_{false};
};

// Returns at once.
class CarelessPlaces : public ClientSlots<Counting> {
 public:
  using ClientSlots::ClientSlots;
  template <class Wait>
  void Remove(SubmissionClient*) {}
};

TEST(ClientSlots, AreExploredCloselyEnoughToFindAFeederInside) {
  ExpectFound(Explore([] { return OneRemoves<HastyPlaces>(1); }), "a submission thread is inside");
  ExpectFound(Explore([] { return OneRemoves<CarelessPlaces>(1); }), "a submission thread is inside");
}

TEST(ClientSlots, AreExploredCloselyEnoughToFindABellRungTooEarly) {
  ExpectFound(Explore([] { return OneAdds<ClientSlots<Counting>, true>(); }), "deadlock");
}

}  // namespace
}  // namespace penstock::host::submission_threads_test
