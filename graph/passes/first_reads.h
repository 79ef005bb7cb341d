// FirstReads: which parts of a buffer's initial contents the nodes of each device need before any node writes them.
//
// A device that needs parts which make one box together gets them by one copy, when the first is needed: fewer copies,
// and no more bytes.
//
// Ownership: borrows the stages.
// Threads:   single-threaded.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/passes/buffer_places.h"
#include "graph/passes/contents_map.h"
#include "graph/passes/draft.h"

namespace penstock::graph {

class FirstReads {
 public:
  FirstReads(const Records& records, const Checked& checked, const Placed& placed);

  // A node writes the region.
  void Write(BufferId b, const Region& region) {
    if (entries_.empty()) return;
    if (const int32_t entry = EntryOf(b); entry >= 0) entries_[static_cast<size_t>(entry)].initial.Remove(region);
  }
  // Adds to `parts`, which the device place lacks and needs, what it will also need of the boxes that these are in.
  // Each box counts once: what the place lacks of it later has been written since.
  void Widen(BufferId b, int32_t place, const RegionSet& there, std::vector<Region>& parts);

 private:
  struct Entry {
    RegionSet initial;  // what no node has written yet
    std::vector<RegionSet> needed;  // by device
  };
  int32_t EntryOf(BufferId b) const { return entry_of_.empty() ? -1 : entry_of_[b]; }
  void AddNode(DeclId n);

  const Records& records_;
  const Placed& placed_;
  const BufferPlaces places_;
  Table<BufferId, int32_t> entry_of_;  // of buffers accessed in parts that have contents; empty: there are none
  std::vector<Entry> entries_;
};

}  // namespace penstock::graph
