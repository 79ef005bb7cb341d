// ContentsMap: for one buffer that is accessed in parts, which elements are current at which of its places.
//
// A place holds current elements once a node has written them there, or they have been copied there, until a node
// writes them elsewhere. Bytes that no node has written yet count as current everywhere, so no copy moves them.
// Places are numbered by the caller.
//
// RegionSet: a set of bytes as disjoint regions. Regions that make one box together are kept as one, so a buffer whose
// tiles are written one after another is soon one region again.
//
// Cost: a change or a look takes about the square root of the number of regions, if these are like tiles.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/plan/region.h"

namespace penstock::graph {

// The regions are kept in chunks of some that lie near each other (an R-tree of two levels: Guttman 1984).
class RegionSet {
 public:
  bool empty() const { return chunks_.empty(); }
  void Add(const Region& region);
  void Remove(const Region& region);
  bool Overlaps(const Region& region) const;
  bool Holds(const Region& region) const;  // all of it
  // Appends the parts of `region` that the set has, and those that it lacks; these are disjoint.
  void AppendCommon(const Region& region, std::vector<Region>& out) const;
  void AppendMissing(const Region& region, std::vector<Region>& out) const;
  // Appends the set's regions, all or those that overlap `region`.
  void AppendAll(std::vector<Region>& out) const;
  void AppendOverlapping(const Region& region, std::vector<Region>& out) const;

 private:
  struct Chunk {
    Region bound;
    std::vector<Region> regions;  // some
  };
  // Calls `f` with each region that overlaps `region` until that returns true; whether it did.
  template <class F>
  bool AnyOverlapping(const Region& region, F&& f) const;
  // Takes out a region that makes one box together with `region`, which becomes that; false if there is none.
  bool JoinNeighbour(Region& region);
  void Insert(const Region& region);
  void Split(size_t chunk);
  void Shrink(size_t chunk);

  std::vector<Chunk> chunks_;
  size_t size_ = 0;  // regions in all
};

// Joins disjoint regions that make one box together, as far as that goes without cutting any. The order of the result
// is that of the regions' lower ends.
void Join(std::vector<Region>& regions);

class ContentsMap {
 public:
  // Nothing of `whole` is written.
  ContentsMap(int32_t places, const Region& whole);

  const RegionSet& at(int32_t place) const { return at_[static_cast<size_t>(place)]; }
  int32_t places() const { return static_cast<int32_t>(at_.size()); }
  // The elements are current at `place`, and nowhere else.
  void Write(const Region& region, int32_t place);
  // They are current at `place` too.
  void Copy(const Region& region, int32_t place) { at_[static_cast<size_t>(place)].Add(region); }
  // They count as not written.
  void Forget(const Region& region);

  // Whether some of the region is written.
  bool Anywhere(const Region& region) const { return written_.Overlaps(region); }

 private:
  std::vector<RegionSet> at_;
  RegionSet written_;
};

}  // namespace penstock::graph
