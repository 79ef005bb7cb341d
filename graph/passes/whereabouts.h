// Whereabouts: where each buffer's contents are current: as wholes, or by boxes where some node accesses a part and
// contents may have to move. A region is ignored where the whole counts.
//
// Ownership: borrows the stages.
// Threads:   single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/passes/buffer_places.h"
#include "graph/passes/contents_map.h"
#include "graph/passes/draft.h"

namespace penstock::graph {

class Whereabouts {
 public:
  Whereabouts(const Records& records, const Checked& checked, const Placed& placed, const BufferPlaces& places);

  // All of a buffer; of no meaning where the whole counts.
  const Region& Whole(BufferId b) const { return map(b) == nullptr ? kNone : records_.boxes.tree(b)->box(0); }
  const Region& RegionOf(const BoxRef& ref) const {
    return ref.box < 0 || map(ref.base) == nullptr ? kNone : records_.boxes.tree(ref.base)->box(ref.box);
  }
  // Null where the whole counts.
  const ContentsMap* map(BufferId b) const {
    return maps_.empty() || map_of_[b] < 0 ? nullptr : &maps_[static_cast<size_t>(map_of_[b])];
  }

  void Write(BufferId b, const Region& region, int32_t place) {
    if (ContentsMap* const map = MapOf(b)) return map->Write(region, place);
    for (int32_t p = 0; p < places_; ++p) valid_[at(b, p)] = p == place;
  }
  void Copy(BufferId b, const Region& region, int32_t place) {
    if (ContentsMap* const map = MapOf(b)) return map->Copy(region, place);
    valid_[at(b, place)] = 1;
  }
  void Forget(BufferId b, const Region& region) {
    if (ContentsMap* const map = MapOf(b)) map->Forget(region);
  }

  // Where the whole counts: whether the place has it.
  bool IsWhole(BufferId b, int32_t place) const { return valid_[at(b, place)] != 0; }
  // Whether some of the region is written.
  bool Anywhere(BufferId b, const Region& region) const {
    const ContentsMap* const map = this->map(b);
    if (map != nullptr) return map->Anywhere(region);
    return OnHost(b, region) || DeviceWith(b, region) < places_;
  }
  // Whether the place has all of it that is written. False if nothing is.
  bool Holds(BufferId b, const Region& region, int32_t place) const {
    const ContentsMap* const map = this->map(b);
    if (map == nullptr) return IsWhole(b, place);
    return map->Anywhere(region) && map->at(place).Holds(region);
  }
  // Whether the places on the host together have it.
  bool OnHost(BufferId b, const Region& region) const;
  // The first device place that has it; the number of places if none does.
  int32_t DeviceWith(BufferId b, const Region& region) const {
    int32_t place = kFirstDevicePlace;
    while (place < places_ && !Holds(b, region, place)) ++place;
    return place;
  }

 private:
  static constexpr Region kNone{};

  void MakeMaps(const Table<BufferId, bool>& several);
  size_t at(BufferId b, int32_t place) const {
    return static_cast<size_t>(b) * static_cast<size_t>(places_) + static_cast<size_t>(place);
  }
  ContentsMap* MapOf(BufferId b) {
    return maps_.empty() || map_of_[b] < 0 ? nullptr : &maps_[static_cast<size_t>(map_of_[b])];
  }

  const Records& records_;
  const int32_t places_;
  std::vector<uint8_t> valid_;  // (buffer, place)
  Table<BufferId, int32_t> map_of_;
  std::vector<ContentsMap> maps_;  // empty: the whole of every buffer counts
};

}  // namespace penstock::graph
