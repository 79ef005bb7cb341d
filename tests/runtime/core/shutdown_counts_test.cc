// The counts that Shutdown and Compile wait for, under every schedule: nothing runs once Shutdown has seen the end, and
// who is out of memory neither gives up on a release under way nor waits for one that never comes. With mistakes
// planted that the exploration must find.
#include "src/runtime/core/shutdown_counts.h"

#include <memory>
#include <string>

#include "tests/support/explored.h"

namespace penstock::runtime::shutdown_counts_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::kForever;
using interleave::ModelAtomic;
using interleave::ModelBell;
using interleave::Scenario;

// RuntimeCore's Launch and Shutdown.
template <class Count>
Scenario LaunchesAndShutdown(int launchers) {
  struct State {
    Count count;
    ModelBell event_count;
    bool stopped = false;
    std::string problem;
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  for (int l = 0; l < launchers; ++l) {
    scenario.threads.push_back([state] {
      state->count.Begin();
      if (!state->count.closed()) {
        interleave::Point();
        if (state->stopped) state->problem = "a run went on after Shutdown";
      }
      state->count.End();
      state->event_count.Notify();
    });
  }
  scenario.threads.push_back([state] {
    state->count.Close();
    for (;;) {
      const uint64_t ticket = state->event_count.ticket();
      if (state->count.runs() == 0) break;
      state->event_count.Wait(ticket, kForever);
    }
    state->stopped = true;
  });
  scenario.check = [state] { return state->problem; };
  return scenario;
}

TEST(RunCount, NothingRunsOnceItIsClosedAndAtZeroWhateverTheSchedule) {
  ExpectSound(Explore([] { return LaunchesAndShutdown<RunCount<ModelAtomic>>(1); }));
  EXPECT_EQ(Explore([] { return LaunchesAndShutdown<RunCount<ModelAtomic>>(2); }, 1000).problem, "");
}

// Looks before it counts.
class HastyCount {
 public:
  void Begin() {
    open_ = !closed_.load();
    runs_.fetch_add(1);
  }
  bool closed() const { return !open_; }
  void End() { runs_.fetch_sub(1); }
  void Close() { closed_.store(true); }
  int64_t runs() const { return runs_.load(); }

 private:
  ModelAtomic<int64_t> runs_{0};
  ModelAtomic<bool> closed_{false};
  bool open_ = false;  // of the one launcher
};

TEST(RunCount, IsExploredCloselyEnoughToFindALookTakenTooEarly) {
  ExpectFound(Explore([] { return LaunchesAndShutdown<HastyCount>(1); }), "a run went on after Shutdown");
}

// An executable is released while Compile is out of memory: RuntimeCore::WithMemory. `under_way`: its last handle went
// before.
template <class Count>
Scenario OneIsReleased(bool under_way) {
  struct State {
    Count count;
    ModelBell event_count;
    bool free = false, made = false;
  };
  auto state = std::make_shared<State>();
  if (under_way) state->count.Begin();
  Scenario scenario;
  scenario.threads.push_back([state, under_way] {
    if (!under_way) state->count.Begin();
    interleave::Point();
    state->free = true;
    state->count.End();
    state->event_count.Notify();
  });
  scenario.threads.push_back([state] {
    int64_t ended = 0;
    const auto more = [&] {
      for (;;) {
        const uint64_t ticket = state->event_count.ticket();
        if (state->count.ended() > ended || !state->count.AnyToCome(ended, 0)) return state->count.ended() > ended;
        state->event_count.Wait(ticket, kForever);
      }
    };
    do {
      ended = state->count.ended();
      interleave::Point();
      state->made = state->free;
    } while (!state->made && more());
  });
  scenario.check = [state, under_way] {
    return std::string(under_way && !state->made ? "gave up on a release under way" : "");
  };
  return scenario;
}

TEST(ReleaseCount, IsWaitedForWhileAnyIsUnderWayWhateverTheSchedule) {
  ExpectSound(Explore([] { return OneIsReleased<ReleaseCount<ModelAtomic>>(true); }));
  EXPECT_EQ(Explore([] { return OneIsReleased<ReleaseCount<ModelAtomic>>(false); }, 1000).problem, "");
}

// Counts those that go on, in place of those that ever did.
class ForgetfulCount {
 public:
  void Begin() { going_.fetch_add(1); }
  void End() {
    going_.fetch_sub(1);
    ended_.fetch_add(1);
  }
  int64_t ended() const { return ended_.load(); }
  bool AnyToCome(int64_t, int64_t stuck) const { return going_.load() > stuck; }

 private:
  ModelAtomic<int64_t> going_{0}, ended_{0};
};

TEST(ReleaseCount, IsExploredCloselyEnoughToFindOneThatEndsBetweenTwoLooks) {
  ExpectFound(Explore([] { return OneIsReleased<ForgetfulCount>(true); }), "gave up on a release under way");
}

}  // namespace
}  // namespace penstock::runtime::shutdown_counts_test
