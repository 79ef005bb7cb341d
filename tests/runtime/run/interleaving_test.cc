// How the runtime's lock-free parts work together, under every schedule: a run's machine and its host steps, a fatal
// fault and a launch beside it, a run that waits for another's last touch of a State. The orders of calls are those of
// run_core.cc, runtime_core.cc and submitter.cc; the parts are the real ones where they can stand alone. Each
// comes with a mistake planted that the exploration must find.
#include <memory>
#include <string>
#include <vector>

#include "src/base/coalescing_runner.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/run/run_slot.h"
#include "tests/support/explored.h"

namespace penstock::runtime::interleaving_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::kForever;
using interleave::ModelAtomic;
using interleave::ModelBell;
using interleave::ModelMutex;
using interleave::Scenario;

// --- host steps: RunHostStep on workers, Step by whoever owns the machine ---

// Two host nodes that run on workers; behind both of them the run is over.
Scenario TwoHostStepsEnd(bool state_before_advance) {
  struct Run {
    base::CoalescingRunner<ModelAtomic> notes;
    std::vector<ModelAtomic<HostStepState>> steps = {HostStepState::kRunning, HostStepState::kRunning};
    int completed = 0;

    void Advance() {
      notes.Run([this] {
        for (const auto& step : steps) {
          if (step.load() != HostStepState::kDone) return;
        }
        if (completed == 0) ++completed;
      });
    }
  };
  auto run = std::make_shared<Run>();
  Scenario scenario;
  for (size_t s = 0; s < 2; ++s) {
    scenario.threads.push_back([run, s, state_before_advance] {
      if (state_before_advance) run->steps[s].store(HostStepState::kDone);
      run->Advance();
      if (!state_before_advance) run->steps[s].store(HostStepState::kDone);
    });
  }
  scenario.check = [run] { return std::string(run->completed == 1 ? "" : "the run never ends"); };
  return scenario;
}

TEST(HostSteps, EndTheirRunWhateverTheSchedule) {
  ExpectSound(Explore([] { return TwoHostStepsEnd(true); }, 200000));
}

TEST(HostSteps, AreExploredCloselyEnoughToFindAStepToldTooLate) {
  ExpectFound(Explore([] { return TwoHostStepsEnd(false); }), "the run never ends");
}

// --- a fatal fault: NoteFault beside Launch ---

// NoteFault sets failed_ and then advances every run that a slot shows; Launch shows its run and advances it then. One
// of the two sees the other.
Scenario FaultBesideALaunch(bool show_before_advance) {
  struct Runtime {
    ModelAtomic<bool> failed{false};
    ModelMutex mu;
    bool shown = false, run_failed = false;
    base::CoalescingRunner<ModelAtomic> notes;

    void Advance() {
      notes.Run([this] {
        if (failed.load()) run_failed = true;
      });
    }
    void Show() {
      mu.Lock();
      shown = true;
      mu.Unlock();
    }
    bool Shown() {
      mu.Lock();
      const bool seen = shown;
      mu.Unlock();
      return seen;
    }
  };
  auto runtime = std::make_shared<Runtime>();
  Scenario scenario;
  scenario.threads = {[runtime] {
                        runtime->failed.store(true);
                        if (runtime->Shown()) runtime->Advance();
                      },
                      [runtime, show_before_advance] {
                        if (show_before_advance) runtime->Show();
                        runtime->Advance();
                        if (!show_before_advance) runtime->Show();
                      }};
  scenario.check = [runtime] { return std::string(runtime->run_failed ? "" : "the run lives on in a dead runtime"); };
  return scenario;
}

TEST(FatalFault, ReachesARunThatIsBeingLaunchedWhateverTheSchedule) {
  ExpectSound(Explore([] { return FaultBesideALaunch(true); }, 200000));
}

TEST(FatalFault, IsExploredCloselyEnoughToFindARunShownTooLate) {
  ExpectFound(Explore([] { return FaultBesideALaunch(false); }), "the run lives on in a dead runtime");
}

// --- States: WaitForState of one run, the last touch of the one before ---

// What each of the runs does with the one State: a call's ticket stands for each (it needs no executable), so all of
// them conflict.
struct OneState {
  StateRecord record{"s", {}, {}, 0, nullptr};
  StateQueue queue{record};
  StateOrder order;
  ModelBell event_count;
  std::vector<driver::Event> events;
  std::vector<uint64_t> touched;  // serials, in the order of their touches

  void MakePlace(StateTicket& ticket) {
    ticket.places[0].ticket = &ticket;
    ticket.places[0].queue = &queue;
    ticket.places[0].writes = true;
    ticket.places[0].done = &events;
  }
};

// StateOrder is all under its lock, in which nothing of the model happens, so each of its calls is one step here.
template <class A>
auto Step(A call) {
  interleave::Point();
  return call();
}

Scenario RunsTouchAState(int runs, bool rings) {
  auto state = std::make_shared<OneState>();
  Scenario scenario;
  for (int r = 0; r < runs; ++r) {
    scenario.threads.push_back([state, rings] {
      StateTicket ticket(1);
      state->MakePlace(ticket);
      (void)state->order.Enter(ticket);
      for (;;) {
        const uint64_t bell_ticket = state->event_count.ticket();
        const auto ahead = Step([&] { return state->order.LookAhead(ticket.places[0]); });
        if (!ahead || ahead->submitted) break;
        state->event_count.Wait(bell_ticket, kForever);
      }
      state->touched.push_back(ticket.serial);
      const bool awaited = Step([&] { return state->order.Submitted(ticket.places[0]); });
      if (awaited && rings) state->event_count.Notify();
      state->order.Leave(ticket);
    });
  }
  scenario.check = [state, runs]() -> std::string {
    if (state->touched.size() != static_cast<size_t>(runs)) return "a run never touched it";
    for (size_t i = 0; i < state->touched.size(); ++i) {
      if (state->touched[i] != i + 1) return "touched out of order";
    }
    return state->queue.last == nullptr ? "" : "a place was left behind";
  };
  return scenario;
}

TEST(StateTurns, ComeInTheOrderOfTicketsAndAreNeverMissedWhateverTheSchedule) {
  ExpectSound(Explore([] { return RunsTouchAState(2, true); }, 200000));
  EXPECT_EQ(Explore([] { return RunsTouchAState(3, true); }, 1000).problem, "");
}

TEST(StateTurns, AreExploredCloselyEnoughToFindALastTouchThatRingsForNobody) {
  ExpectFound(Explore([] { return RunsTouchAState(2, false); }), "deadlock");
}

}  // namespace
}  // namespace penstock::runtime::interleaving_test
