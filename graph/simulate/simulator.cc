#include "graph/simulate/simulator.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::graph {

Simulator::Simulator(const SimProgram& program, const std::vector<std::vector<int32_t>>& states,
                     const SimOptions& options)
    : program_(program),
      options_(options),
      states_(program, states, options.as_graphs ? 0 : InTicks(options.crossing_us)),
      slots_(static_cast<size_t>(std::min(options.slots, options.runs))),
      launchers_(static_cast<size_t>(options.threads)) {
  for (const SimPool& pool : program.pools) resources_.Add(pool);
  for (int32_t s = 0; s < static_cast<int32_t>(slots_.size()); ++s) free_slots_.push_back(s);
  launched_.reserve(static_cast<size_t>(options.runs));
  ended_.resize(static_cast<size_t>(options.runs));
  work_.reserve((program.waits.size() + program.segments.size()) * static_cast<size_t>(options.runs));
}

void Simulator::Run() {
  for (int32_t t = 0; t < options_.threads; ++t) NextLaunch(t);
  while (clock_.Advance()) {
    while (clock_.IsDue()) Handle(clock_.Take());
    Settle();
  }
}

void Simulator::Handle(const SimEvent& event) {
  switch (event.kind) {
    case SimEvent::Kind::kEnd:
      if (resources_.IsVoid(WorkOf(event.a).pool, event.b)) return;
      return WorkOf(event.a).node < 0 ? to_settle_.push_back(event.a) : EndNode(event.a);
    case SimEvent::Kind::kArrive: return Arrive(event.a, event.b, event.wait, event.c);
    case SimEvent::Kind::kPrepared: return LaunchOrWait(event.a);
    case SimEvent::Kind::kRunEnd: return EndRun(event.a, event.c);
  }
}

// What is left to do once all events of a time have been handled.
void Simulator::Settle() {
  const std::vector<int32_t> submitted = std::exchange(to_settle_, {});
  for (const int32_t span : submitted) NoteTouches(span);
  for (const int32_t span : submitted) EndSubmission(span);
  for (const int32_t slot : std::exchange(to_submit_, {})) HandToWorker(slot);
  for (const auto& [state, span] : std::exchange(to_let_go_, {})) SubmitAfterState(state, span);
  while (!to_submit_.empty() || !to_post_.empty()) {
    for (const int32_t slot : std::exchange(to_submit_, {})) HandToWorker(slot);
    for (const int32_t slot : std::exchange(to_post_, {})) {
      if (!At(slot).submission.is_going_on()) PostSteps(slot, -1, SimSubmission::Which::kAll);
    }
  }
  resources_.TakePlaces([this](const SimReady& ready, int32_t pool, int32_t place) {
    ready.node < 0 ? Submit(ready, pool, place) : Begin(ready, pool, place);
  });
}

// The application.

void Simulator::NextLaunch(int32_t thread) {
  if (taken_ == options_.runs) return;
  if (options_.in_flight > 0 && inside_ == options_.in_flight) return want_room_.push_back(thread);
  Prepare(thread);
}

void Simulator::Prepare(int32_t thread) {
  const SimTicks ready = clock_.now() + InTicks(options_.between_us);
  clock_.Add(std::max(ready, taken_ * InTicks(options_.period_us)), {.kind = SimEvent::Kind::kPrepared, .a = thread});
  ++taken_;
  ++inside_;
}

void Simulator::LaunchOrWait(int32_t thread) {
  if (free_slots_.empty()) return want_slot_.push_back(thread);
  const int32_t slot = free_slots_.front();
  free_slots_.pop_front();
  Launch(thread, slot);
}

void Simulator::Launch(int32_t thread, int32_t slot) {
  Slot& to = At(slot);
  to.run = static_cast<int32_t>(launched_.size());
  launched_.push_back(clock_.now());
  FillSlot(to);
  const Launcher& launcher = launchers_[static_cast<size_t>(thread)];
  Submit({.since = clock_.now(), .run = to.run, .slot = slot, .wait = launcher.wait, .waited_for = launcher.waited_for},
         SimProgram::kLaunchers, thread);
}

void Simulator::FillSlot(Slot& slot) {
  slot.waits = program_.waits;
  slot.submission.Begin(program_);
  slot.host_steps.clear();
  for (const SimSegment& segment : program_.segments) slot.host_steps.push_back(segment.host_steps);
  slot.nodes = program_.nodes;
  slot.known = 0;
  slot.to_touch.clear();
  for (int32_t s = 0; s < states_.count(); ++s) AwaitState(static_cast<int32_t>(&slot - slots_.data()), s);
}

void Simulator::AwaitState(int32_t slot, int32_t state) {
  Slot& of = At(slot);
  of.to_touch.push_back(static_cast<int32_t>(states_.NodesOf(state).size()));
  const bool ended = states_.runs(state) == of.run;  // the run before has touched it for the last time
  for (const int32_t n : states_.NodesOf(state)) {
    const SimTicks free = states_.FreeAt(state, n);
    if (ended && free <= clock_.now()) continue;
    ++of.waits[static_cast<size_t>(n)];
    if (ended) ArriveAt(free, slot, n, SimWait::kState, states_.last_span(state));
  }
}

void Simulator::EndRun(int32_t slot, int32_t span) {
  ended_[static_cast<size_t>(At(slot).run)] = clock_.now();
  --inside_;
  free_slots_.push_back(slot);
  const auto wake = [&](std::deque<int32_t>& threads) {
    const int32_t thread = threads.front();
    threads.pop_front();
    launchers_[static_cast<size_t>(thread)] = {SimWait::kSlot, span};
    return thread;
  };
  if (!want_room_.empty()) NextLaunch(wake(want_room_));
  if (!want_slot_.empty()) LaunchOrWait(wake(want_slot_));
}

// Submission.

int32_t Simulator::AddWork(const SimReady& ready, int32_t pool, int32_t place) {
  const auto span = static_cast<int32_t>(work_.size());
  Work& work = work_.emplace_back(Work{ready.node, ready.run, ready.slot, pool, place, ready.wait, ready.waited_for,
                                       ready.since, clock_.now(), clock_.now()});
  if (pool < 0) return span;
  int32_t& last = resources_.PlacesOf(pool).LastAt(place);
  if (work.begin > work.ready) work.wait = SimWait::kResource, work.waited_for = last;
  last = span;
  return span;
}

void Simulator::Submit(const SimReady& ready, int32_t pool, int32_t place) {
  Slot& slot = At(ready.slot);
  const SimSegment& segment = slot.submission.next();
  slot.submission.BeginNext(clock_.now());
  const int32_t span = AddWork(ready, pool, place);
  for (const SimSegment::Submission& submission : segment.nodes) {
    ArriveAt(clock_.now() + submission.after, ready.slot, submission.node, SimWait::kSubmission, span);
  }
  clock_.Add(clock_.now() + segment.cost, {.kind = SimEvent::Kind::kEnd, .a = span});
}

bool Simulator::CanSubmit(const Slot& slot) const {
  const SimSubmission& submission = slot.submission;
  return !submission.is_done() && slot.host_steps[submission.parts()] == 0 &&
         states_.MaySubmit(slot.run, submission.next());
}

// The run has submitted all that touches some States.
void Simulator::NoteTouches(int32_t span) {
  for (const int32_t s : program_.segments[At(WorkOf(span).slot).submission.parts() - 1].last_of) {
    states_.NoteSubmitted(s);
    to_let_go_.emplace_back(s, span);
  }
}

// The run that waits for this goes on, if there is one: by the completion thread, which counts as always free.
void Simulator::SubmitAfterState(int32_t state, int32_t span) {
  const int32_t run = states_.submitted(state);
  const auto at = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& of) { return of.run == run; });
  if (at == slots_.end() || at->submission.is_going_on() || !CanSubmit(*at)) return;
  const std::vector<int32_t>& awaited = at->submission.next().first_of;
  if (std::find(awaited.begin(), awaited.end(), state) == awaited.end()) return;
  Submit({.since = clock_.now(),
          .run = run,
          .slot = static_cast<int32_t>(at - slots_.begin()),
          .wait = SimWait::kState,
          .waited_for = span},
         -1, 0);
}

// Whoever has submitted a segment gives host steps to the workers, and goes on with the next segment if that can be
// submitted. That host steps have ended meanwhile it sees only after the former. Host steps with nothing to do are over
// at once.
void Simulator::EndSubmission(int32_t span) {
  const Work ended = WorkOf(span);
  WorkOf(span).end = clock_.now();
  Slot& slot = At(ended.slot);
  const bool goes_on = !slot.submission.is_done() && slot.submission.next().goes_on;
  if (!goes_on || !CanSubmit(slot)) PostSteps(ended.slot, span, SimSubmission::Which::kKnown);
  if (!CanSubmit(slot)) PostSteps(ended.slot, span, SimSubmission::Which::kAll);
  if (CanSubmit(slot)) {
    return Submit(
        {.since = clock_.now(), .run = ended.run, .slot = ended.slot, .wait = SimWait::kSubmission, .waited_for = span},
        ended.pool, ended.place);
  }
  slot.submission.Pause();
  EndRunIfDone(ended.slot, span);
  if (ended.pool == SimProgram::kLaunchers) {
    launchers_[static_cast<size_t>(ended.place)] = {SimWait::kApplication, span};
    return NextLaunch(ended.place);
  }
  if (ended.pool >= 0) resources_.Release(ended.pool, ended.place);
}

// `submission`: the span of one that has just ended, which some steps may have waited for; -1: none.
void Simulator::PostSteps(int32_t slot, int32_t submission, SimSubmission::Which which) {
  Slot& of = At(slot);
  const auto take = [&] { return of.submission.Take(which, clock_.now()); };
  for (std::vector<SimSubmission::Step> steps = take(); !steps.empty(); steps = take()) {
    for (const SimSubmission::Step& step : steps) {
      SimReady ready{.since = clock_.now(),
                     .run = of.run,
                     .slot = slot,
                     .node = step.node,
                     .order = posted_++,
                     .wait = step.wait,
                     .waited_for = step.waited_for};
      if (step.since < clock_.now()) ready.wait = SimWait::kSubmission, ready.waited_for = submission;
      const int32_t pool = program_.pool[static_cast<size_t>(step.node)];
      if (pool >= 0) {
        resources_.Wait(pool, ready);
      } else if (program_.cost[static_cast<size_t>(step.node)] > 0) {
        Begin(ready, pool, 0);
      } else {
        EndNode(AddWork(ready, pool, 0));
      }
    }
  }
}

void Simulator::HandToWorker(int32_t slot) {
  Slot& of = At(slot);
  if (of.submission.is_going_on() || !CanSubmit(of)) return;
  of.submission.AwaitWorker(clock_.now());
  resources_.Wait(SimProgram::kWorkers, {.since = clock_.now(),
                                         .run = of.run,
                                         .slot = slot,
                                         .wait = SimWait::kPredecessor,
                                         .waited_for = of.last_host_step});
}

// Nodes.

void Simulator::Arrive(int32_t slot, int32_t node, SimWait wait, int32_t span) {
  Slot& of = At(slot);
  const bool is_step = node < program_.nodes && program_.on_host[static_cast<size_t>(node)];
  if (const int32_t before = WorkOf(span).node; is_step && before >= 0) {
    of.submission.NoteEnd(node, before, options_.as_graphs, clock_.now());
  }
  if (--of.waits[static_cast<size_t>(node)] > 0) return;
  if (node >= program_.nodes) return PassOn(slot, node, span);
  if (is_step) {
    of.submission.Add({node, wait, span, clock_.now()});
    return to_post_.push_back(slot);
  }
  const SimReady ready{.since = clock_.now(),
                       .run = of.run,
                       .slot = slot,
                       .node = node,
                       .order = node,
                       .wait = wait,
                       .waited_for = span};
  const int32_t pool = program_.pool[static_cast<size_t>(node)];
  if (pool < 0) return Begin(ready, pool, 0);
  resources_.Wait(pool, ready);
}

void Simulator::ArriveAt(SimTicks time, int32_t slot, int32_t node, SimWait wait, int32_t span) {
  clock_.Add(time, {.kind = SimEvent::Kind::kArrive, .wait = wait, .a = slot, .b = node, .c = span});
}

void Simulator::Begin(const SimReady& ready, int32_t pool, int32_t place) {
  const int32_t span = AddWork(ready, pool, place);
  resources_.Begin(pool, span, program_.cost[static_cast<size_t>(ready.node)], clock_.now(), EndAt());
}

void Simulator::EndNode(int32_t span) {
  Work& ended = WorkOf(span);
  ended.end = clock_.now();
  const auto [node, slot, pool, place] = std::array{ended.node, ended.slot, ended.pool, ended.place};
  resources_.End(pool, place, clock_.now(), EndAt());
  --At(slot).nodes;
  if (!program_.on_host[static_cast<size_t>(node)]) At(slot).known = clock_.now() + InTicks(options_.completion_us);
  PassOn(slot, node, span);
  EndHostStep(slot, node, span);
  for (const int32_t state : program_.StatesOf(node)) Touch(slot, node, state, span);
  EndRunIfDone(slot, span);
}

void Simulator::PassOn(int32_t slot, int32_t node, int32_t span) {
  for (const SimEdge& edge : program_.Successors(node)) {
    if (edge.latency == 0) {
      Arrive(slot, edge.to, edge.wait, span);
    } else {
      ArriveAt(clock_.now() + edge.latency, slot, edge.to, edge.wait, span);
    }
  }
}

void Simulator::EndHostStep(int32_t slot, int32_t node, int32_t span) {
  Slot& of = At(slot);
  for (const int32_t segment : program_.SegmentsAfter(node)) {
    if (--of.host_steps[static_cast<size_t>(segment)] > 0) continue;
    of.last_host_step = span;
    to_submit_.push_back(slot);
  }
}

// Lets the nodes of the next run touch the State, if this was the run's last that does.
void Simulator::Touch(int32_t slot, int32_t node, int32_t state, int32_t span) {
  states_.NoteTouch(state, node, clock_.now());
  if (--At(slot).to_touch[static_cast<size_t>(state)] > 0) return;
  const int32_t next = states_.Release(state, span);
  if (next >= static_cast<int32_t>(launched_.size())) return;
  const auto at = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& of) { return of.run == next; });
  const auto to = static_cast<int32_t>(at - slots_.begin());
  for (const int32_t n : states_.NodesOf(state)) {
    const SimTicks free = states_.FreeAt(state, n);
    free <= clock_.now() ? Arrive(to, n, SimWait::kState, span) : ArriveAt(free, to, n, SimWait::kState, span);
  }
}

void Simulator::EndRunIfDone(int32_t slot, int32_t span) {
  const Slot& of = At(slot);
  if (of.nodes > 0 || of.submission.is_going_on() || !of.submission.is_done()) return;
  clock_.Add(std::max(clock_.now(), of.known), {.kind = SimEvent::Kind::kRunEnd, .a = slot, .c = span});
}

}  // namespace penstock::graph
