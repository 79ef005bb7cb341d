#include "graph/passes/contents_map.h"

#include <algorithm>
#include <utility>

#include "graph/conflicts/boxes.h"

namespace penstock::graph {
namespace {

constexpr size_t kLeastToSplit = 32;

// Whether two disjoint regions make one box together; then `a` becomes that.
bool Extend(Region& a, const Region& b) {
  size_t differing = kMaxRank;
  for (size_t d = 0; d < kMaxRank; ++d) {
    if (a.lo[d] == b.lo[d] && a.hi[d] == b.hi[d]) continue;
    if (differing < kMaxRank) return false;
    differing = d;
  }
  if (differing == kMaxRank || (a.hi[differing] != b.lo[differing] && b.hi[differing] != a.lo[differing])) return false;
  a.lo[differing] = std::min(a.lo[differing], b.lo[differing]);
  a.hi[differing] = std::max(a.hi[differing], b.hi[differing]);
  return true;
}

// Whether they overlap or have a face, edge or corner in common.
bool Touch(const Region& a, const Region& b) {
  bool all = true;
  for (size_t d = 0; d < kMaxRank; ++d) all = all && a.lo[d] <= b.hi[d] && b.lo[d] <= a.hi[d];
  return all;
}

// The smallest box around both.
Region Around(const Region& a, const Region& b) {
  Region around;
  for (size_t d = 0; d < kMaxRank; ++d) {
    around.lo[d] = std::min(a.lo[d], b.lo[d]);
    around.hi[d] = std::max(a.hi[d], b.hi[d]);
  }
  return around;
}
Region Around(const std::vector<Region>& regions) {
  Region around = regions.front();
  for (const Region& region : regions) around = Around(around, region);
  return around;
}

// Joins neighbours along dimension `d`. True if there were any.
bool JoinAlong(size_t d, std::vector<Region>& regions) {
  const auto before = [d](const Region& a, const Region& b) {
    for (size_t i = 0; i < kMaxRank; ++i) {
      if (i == d) continue;
      if (a.lo[i] != b.lo[i]) return a.lo[i] < b.lo[i];
      if (a.hi[i] != b.hi[i]) return a.hi[i] < b.hi[i];
    }
    return a.lo[d] < b.lo[d];
  };
  std::sort(regions.begin(), regions.end(), before);
  const size_t count = regions.size();
  size_t last = 0;
  for (size_t i = 1; i < count; ++i) {
    if (!Extend(regions[last], regions[i])) regions[++last] = regions[i];
  }
  regions.resize(last + 1);
  return last + 1 < count;
}

// The smallest box around them, if they fill it.
bool JoinToBox(std::vector<Region>& regions) {
  const Region all = Around(regions);
  int64_t bytes = 0;
  for (const Region& region : regions) bytes += BytesOf(region);
  if (bytes != BytesOf(all)) return false;
  regions.assign(1, all);
  return true;
}

}  // namespace

void Join(std::vector<Region>& regions) {
  if (regions.size() < 2 || JoinToBox(regions)) return;
  for (bool joined = true; joined && regions.size() > 1;) {
    joined = false;
    for (size_t d = kMaxRank; d > 0; --d) joined = JoinAlong(d - 1, regions) || joined;
  }
  std::sort(regions.begin(), regions.end());
}

template <class F>
bool RegionSet::AnyOverlapping(const Region& region, F&& f) const {
  for (const Chunk& chunk : chunks_) {
    if (!Overlap(chunk.bound, region)) continue;
    for (const Region& r : chunk.regions) {
      if (Overlap(r, region) && f(r)) return true;
    }
  }
  return false;
}

// A region that is added joins neighbours until none is left.
void RegionSet::Add(const Region& region) {
  if (IsEmpty(region) || AnyOverlapping(region, [&](const Region& r) { return Covers(r, region); })) return;
  Remove(region);
  Region added = region;
  while (JoinNeighbour(added)) {
  }
  Insert(added);
}

bool RegionSet::JoinNeighbour(Region& region) {
  for (size_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    if (!Touch(chunk.bound, region)) continue;
    for (Region& r : chunk.regions) {
      if (!Extend(region, r)) continue;
      r = chunk.regions.back();
      chunk.regions.pop_back();
      --size_;
      Shrink(c);
      return true;
    }
  }
  return false;
}

// Into the chunk that grows least by it.
void RegionSet::Insert(const Region& region) {
  if (chunks_.empty()) chunks_.push_back({region, {}});
  size_t best = 0;
  int64_t least = INT64_MAX;
  for (size_t c = 0; c < chunks_.size() && least > 0; ++c) {
    const int64_t growth = BytesOf(Around(chunks_[c].bound, region)) - BytesOf(chunks_[c].bound);
    if (growth >= least) continue;
    least = growth;
    best = c;
  }
  chunks_[best].bound = Around(chunks_[best].bound, region);
  chunks_[best].regions.push_back(region);
  ++size_;
  // About as many chunks as there are regions in one.
  const size_t in_chunk = chunks_[best].regions.size();
  if (in_chunk > kLeastToSplit && in_chunk * in_chunk > 2 * size_) Split(best);
}

// In halves, along the longest side.
void RegionSet::Split(size_t chunk) {
  std::vector<Region>& low = chunks_[chunk].regions;
  const Region bound = chunks_[chunk].bound;
  size_t longest = 0;
  for (size_t d = 1; d < kMaxRank; ++d) {
    if (bound.hi[d] - bound.lo[d] > bound.hi[longest] - bound.lo[longest]) longest = d;
  }
  const auto half = low.begin() + static_cast<std::ptrdiff_t>(low.size() / 2);
  std::nth_element(low.begin(), half, low.end(), [longest](const Region& a, const Region& b) {
    return a.lo[longest] != b.lo[longest] ? a.lo[longest] < b.lo[longest] : a < b;
  });
  Chunk high{{}, {half, low.end()}};
  low.erase(half, low.end());
  high.bound = Around(high.regions);
  chunks_[chunk].bound = Around(low);
  chunks_.push_back(std::move(high));
}

// After some regions of the chunk have gone.
void RegionSet::Shrink(size_t chunk) {
  if (!chunks_[chunk].regions.empty()) {
    chunks_[chunk].bound = Around(chunks_[chunk].regions);
    return;
  }
  std::swap(chunks_[chunk], chunks_.back());
  chunks_.pop_back();
}

void RegionSet::Remove(const Region& region) {
  std::vector<Region> cut;
  for (size_t c = chunks_.size(); c > 0; --c) {
    Chunk& chunk = chunks_[c - 1];
    if (!Overlap(chunk.bound, region)) continue;
    const size_t gone = std::erase_if(chunk.regions, [&](const Region& r) {
      if (!Overlap(r, region)) return false;
      Subtract(r, region, cut);
      return true;
    });
    size_ -= gone;
    if (gone > 0) Shrink(c - 1);
  }
  for (const Region& part : cut) Insert(part);
}

bool RegionSet::Overlaps(const Region& region) const {
  return AnyOverlapping(region, [](const Region&) { return true; });
}

bool RegionSet::Holds(const Region& region) const {
  int64_t bytes = 0;
  AnyOverlapping(region, [&](const Region& r) {
    bytes += BytesOf(Common(r, region));
    return false;
  });
  return bytes == BytesOf(region);
}

void RegionSet::AppendOverlapping(const Region& region, std::vector<Region>& out) const {
  AnyOverlapping(region, [&](const Region& r) {
    out.push_back(r);
    return false;
  });
}

void RegionSet::AppendCommon(const Region& region, std::vector<Region>& out) const {
  AnyOverlapping(region, [&](const Region& r) {
    out.push_back(Common(r, region));
    return false;
  });
}

void RegionSet::AppendMissing(const Region& region, std::vector<Region>& out) const {
  std::vector<Region> common;
  AppendCommon(region, common);
  AppendUncovered(region, std::move(common), out);
}

void RegionSet::AppendAll(std::vector<Region>& out) const {
  for (const Chunk& chunk : chunks_) out.insert(out.end(), chunk.regions.begin(), chunk.regions.end());
}

ContentsMap::ContentsMap(int32_t places, const Region& whole) : at_(static_cast<size_t>(places)) {
  for (RegionSet& set : at_) set.Add(whole);
}

void ContentsMap::Write(const Region& region, int32_t place) {
  for (int32_t p = 0; p < places(); ++p) {
    if (p != place) at_[static_cast<size_t>(p)].Remove(region);
  }
  at_[static_cast<size_t>(place)].Add(region);
  written_.Add(region);
}

void ContentsMap::Forget(const Region& region) {
  for (RegionSet& set : at_) set.Add(region);
  written_.Remove(region);
}

}  // namespace penstock::graph
