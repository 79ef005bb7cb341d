// Free lists of slabs. See slab_list.h.
#include "src/memory/slab_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::memory {

void SlabList::Add(std::byte* base, size_t bytes, int node, TimePoint now) {
  auto place = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& slab) { return slab.base == nullptr; });
  if (place == slabs_.end()) place = slabs_.insert(place, Slab());
  *place = {base, bytes, node, now, {{0, bytes}}};
}

SlabList::Place SlabList::Take(size_t bytes, int node) {
  for (size_t s = 0; s < slabs_.size(); ++s) {
    if (node >= 0 && slabs_[s].node != node) continue;
    std::map<size_t, size_t>& free = slabs_[s].free;
    const auto hole = std::find_if(free.begin(), free.end(), [&](const auto& h) { return h.second >= bytes; });
    if (hole == free.end()) continue;
    const auto [offset, room] = *hole;
    free.erase(hole);
    if (room > bytes) free.emplace(offset + bytes, room - bytes);
    return {s, slabs_[s].base + offset};
  }
  return {};
}

bool SlabList::Return(Place place, size_t bytes, TimePoint now) {
  Slab& slab = slabs_[place.slab];
  size_t begin = place.data - slab.base, end = begin + bytes;
  auto after = slab.free.lower_bound(begin);
  if (after != slab.free.end() && after->first == end) {
    end += after->second;
    after = slab.free.erase(after);
  }
  if (after != slab.free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      slab.free.erase(before);
    }
  }
  slab.free.emplace_hint(after, begin, end - begin);
  if (slab.idle()) slab.idle_since = now;
  return slab.idle();
}

// The idle slabs, except the first on each node that is small enough to be kept.
std::vector<size_t> SlabList::Spare(size_t keep_bytes) const {
  std::vector<size_t> spare;
  std::vector<int> kept;  // nodes
  for (size_t s = 0; s < slabs_.size(); ++s) {
    if (!slabs_[s].idle()) continue;
    if (slabs_[s].bytes <= keep_bytes && std::find(kept.begin(), kept.end(), slabs_[s].node) == kept.end()) {
      kept.push_back(slabs_[s].node);
    } else {
      spare.push_back(s);
    }
  }
  return spare;
}

std::vector<Slab> SlabList::TakeIdle(TimePoint since, size_t keep_bytes) {
  std::vector<Slab> taken;
  for (const size_t s : Spare(keep_bytes)) {
    if (slabs_[s].idle_since <= since) taken.push_back(std::exchange(slabs_[s], Slab()));
  }
  return taken;
}

TimePoint SlabList::LastIdle(size_t keep_bytes) const {
  const std::vector<size_t> spare = Spare(keep_bytes);
  if (spare.empty()) return TimePoint::max();
  TimePoint last = TimePoint::min();
  for (const size_t s : spare) last = std::max(last, slabs_[s].idle_since);
  return last;
}

size_t SlabList::FreeOn(int node) const {
  size_t bytes = 0;
  for (const Slab& slab : slabs_) {
    if (node >= 0 && slab.node != node) continue;
    for (const auto& [offset, room] : slab.free) bytes += room;
  }
  return bytes;
}

size_t SlabList::LargestFree() const {
  size_t largest = 0;
  for (const Slab& slab : slabs_) {
    for (const auto& [offset, room] : slab.free) largest = std::max(largest, room);
  }
  return largest;
}

size_t SlabList::size() const {
  return std::count_if(slabs_.begin(), slabs_.end(), [](const Slab& slab) { return slab.base != nullptr; });
}

}  // namespace penstock::memory
