// LaterReads: what the nodes of a place will read of what one node has written, until some node writes the buffer
// again.
//
// All of it exists once the writer has ended, so the first reader at a place fetches it for those that follow: one copy
// instead of one for each. Of initial contents first_reads.h says the same.
//
// Ownership: borrows the stages.
// Threads:   single-threaded. The nodes come in the order of Checked::sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/passes/buffer_places.h"
#include "graph/passes/contents_map.h"
#include "graph/passes/draft.h"

namespace penstock::graph {

class LaterReads {
 public:
  LaterReads(const Records& records, const Checked& checked, const Placed& placed);

  // A node has written the region.
  void Write(BufferId b, const Region& region);
  // Node `n` lacks `parts` at a place, which has `there`. Adds what nodes after it lack there of the last write, if
  // some of the parts are of it too.
  void Widen(BufferId b, DeclId n, int32_t place, const RegionSet& there, std::vector<Region>& parts);

 private:
  struct Access {
    DeclId node{};
    int32_t place = 0;  // where it is read
    int32_t box = 0;
    bool reads = false, writes = false;
  };
  struct Entry {
    std::vector<Access> accesses;  // in the order of the nodes
    size_t next = 0;  // the first that may come after the node at hand
    Region last{};  // what the last node wrote
    int32_t writes = 0;
    std::vector<int32_t> widened;  // by place: Entry::writes when it was last looked at
  };
  Entry* EntryOf(BufferId b) {
    return entry_of_.empty() || entry_of_[b] < 0 ? nullptr : &entries_[static_cast<size_t>(entry_of_[b])];
  }
  void AddNode(DeclId n);

  const Records& records_;
  const Placed& placed_;
  const BufferPlaces places_;
  Table<BufferId, int32_t> entry_of_;  // of buffers accessed in parts; empty: there are none
  std::vector<Entry> entries_;
};

}  // namespace penstock::graph
