#include "graph/passes/first_reads.h"

#include <algorithm>

namespace penstock::graph {

FirstReads::FirstReads(const Records& records, const Checked& checked, const Placed& placed)
    : records_(records), placed_(placed), places_(records, placed) {
  if (!records.boxes.any_tree()) return;
  std::vector<RegionSet> initial;
  entry_of_.assign(records.buffers.size(), -1);
  for (const BufferId b : records.buffers.ids()) {
    const BoxTree* const tree = records.boxes.tree(b);
    if (tree == nullptr || !places_.has_contents(b, checked)) continue;
    entry_of_[b] = static_cast<int32_t>(entries_.size());
    entries_.emplace_back();
    entries_.back().initial.Add(tree->box(0));
    entries_.back().needed.resize(records.options.devices.size());
    initial.push_back(entries_.back().initial);
  }
  if (entries_.empty()) return;
  for (const DeclId n : checked.sequence) {
    if (!placed.IsDropped(n)) AddNode(n);
  }
  for (size_t e = 0; e < entries_.size(); ++e) entries_[e].initial = std::move(initial[e]);
}

// The places that Copy nodes take their data from are not known yet.
void FirstReads::AddNode(DeclId n) {
  const DeviceId device = placed_.device[n];
  const bool reads = device >= 0 && records_.nodes[n].kind != NodeKind::kCopy;
  std::vector<Region> parts;
  for (const BoxRef& ref : records_.boxes[n]) {
    const int32_t entry = EntryOf(ref.base);
    if (!reads || entry < 0 || ref.uncopied || !places_.NeedsContents(ref)) continue;
    Entry& to = entries_[static_cast<size_t>(entry)];
    parts.clear();
    to.initial.AppendCommon(records_.boxes.tree(ref.base)->box(ref.box), parts);
    for (const Region& part : parts) to.needed[static_cast<size_t>(device)].Add(part);
  }
  for (const BoxRef& ref : records_.boxes[n]) {
    if (EntryOf(ref.base) < 0 || ref.mode == AccessMode::kRead || ref.box < 0) continue;
    Write(ref.base, records_.boxes.tree(ref.base)->box(ref.box));
  }
}

void FirstReads::Widen(BufferId b, int32_t place, const RegionSet& there, std::vector<Region>& parts) {
  const int32_t entry = EntryOf(b);
  if (entry < 0) return;
  Entry& of = entries_[static_cast<size_t>(entry)];
  RegionSet& needed = of.needed[static_cast<size_t>(place - kFirstDevicePlace)];
  std::vector<Region> boxes;
  for (const Region& part : parts) needed.AppendOverlapping(part, boxes);
  std::sort(boxes.begin(), boxes.end());
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  RegionSet wider;
  for (const Region& part : parts) wider.Add(part);
  bool widened = false;
  std::vector<Region> unwritten, lacking;
  for (const Region& box : boxes) {
    needed.Remove(box);
    unwritten.clear();
    lacking.clear();
    of.initial.AppendCommon(box, unwritten);
    for (const Region& part : unwritten) there.AppendMissing(part, lacking);
    for (const Region& part : lacking) wider.Add(part);
    widened = widened || !lacking.empty();
  }
  if (!widened) return;
  parts.clear();
  wider.AppendAll(parts);
}

}  // namespace penstock::graph
