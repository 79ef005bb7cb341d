// SimStates: the order in which the runs of a simulation touch the States that the graph writes. Internal to
// graph/simulate.
//
// A run submits nothing from its first touch of a State on before the run before has submitted its last one, and each
// of its nodes that touch it begins after all of that run's. Runs count from 0, in the order of their launches.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/simulate/sim_program.h"

namespace penstock::graph {

class SimStates {
 public:
  // `crossing`: from a touch on one device until the next run may touch the State on another.
  SimStates(const SimProgram& program, const std::vector<std::vector<int32_t>>& touches, SimTicks crossing)
      : program_(program), touches_(touches), crossing_(crossing), states_(touches.size()) {}

  int32_t count() const { return static_cast<int32_t>(states_.size()); }
  // The nodes that touch it.
  const std::vector<int32_t>& NodesOf(int32_t state) const { return touches_[static_cast<size_t>(state)]; }

  // Submission: a run has submitted its last touch; may it submit a segment?
  void NoteSubmitted(int32_t state) { ++At(state).submitted; }
  int32_t submitted(int32_t state) const { return At(state).submitted; }
  bool MaySubmit(int32_t run, const SimSegment& segment) const {
    return std::all_of(segment.first_of.begin(), segment.first_of.end(),
                       [&](int32_t s) { return At(s).submitted >= run; });
  }

  // A node that touches the State ends.
  void NoteTouch(int32_t state, int32_t node, SimTicks now) {
    const int32_t device = program_.device[static_cast<size_t>(node)];
    if (device < 0) return;
    std::vector<SimTicks>& last = At(state).last_touch;
    if (last.size() <= static_cast<size_t>(device)) last.resize(static_cast<size_t>(device) + 1, -1);
    last[static_cast<size_t>(device)] = now;
  }
  // All of a run's have ended, the last with this span. Returns the run that comes next.
  int32_t Release(int32_t state, int32_t span) {
    At(state).last_span = span;
    return ++At(state).runs;
  }
  int32_t runs(int32_t state) const { return At(state).runs; }  // that have touched it with all their nodes
  int32_t last_span(int32_t state) const { return At(state).last_span; }
  // When a node of the next run may begin, if all of the run before have ended.
  SimTicks FreeAt(int32_t state, int32_t node) const {
    const std::vector<SimTicks>& last = At(state).last_touch;
    SimTicks free = 0;
    for (int32_t d = 0; d < static_cast<int32_t>(last.size()); ++d) {
      const SimTicks ended = last[static_cast<size_t>(d)];
      if (ended < 0) continue;
      free = std::max(free, ended + (d == program_.device[static_cast<size_t>(node)] ? 0 : crossing_));
    }
    return free;
  }

 private:
  struct State {
    int32_t submitted = 0, runs = 0;  // runs that have submitted, or ended, all of their touches
    int32_t last_span = -1;
    std::vector<SimTicks> last_touch{};  // of each device; -1: none
  };
  State& At(int32_t state) { return states_[static_cast<size_t>(state)]; }
  const State& At(int32_t state) const { return states_[static_cast<size_t>(state)]; }

  const SimProgram& program_;
  const std::vector<std::vector<int32_t>>& touches_;
  const SimTicks crossing_;
  std::vector<State> states_;
};

}  // namespace penstock::graph
