// SimPlaces: one resource while it is simulated: which of its places are free, what waits for one, and for a copy
// engine, how far its copy has come. Internal to graph/simulate and src/driver/sim.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "graph/simulate/sim_program.h"

namespace penstock::graph {

// Work that waits for a place, and what it waited for until then. src/driver/sim numbers its work by `slot`.
struct SimReady {
  SimTicks since = 0;
  int32_t run = 0, slot = 0;
  int32_t node = -1;  // -1: a submission
  int32_t order = -1;  // among work of one run that is ready at the same time
  SimWait wait{};
  int32_t waited_for = -1;
};

class SimPlaces {
 public:
  explicit SimPlaces(const SimPool& pool) : slowdown_(pool.slowdown), last_(static_cast<size_t>(pool.places), -1) {
    for (int32_t p = 0; p < pool.places; ++p) free_.push(p);
  }

  void Wait(const SimReady& ready) { waiting_.push(ready); }
  bool CanBegin() const { return !waiting_.empty() && !free_.empty(); }
  // What is next: a submission, which a worker does before host steps; then what has been ready for longest, and among
  // equals that of the earlier run, in its order.
  SimReady Next() {
    const SimReady ready = waiting_.top();
    waiting_.pop();
    return ready;
  }
  int32_t Take() {
    const int32_t place = free_.top();
    free_.pop();
    return place;
  }
  void Release(int32_t place) { free_.push(place); }
  // The span that had a place last; -1: none.
  int32_t& LastAt(int32_t place) { return last_[static_cast<size_t>(place)]; }

  // A copy engine's copy, which goes on more slowly while the other direction is at work.
  bool is_copying() const { return copy_ >= 0; }
  int32_t copy() const { return copy_; }
  int32_t ends() const { return ends_; }
  void BeginCopy(int32_t span, SimTicks cost, SimTicks now) { copy_ = span, left_ = cost, since_ = now, pace_ = 1; }
  void EndCopy() { copy_ = -1; }
  // Goes on at the pace that `is_slow` says; returns when the copy will end, unless that changes.
  SimTicks GoOn(bool is_slow, SimTicks now) {
    left_ = std::max<SimTicks>(0, left_ - std::llround(static_cast<double>(now - since_) / pace_));
    since_ = now;
    pace_ = is_slow ? slowdown_ : 1;
    ++ends_;
    return now + std::llround(static_cast<double>(left_) * pace_);
  }

 private:
  struct Later {
    bool operator()(const SimReady& x, const SimReady& y) const { return Key(x) > Key(y); }
    static std::tuple<bool, SimTicks, int32_t, int32_t> Key(const SimReady& r) {
      return {r.node >= 0, r.since, r.run, r.order};
    }
  };

  double slowdown_;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free_;
  std::vector<int32_t> last_;
  std::priority_queue<SimReady, std::vector<SimReady>, Later> waiting_;
  int32_t copy_ = -1;  // the span; -1: none
  SimTicks left_ = 0, since_ = 0;  // of its cost, at a time
  double pace_ = 1;
  int32_t ends_ = 0;  // how often the end of a copy has been foreseen: all but the last are void
};

}  // namespace penstock::graph
