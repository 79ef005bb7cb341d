#include "graph/passes/whereabouts.h"

#include <algorithm>

namespace penstock::graph {
namespace {

// For buffers that live inside the run, whether nodes at different places use them. A Copy node counts as such.
Table<BufferId, bool> UsedInSeveralPlaces(const Records& records, const Placed& placed) {
  constexpr int32_t kUnused = -2;
  Table<BufferId, int32_t> device(records.buffers.size(), kUnused);
  Table<BufferId, bool> several(records.buffers.size());
  for (const DeclId n : records.nodes.ids()) {
    const bool copy = records.nodes[n].kind == NodeKind::kCopy;
    for (const BoxRef& ref : records.boxes[n]) {
      if (ref.base < 0) continue;
      if (device[ref.base] == kUnused) device[ref.base] = placed.device[n];
      if (copy || device[ref.base] != placed.device[n]) several[ref.base] = true;
    }
  }
  return several;
}

}  // namespace

Whereabouts::Whereabouts(const Records& records, const Checked& checked, const Placed& placed,
                         const BufferPlaces& places)
    : records_(records), places_(places.count()), valid_(records.buffers.size() * static_cast<size_t>(places_)) {
  if (records.boxes.any_tree()) MakeMaps(UsedInSeveralPlaces(records, placed));
  for (const BufferId b : records.buffers.ids()) {
    if (places.has_contents(b, checked)) Write(b, Whole(b), places.home(b));
  }
}

void Whereabouts::MakeMaps(const Table<BufferId, bool>& several) {
  map_of_.assign(records_.buffers.size(), -1);
  for (const BufferId b : records_.buffers.ids()) {
    const bool moves = records_.buffers[b].role != BufferRole::kInternal || several[b];
    if (records_.boxes.tree(b) == nullptr || !moves) continue;
    map_of_[b] = static_cast<int32_t>(maps_.size());
    maps_.emplace_back(places_, records_.boxes.tree(b)->box(0));
  }
}

bool Whereabouts::OnHost(BufferId b, const Region& region) const {
  const ContentsMap* const map = this->map(b);
  if (map == nullptr) return valid_[at(b, kBoundPlace)] != 0 || valid_[at(b, kPinnedPlace)] != 0;
  if (!map->Anywhere(region)) return false;
  std::vector<Region> missing;
  map->at(kBoundPlace).AppendMissing(region, missing);
  const RegionSet& pinned = map->at(kPinnedPlace);
  return std::all_of(missing.begin(), missing.end(), [&](const Region& part) { return pinned.Holds(part); });
}

}  // namespace penstock::graph
