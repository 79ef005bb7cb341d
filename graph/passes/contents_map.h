// ContentsMap: for one buffer that is accessed in parts, which elements are current at which of its places.
//
// A place holds current elements once a node has written them there, or they have been copied there, until a node
// writes them elsewhere. What no place holds has not been written yet. Places are numbered by the caller.
//
// RegionSet: a set of bytes as disjoint regions. Regions that make one box together are kept as one, so a buffer whose
// tiles are written one after another is soon one region again.
//
// Cost: linear in the regions of a set. A set has at most as many as there were changes that did not join.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/plan/region.h"

namespace penstock::graph {

class RegionSet {
 public:
  bool empty() const { return regions_.empty(); }
  const std::vector<Region>& regions() const { return regions_; }
  void Add(const Region& region);
  void Remove(const Region& region);
  void Clear() { regions_.clear(); }
  bool Overlaps(const Region& region) const;
  bool Holds(const Region& region) const;  // all of it
  // Appends the parts of `region` that the set has, and those that it lacks; these are disjoint.
  void AppendCommon(const Region& region, std::vector<Region>& out) const;
  void AppendMissing(const Region& region, std::vector<Region>& out) const;

 private:
  std::vector<Region> regions_;
  std::vector<Region> cut_;  // scratch
};

// Joins disjoint regions that make one box together, as far as that goes without cutting any. The order of the result
// is that of the regions' lower ends.
void Join(std::vector<Region>& regions);

class ContentsMap {
 public:
  // Nothing is current anywhere.
  explicit ContentsMap(int32_t places) : at_(static_cast<size_t>(places)) {}

  const RegionSet& at(int32_t place) const { return at_[static_cast<size_t>(place)]; }
  int32_t places() const { return static_cast<int32_t>(at_.size()); }
  // The elements are current at `place`, and nowhere else.
  void Write(const Region& region, int32_t place);
  // They are current at `place` too.
  void Copy(const Region& region, int32_t place) { at_[static_cast<size_t>(place)].Add(region); }
  // They are current nowhere.
  void Forget(const Region& region);

  // Whether some of the region is current somewhere.
  bool Anywhere(const Region& region) const;
  // Whether `place` has all of the region that is current somewhere.
  bool HoldsAll(const Region& region, int32_t place) const;

 private:
  std::vector<RegionSet> at_;
};

}  // namespace penstock::graph
