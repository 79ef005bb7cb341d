// The gate under every schedule: never more inside than the limit, nobody refused but by somebody inside, and whoever
// waits for room gets in. With mistakes planted that the exploration must find.
#include "src/base/try_semaphore.h"

#include <array>
#include <memory>
#include <string>

#include "tests/support/explored.h"

namespace penstock::base::try_semaphore_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::kForever;
using interleave::ModelAtomic;
using interleave::Scenario;

// Who is inside, as seen from outside: exact, because nothing else runs between an atomic operation and what follows.
template <class G, int kLimit, int kThreads>
struct Watched {
  G gate;
  int inside = 0;
  std::array<bool, kThreads> full{};  // at some moment of the thread's call
  std::string problem;

  bool Enter(size_t thread) {
    full[thread] = inside == kLimit;
    const bool entered = gate.Enter(kLimit);
    if (entered && ++inside > kLimit) problem = "more inside than the limit";
    if (inside == kLimit) full.fill(true);
    if (!entered && !full[thread]) problem = "refused, and nobody was inside";
    return entered;
  }
  void Leave() {
    gate.Leave();
    --inside;
  }
};

// One leaves while two try, each once, and go or stay.
template <class G>
Scenario OneLeavesTwoTry() {
  auto state = std::make_shared<Watched<G, 1, 3>>();
  (void)state->Enter(0);
  Scenario scenario;
  scenario.threads.push_back([state] { state->Leave(); });
  for (size_t t = 1; t < 3; ++t) scenario.threads.push_back([state, t] { (void)state->Enter(t); });
  scenario.check = [state] { return state->problem; };
  return scenario;
}

// One more than there is room for; all come, and one of them goes.
template <class G, int kLimit>
Scenario OneTooMany() {
  auto state = std::make_shared<Watched<G, kLimit, kLimit + 1>>();
  Scenario scenario;
  for (size_t t = 0; t <= kLimit; ++t) {
    scenario.threads.push_back([state, t] {
      if (state->Enter(t) && t == 0) state->Leave();
    });
  }
  scenario.check = [state] { return state->problem; };
  return scenario;
}

// One leaves, and rings where it is told that somebody was refused; another waits on the event count until it is in.
template <class G>
Scenario OneWaitsForRoom() {
  struct State {
    G gate;
    interleave::ModelBell event_count;
  };
  auto state = std::make_shared<State>();
  (void)state->gate.Enter(1);
  Scenario scenario;
  scenario.threads = {[state] {
                        if (state->gate.Leave()) state->event_count.Notify();
                      },
                      [state] {
                        for (;;) {
                          const uint64_t ticket = state->event_count.ticket();
                          if (state->gate.Enter(1)) return;
                          state->event_count.Wait(ticket, kForever);
                        }
                      }};
  scenario.check = [] { return std::string(); };
  return scenario;
}

TEST(TrySemaphore, RefusesOnlyForSomebodyInsideWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneLeavesTwoTry<TrySemaphore<ModelAtomic>>(); }));
  ExpectSound(Explore([] { return OneTooMany<TrySemaphore<ModelAtomic>, 1>(); }));
  EXPECT_EQ(Explore([] { return OneTooMany<TrySemaphore<ModelAtomic>, 2>(); }, 1000).problem, "");
}

TEST(TrySemaphore, LetsInWhoeverWaitsForRoomWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneWaitsForRoom<TrySemaphore<ModelAtomic>>(); }));
}

// Of two who leave one is told that somebody was refused, who then gets in; and nobody is where nobody was.
TEST(TrySemaphore, TellsWhoLeavesOnceThatSomebodyWasRefused) {
  TrySemaphore<> gate;
  EXPECT_TRUE(gate.Enter(2));
  EXPECT_TRUE(gate.Enter(2));
  EXPECT_FALSE(gate.Enter(2));
  EXPECT_TRUE(gate.Leave());
  EXPECT_FALSE(gate.Leave());
  EXPECT_TRUE(gate.Enter(1));
  EXPECT_FALSE(gate.Leave());
}

// Says that it was refused when who was inside may have looked already.
class TardyGate {
 public:
  bool Enter(int limit) {
    int inside = inside_.load();
    while (inside < limit) {
      if (inside_.compare_exchange_strong(inside, inside + 1)) return true;
    }
    refused_.store(true);
    return false;
  }
  bool Leave() {
    inside_.fetch_sub(1);
    return refused_.exchange(false);
  }

 private:
  ModelAtomic<int> inside_{0};
  ModelAtomic<bool> refused_{false};
};

TEST(TrySemaphore, IsExploredCloselyEnoughToFindARefusalThatNobodyIsToldOf) {
  ExpectFound(Explore([] { return OneWaitsForRoom<TardyGate>(); }), "deadlock");
}

// Counts whoever tries, and takes it back.
class CountingGate {
 public:
  bool Enter(int limit) {
    if (inside_.fetch_add(1) < limit) return true;
    inside_.fetch_sub(1);
    return false;
  }
  void Leave() { inside_.fetch_sub(1); }

 private:
  ModelAtomic<int> inside_{0};
};

TEST(TrySemaphore, IsExploredCloselyEnoughToFindARefusalByOneWhoOnlyTries) {
  ExpectFound(Explore([] { return OneLeavesTwoTry<CountingGate>(); }), "refused, and nobody was inside");
}

// Looks, and enters whatever has happened since.
class HastyGate {
 public:
  bool Enter(int limit) {
    if (inside_.load() >= limit) return false;
    inside_.fetch_add(1);
    return true;
  }
  void Leave() { inside_.fetch_sub(1); }

 private:
  ModelAtomic<int> inside_{0};
};

TEST(TrySemaphore, IsExploredCloselyEnoughToFindOneTooMany) {
  ExpectFound(Explore([] { return OneTooMany<HastyGate, 2>(); }), "more inside than the limit");
}

}  // namespace
}  // namespace penstock::base::try_semaphore_test
