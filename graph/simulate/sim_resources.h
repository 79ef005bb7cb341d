// SimResources: the places of all resources while they are simulated: what begins where once there is room, and how the
// two copy engines of a device slow each other down. Internal to graph/simulate and src/driver/sim.
//
// `end_at(time, work, number)` is told when work will end. A later call for the same work makes earlier ones void
// (IsVoid).
//
// Threads: single-threaded.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/simulate/sim_places.h"

namespace penstock::graph {

class SimResources {
 public:
  // Pools have the numbers 0, 1, ... in the order in which they come.
  void Add(const SimPool& pool) {
    places_.emplace_back(pool);
    opposite_.push_back(pool.opposite);
  }
  SimPlaces& PlacesOf(int32_t pool) { return places_[static_cast<size_t>(pool)]; }

  void Wait(int32_t pool, const SimReady& ready) {
    PlacesOf(pool).Wait(ready);
    changed_.push_back(pool);
  }
  // Calls `begin(ready, pool, place)` for all that finds a place.
  template <class F>
  void TakePlaces(F&& begin) {
    for (const int32_t pool : std::exchange(changed_, {})) {
      while (PlacesOf(pool).CanBegin()) {
        const SimReady ready = PlacesOf(pool).Next();
        begin(ready, pool, PlacesOf(pool).Take());
      }
    }
  }

  // Work of this cost begins in a place of the pool; -1: in none.
  template <class F>
  void Begin(int32_t pool, int32_t work, SimTicks cost, SimTicks now, F&& end_at) {
    const int32_t opposite = OppositeOf(pool);
    if (opposite < 0) return end_at(now + cost, work, -1);
    PlacesOf(pool).BeginCopy(work, cost, now);
    GoOnCopying(pool, now, end_at);
    GoOnCopying(opposite, now, end_at);
  }
  bool IsVoid(int32_t pool, int32_t number) { return number >= 0 && PlacesOf(pool).ends() != number; }
  // The work that has this place ends.
  template <class F>
  void End(int32_t pool, int32_t place, SimTicks now, F&& end_at) {
    if (pool < 0) return;
    Release(pool, place);
    const int32_t opposite = OppositeOf(pool);
    if (opposite < 0) return;
    PlacesOf(pool).EndCopy();
    GoOnCopying(opposite, now, end_at);
  }
  void Release(int32_t pool, int32_t place) {
    PlacesOf(pool).Release(place);
    changed_.push_back(pool);
  }

 private:
  int32_t OppositeOf(int32_t pool) const { return pool < 0 ? -1 : opposite_[static_cast<size_t>(pool)]; }

  template <class F>
  void GoOnCopying(int32_t pool, SimTicks now, F&& end_at) {
    SimPlaces& engine = PlacesOf(pool);
    if (!engine.is_copying()) return;
    const bool is_slow = PlacesOf(OppositeOf(pool)).is_copying();
    const SimTicks end = engine.GoOn(is_slow, now);
    end_at(end, engine.copy(), engine.ends());
  }

  std::vector<SimPlaces> places_;  // of each pool
  std::vector<int32_t> opposite_;  // of each pool: the other copy engine of its device; -1: none
  std::vector<int32_t> changed_;  // pools where work may begin
};

}  // namespace penstock::graph
