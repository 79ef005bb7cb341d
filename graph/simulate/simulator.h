// Simulator: runs of a SimProgram from event to event. Internal to graph/simulate.
//
// At each time, all events are handled first, then submissions go on, then host steps are given to the workers, and
// then free places are taken.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "graph/simulate/sim_clock.h"
#include "graph/simulate/sim_program.h"
#include "graph/simulate/sim_resources.h"
#include "graph/simulate/sim_states.h"
#include "graph/simulate/sim_submission.h"

namespace penstock::graph {

struct SimEvent {
  //   kEnd        the span `a` ends, unless it has got another end since: `b` is the number of its end
  //   kArrive     what the node `b` in slot `a` waits for, by span `c`, is over
  //   kPrepared   the application's thread `a` is ready to launch
  //   kRunEnd     the host knows that the run in slot `a` has ended, with span `c`
  enum class Kind : uint8_t { kEnd, kArrive, kPrepared, kRunEnd };
  SimTicks time = 0;
  int64_t number = 0;
  Kind kind{};
  SimWait wait{};
  int32_t a = -1, b = -1, c = -1;
};

class Simulator {
 public:
  // A span as in SimResult, with its times in ticks.
  struct Work {
    int32_t node, run, slot, pool, place;
    SimWait wait;
    int32_t waited_for;
    SimTicks ready, begin, end;
  };

  Simulator(const SimProgram& program, const std::vector<std::vector<int32_t>>& states, const SimOptions& options);

  void Run();

  const std::vector<Work>& work() const { return work_; }
  const std::vector<SimTicks>& launched() const { return launched_; }
  const std::vector<SimTicks>& ended() const { return ended_; }
  int64_t events() const { return clock_.added(); }

 private:
  struct Slot {
    int32_t run = -1;
    std::vector<int32_t> waits;  // of each node: for how much it still waits
    std::vector<int32_t> host_steps;  // of each segment: the same
    std::vector<int32_t> to_touch;  // of each State: how many nodes have still to touch it
    int32_t nodes = 0;  // that have not ended
    SimTicks known = 0;  // when the host knows of all that have ended on devices
    SimSubmission submission{};
    int32_t last_host_step = -1;  // the span of the last that a segment waited for
  };
  // The application's side of a launch.
  struct Launcher {
    SimWait wait = SimWait::kNothing;  // what it waited for last, and the span
    int32_t waited_for = -1;
  };

  void Handle(const SimEvent& event);
  void NextLaunch(int32_t thread);
  void Prepare(int32_t thread);
  void LaunchOrWait(int32_t thread);
  void Launch(int32_t thread, int32_t slot);
  void FillSlot(Slot& slot);
  void EndRun(int32_t slot, int32_t span);
  int32_t AddWork(const SimReady& ready, int32_t pool, int32_t place);
  void Submit(const SimReady& ready, int32_t pool, int32_t place);
  void NoteTouches(int32_t span);
  void EndSubmission(int32_t span);
  bool CanSubmit(const Slot& slot) const;
  void PostSteps(int32_t slot, int32_t submission, SimSubmission::Which which);
  void HandToWorker(int32_t slot);
  void SubmitAfterState(int32_t state, int32_t span);
  void Arrive(int32_t slot, int32_t node, SimWait wait, int32_t span);
  void ArriveAt(SimTicks time, int32_t slot, int32_t node, SimWait wait, int32_t span);
  void Begin(const SimReady& ready, int32_t pool, int32_t place);
  void EndNode(int32_t span);
  void PassOn(int32_t slot, int32_t node, int32_t span);
  void EndHostStep(int32_t slot, int32_t node, int32_t span);
  void Touch(int32_t slot, int32_t node, int32_t state, int32_t span);
  void AwaitState(int32_t slot, int32_t state);
  void EndRunIfDone(int32_t slot, int32_t span);
  void Settle();
  // What SimResources tells when work ends.
  auto EndAt() {
    return [this](SimTicks time, int32_t span, int32_t number) {
      clock_.Add(time, {.kind = SimEvent::Kind::kEnd, .a = span, .b = number});
    };
  }

  Slot& At(int32_t slot) { return slots_[static_cast<size_t>(slot)]; }
  Work& WorkOf(int32_t span) { return work_[static_cast<size_t>(span)]; }

  const SimProgram& program_;
  const SimOptions& options_;
  SimClock<SimEvent> clock_;
  SimResources resources_;
  SimStates states_;
  std::vector<Slot> slots_;
  std::vector<Launcher> launchers_;  // of each thread
  int32_t taken_ = 0;  // runs that threads prepare or have launched
  int32_t inside_ = 0;  // of these: that have not ended
  std::deque<int32_t> want_room_, want_slot_;  // threads that wait
  std::deque<int32_t> free_slots_;
  int32_t posted_ = 0;  // host steps that have been given to the workers
  // At this time: spans of submissions that have ended; slots of runs that may be submitted on; slots with host steps
  // for the workers; States of which a run has submitted all touches, and the span of that submission.
  std::vector<int32_t> to_settle_, to_submit_, to_post_;
  std::vector<std::pair<int32_t, int32_t>> to_let_go_;
  std::vector<Work> work_;
  std::vector<SimTicks> launched_, ended_;  // of each run
};

}  // namespace penstock::graph
