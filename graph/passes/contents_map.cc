#include "graph/passes/contents_map.h"

#include <algorithm>

namespace penstock::graph {
namespace {

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

// Appends the parts of `region` outside all of `by`. `cut` is scratch.
void SubtractAll(const Region& region, const std::vector<Region>& by, std::vector<Region>& out) {
  std::vector<Region> left = {region}, cut;
  for (const Region& b : by) {
    if (!Overlap(region, b)) continue;
    cut.clear();
    for (const Region& part : left) {
      if (Overlap(part, b)) {
        Subtract(part, b, cut);
      } else {
        cut.push_back(part);
      }
    }
    left.swap(cut);
    if (left.empty()) return;
  }
  out.insert(out.end(), left.begin(), left.end());
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
  Region all = regions.front();
  int64_t bytes = 0;
  for (const Region& region : regions) {
    for (size_t d = 0; d < kMaxRank; ++d) {
      all.lo[d] = std::min(all.lo[d], region.lo[d]);
      all.hi[d] = std::max(all.hi[d], region.hi[d]);
    }
    bytes += BytesOf(region);
  }
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

// A region that is added joins neighbours until none is left.
void RegionSet::Add(const Region& region) {
  if (IsEmpty(region)) return;
  for (const Region& r : regions_) {
    if (Covers(r, region)) return;
  }
  Remove(region);
  Region added = region;
  for (size_t i = 0; i < regions_.size();) {
    if (!Extend(added, regions_[i])) {
      ++i;
      continue;
    }
    regions_[i] = regions_.back();
    regions_.pop_back();
    i = 0;
  }
  regions_.push_back(added);
}

void RegionSet::Remove(const Region& region) {
  size_t kept = 0;
  cut_.clear();
  for (const Region& r : regions_) {
    if (Overlap(r, region)) {
      Subtract(r, region, cut_);
    } else {
      regions_[kept++] = r;
    }
  }
  regions_.resize(kept);
  regions_.insert(regions_.end(), cut_.begin(), cut_.end());
}

bool RegionSet::Overlaps(const Region& region) const {
  return std::any_of(regions_.begin(), regions_.end(), [&](const Region& r) { return Overlap(r, region); });
}

bool RegionSet::Holds(const Region& region) const {
  int64_t bytes = 0;
  for (const Region& r : regions_) {
    if (Overlap(r, region)) bytes += BytesOf(Common(r, region));
  }
  return bytes == BytesOf(region);
}

void RegionSet::AppendCommon(const Region& region, std::vector<Region>& out) const {
  for (const Region& r : regions_) {
    if (Overlap(r, region)) out.push_back(Common(r, region));
  }
}

void RegionSet::AppendMissing(const Region& region, std::vector<Region>& out) const {
  if (!IsEmpty(region)) SubtractAll(region, regions_, out);
}

void ContentsMap::Write(const Region& region, int32_t place) {
  for (int32_t p = 0; p < places(); ++p) {
    if (p != place) at_[static_cast<size_t>(p)].Remove(region);
  }
  at_[static_cast<size_t>(place)].Add(region);
}

void ContentsMap::Forget(const Region& region) {
  for (RegionSet& set : at_) set.Remove(region);
}

bool ContentsMap::Anywhere(const Region& region) const {
  return std::any_of(at_.begin(), at_.end(), [&](const RegionSet& set) { return set.Overlaps(region); });
}

bool ContentsMap::HoldsAll(const Region& region, int32_t place) const {
  std::vector<Region> missing;
  at(place).AppendMissing(region, missing);
  return std::none_of(missing.begin(), missing.end(), [&](const Region& r) { return Anywhere(r); });
}

}  // namespace penstock::graph
