#include "graph/passes/later_reads.h"

#include <algorithm>

namespace penstock::graph {

LaterReads::LaterReads(const Records& records, const Checked& checked, const Placed& placed)
    : records_(records), placed_(placed), places_(records, placed) {
  if (!records.boxes.any_tree()) return;
  entry_of_.assign(records.buffers.size(), -1);
  for (const BufferId b : records.buffers.ids()) {
    if (records.boxes.tree(b) == nullptr) continue;
    entry_of_[b] = static_cast<int32_t>(entries_.size());
    entries_.emplace_back();
    entries_.back().widened.assign(static_cast<size_t>(places_.count()), 0);
  }
  for (const DeclId n : checked.sequence) {
    if (!placed.IsDropped(n)) AddNode(n);
  }
}

// The places that Copy nodes take their data from are not known yet.
void LaterReads::AddNode(DeclId n) {
  const DeviceId device = placed_.device[n];
  const bool copy = records_.nodes[n].kind == NodeKind::kCopy;
  for (const BoxRef& ref : records_.boxes[n]) {
    Entry* const entry = EntryOf(ref.base);
    if (entry == nullptr || ref.box < 0) continue;
    entry->accesses.push_back({.node = n,
                               .place = device < 0 ? places_.host_place(ref.base) : kFirstDevicePlace + device,
                               .box = ref.box,
                               .reads = !copy && !ref.uncopied && places_.NeedsContents(ref),
                               .writes = ref.mode != AccessMode::kRead});
  }
}

void LaterReads::Write(BufferId b, const Region& region) {
  Entry* const entry = EntryOf(b);
  if (entry == nullptr) return;
  entry->last = region;
  ++entry->writes;
}

void LaterReads::Widen(BufferId b, DeclId n, int32_t place, const RegionSet& there, std::vector<Region>& parts) {
  Entry* const entry = EntryOf(b);
  if (entry == nullptr || entry->writes == entry->widened[static_cast<size_t>(place)]) return;
  entry->widened[static_cast<size_t>(place)] = entry->writes;
  const Region& last = entry->last;
  if (std::none_of(parts.begin(), parts.end(), [&](const Region& part) { return Overlap(part, last); })) return;
  const std::vector<Access>& accesses = entry->accesses;
  while (accesses[entry->next].node != n) ++entry->next;
  bool written = false;
  for (size_t a = entry->next; a < accesses.size(); ++a) {
    const Access& access = accesses[a];
    if (written && access.node != accesses[a - 1].node) return;
    written = written || access.writes;
    if (access.node == n || !access.reads || access.place != place) continue;
    const Region& box = records_.boxes.tree(b)->box(access.box);
    if (Covers(last, box) && !there.Holds(box)) parts.push_back(box);
  }
}

}  // namespace penstock::graph
