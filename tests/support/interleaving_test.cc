// The lock-free parts under every schedule of a few threads, and each with a mistake planted that the exploration must
// find. Sequential consistency only; ThreadSanitizer runs over the same code for the memory orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "src/base/coalescing_runner.h"
#include "src/driver/driver.h"
#include "tests/support/explored.h"

namespace penstock::interleaving_test {
namespace {

using interleave::ExpectSound;
using interleave::Explore;
using interleave::Explored;
using interleave::kForever;
using interleave::ModelAtomic;
using interleave::ModelBell;
using interleave::ModelCondVar;
using interleave::ModelMutex;
using interleave::Scenario;

// Each thread adds a piece of work and asks the owner to do what there is.
template <class Owner>
Scenario AskedByThreads(int threads) {
  struct State {
    Owner owner;
    int added = 0, done = 0, inside = 0, worst = 0;
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  for (int t = 0; t < threads; ++t) {
    scenario.threads.push_back([state] {
      ++state->added;
      state->owner.Run([&] {
        state->worst = std::max(state->worst, ++state->inside);
        const int found = state->added;
        interleave::Point();
        state->done = found;
        --state->inside;
      });
    });
  }
  scenario.check = [state, threads]() -> std::string {
    if (state->worst > 1) return "two owners at once";
    return state->done == threads ? "" : "work was left undone";
  };
  return scenario;
}

TEST(CoalescingRunner, DoesWhatWasAskedWhateverTheSchedule) {
  ExpectSound(Explore([] { return AskedByThreads<base::CoalescingRunner<ModelAtomic>>(2); }));
  ExpectSound(Explore([] { return AskedByThreads<base::CoalescingRunner<ModelAtomic>>(3); }, 200000));
}

// One thread has no news and only looks, whether or not another is at it: it may own, and sees the notes left then.
template <class Owner>
Scenario AskedBesideOneThatLooks() {
  struct State {
    Owner owner;
    int added = 0, done = 0, inside = 0, worst = 0;
    void Step() {
      worst = std::max(worst, ++inside);
      const int found = added;
      interleave::Point();
      done = found;
      --inside;
    }
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  scenario.threads = {[state] {
                        ++state->added;
                        state->owner.Run([&] { state->Step(); });
                      },
                      [state] {
                        for (int i = 0; i < 2; ++i) state->owner.TryRun([&] { state->Step(); });
                      }};
  scenario.check = [state]() -> std::string {
    if (state->worst > 1) return "two owners at once";
    return state->done == 1 ? "" : "work was left undone";
  };
  return scenario;
}

TEST(CoalescingRunner, WhoOnlyLooksLosesNoNoteWhateverTheSchedule) {
  ExpectSound(Explore([] { return AskedBesideOneThatLooks<base::CoalescingRunner<ModelAtomic>>(); }));
}

// Throws away the notes that came while it stepped.
class ForgetfulOwner {
 public:
  template <class Step>
  void Run(Step step) {
    if (notes_.fetch_add(1) != 0) return;
    step();
    notes_.store(0);
  }
  template <class Step>
  void TryRun(Step step) {
    if (notes_.load() == 0) Run(step);
  }

 private:
  ModelAtomic<uint32_t> notes_{0};
};

TEST(CoalescingRunner, IsExploredCloselyEnoughToFindALostNote) {
  const Explored explored = Explore([] { return AskedByThreads<ForgetfulOwner>(2); });
  EXPECT_NE(explored.problem.find("work was left undone"), std::string::npos) << explored.schedules;
}

TEST(CoalescingRunner, IsExploredCloselyEnoughToFindANoteLostByOneThatOnlyLooks) {
  ExpectFound(Explore([] { return AskedBesideOneThatLooks<ForgetfulOwner>(); }), "work was left undone");
}

// One waits for a flag, others set it and ring.
template <class EventCount, bool kTicketFirst>
Scenario OneWaits(int ringers) {
  struct State {
    EventCount event_count;
    ModelAtomic<int> set{0};
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  scenario.threads.push_back([state, ringers] {
    for (;;) {
      uint64_t ticket = kTicketFirst ? state->event_count.ticket() : 0;
      if (state->set.load() == ringers) return;
      if (!kTicketFirst) ticket = state->event_count.ticket();
      state->event_count.Wait(ticket, kForever);
    }
  });
  for (int r = 0; r < ringers; ++r) {
    scenario.threads.push_back([state] {
      state->set.fetch_add(1);
      state->event_count.Notify();
    });
  }
  scenario.check = [] { return std::string(); };
  return scenario;
}

TEST(EventCount, WakesWhoeverWaitsWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneWaits<ModelBell, true>(1); }));
  const Explored two = Explore([] { return OneWaits<ModelBell, true>(2); }, 1500);
  EXPECT_EQ(two.problem, "");
}

TEST(EventCount, IsExploredCloselyEnoughToFindATicketTakenTooLate) {
  const Explored explored = Explore([] { return OneWaits<ModelBell, false>(1); });
  EXPECT_NE(explored.problem.find("deadlock"), std::string::npos) << explored.schedules;
}

// Looks for waiters before it counts the ring.
class HastyBell {
 public:
  uint64_t ticket() const { return epoch_.load(); }
  void Notify() {
    const bool nobody = waiters_.load() == 0;
    epoch_.fetch_add(1);
    if (nobody) return;
    mu_.Lock();
    cv_.NotifyAll();
    mu_.Unlock();
  }
  void Wait(uint64_t ticket, std::chrono::steady_clock::time_point) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    waiters_.fetch_add(1);
    mu_.Lock();
    while (epoch_.load() == ticket) cv_.Wait(mu_);
    mu_.Unlock();
    waiters_.fetch_sub(1);
  }

 private:
  ModelAtomic<uint64_t> epoch_{0};
  ModelAtomic<int> waiters_{0};
  ModelMutex mu_;
  ModelCondVar cv_;
};

TEST(EventCount, IsExploredCloselyEnoughToFindARingThatLooksTooEarly) {
  const Explored explored = Explore([] { return OneWaits<HastyBell, true>(1); });
  EXPECT_NE(explored.problem.find("deadlock"), std::string::npos) << explored.schedules;
}

// Two fail at once with different causes, a third looks.
template <class Fault>
Scenario TwoFail() {
  struct State {
    Fault fault;
    std::string seen;
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  scenario.threads = {
      [state] { state->fault.Fail(1, absl::InternalError("one")); },
      [state] { state->fault.Fail(2, absl::InternalError("two")); },
      [state] {
        if (!state->fault.failed()) return;
        state->seen = std::to_string(state->fault.node()) + std::string(state->fault.status().message());
      },
  };
  scenario.check = [state]() -> std::string {
    const std::string last = std::to_string(state->fault.node()) + std::string(state->fault.status().message());
    if (last != "1one" && last != "2two") return "the failure is a mixture: " + last;
    return state->seen.empty() || state->seen == last ? "" : "seen " + state->seen + ", then " + last;
  };
  return scenario;
}

TEST(RunFault, KeepsTheFirstFailureWholeWhateverTheSchedule) {
  ExpectSound(Explore([] { return TwoFail<driver::BasicRunFault<ModelAtomic>>(); }));
}

// Tells of the failure before it is written.
class EarlyFault {
 public:
  void Fail(int32_t node, absl::Status failure) {
    if (state_.exchange(1) != 0) return;
    interleave::Point();
    node_ = node;
    status_ = std::move(failure);
  }
  bool failed() const { return state_.load() != 0; }
  int32_t node() const { return node_; }
  const absl::Status& status() const { return status_; }

 private:
  ModelAtomic<int> state_{0};
  int32_t node_ = -1;
  absl::Status status_;
};

TEST(RunFault, IsExploredCloselyEnoughToFindAFailureToldTooEarly) {
  EXPECT_NE(Explore([] { return TwoFail<EarlyFault>(); }).problem, "");
}

// A checked driver's death: the call that dies and those that find it dead return when whoever began before is done.
// The order of steps is that of CheckedDriver::Begin and StandStill; what waits there by yielding is blocked here.
Scenario DiesBesideCalls(int beside, bool counts_before_it_looks) {
  struct Driver {
    ModelAtomic<bool> dying{false};
    ModelMutex witness;
    int inside = 0;
    bool dead = false, still = false, told = false;
    std::string problem;

    void Count(int by) { interleave::Point(), inside += by; }
    bool Dead(bool dies) {
      witness.Lock();
      dead = dead || dies;
      const bool found = dead;
      witness.Unlock();
      return found;
    }
    void StandStill() {
      if (dying.exchange(true)) return interleave::BlockUntil([this] { return still; });
      interleave::BlockUntil([this] { return inside == 0; });
      still = true;
    }
  };
  auto driver = std::make_shared<Driver>();
  Scenario scenario;
  for (int t = 0; t <= beside; ++t) {
    scenario.threads.push_back([driver, dies = t == 0, counts_before_it_looks] {
      if (counts_before_it_looks) driver->Count(1);
      const bool dead = driver->Dead(dies);
      if (!counts_before_it_looks) driver->Count(1);
      if (!dead) {
        interleave::Point();
        if (driver->told) driver->problem = "work went on after the death was told";
      }
      driver->Count(-1);
      if (dead) driver->StandStill();
      if (dead) driver->told = true;
    });
  }
  scenario.check = [driver] { return driver->problem; };
  return scenario;
}

TEST(StandStill, IsToldWhenWhoBeganBeforeIsDoneWhateverTheSchedule) {
  ExpectSound(Explore([] { return DiesBesideCalls(1, true); }));
  EXPECT_EQ(Explore([] { return DiesBesideCalls(2, true); }, 1000).problem, "");
}

TEST(StandStill, IsExploredCloselyEnoughToFindACallCountedTooLate) {
  interleave::ExpectFound(Explore([] { return DiesBesideCalls(1, false); }), "work went on after the death was told");
}

}  // namespace
}  // namespace penstock::interleaving_test
