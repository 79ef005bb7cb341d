// SimClock: the events of a simulation, in order of time and, among equals, in the order in which they were added.
// Internal to graph/simulate and src/driver/sim.
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "graph/simulate/sim_program.h"

namespace penstock::graph {

// `Event` has a time and a number, which the clock gives it.
template <class Event>
class SimClock {
 public:
  void Add(SimTicks time, Event event) {
    event.time = time;
    event.number = added_++;
    events_.push(event);
  }
  // Whether there is an event at the current time.
  bool IsDue() const { return !events_.empty() && events_.top().time == now_; }
  // Takes the next event at the current time.
  Event Take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }
  // Goes on to the time of the next event; false: there is none.
  bool Advance() {
    if (!events_.empty()) now_ = events_.top().time;
    return !events_.empty();
  }
  SimTicks now() const { return now_; }
  int64_t added() const { return added_; }

 private:
  struct Later {
    bool operator()(const Event& x, const Event& y) const {
      return x.time != y.time ? x.time > y.time : x.number > y.number;
    }
  };

  SimTicks now_ = 0;
  int64_t added_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
};

}  // namespace penstock::graph
