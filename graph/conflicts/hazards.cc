#include "graph/conflicts/hazards.h"

namespace penstock::graph {
namespace {

// A box with more parts than this is not cut further; that keeps redundant edges, and drops none.
constexpr size_t kMaxParts = 64;

}  // namespace

bool Hazards::Sees(const Visible& visible, const Region& box, const Region& region) {
  if (!visible.any()) return false;
  if (!visible.cut) return Overlap(box, region);
  for (const Region& part : visible.parts) {
    if (Overlap(part, region)) return true;
  }
  return false;
}

void Hazards::Overwrite(Visible& visible, const Region& box, const Region& by) {
  if (!visible.any()) return;
  if (Covers(by, box)) return visible.Reset(-1);
  left_.clear();
  if (!visible.cut) {
    Subtract(box, by, left_);
  } else {
    const bool many = visible.parts.size() >= kMaxParts;
    for (const Region& part : visible.parts) {
      const bool cut = Overlap(part, by), keep = many && cut && !Covers(by, part);
      surplus_ = surplus_ || keep;
      if (!cut || keep) {
        left_.push_back(part);
      } else {
        Subtract(part, by, left_);
      }
    }
  }
  visible.cut = true;
  visible.parts.swap(left_);
  if (visible.parts.empty()) visible.Reset(-1);
}

// Readers of a box that were cut are forgotten when the box is accessed again: the nodes that cut them are ordered
// after them, and the new access to the same elements after those. A writer that was cut stays, since later readers of
// its data do not wait for other readers.
void Hazards::AccessBox(int32_t place, const BoxTree& tree, int32_t box, AccessMode mode, int32_t node, CsrRows& out) {
  Place& p = places_[place];
  if (p.boxes < 0) {
    p.boxes = static_cast<int32_t>(boxed_.size());
    boxed_.push_back({tree.NoneLive(), {}, {}});
    boxed_.back().writers.resize(tree.size());
    boxed_.back().readers.resize(tree.size());
  }
  Boxed& boxed = boxed_[p.boxes];
  const Region& region = tree.box(box);
  const bool writes = mode != AccessMode::kRead;
  found_.clear();
  tree.Find(boxed.live, region, found_);
  for (const int32_t other : found_) {
    Visible& writer = boxed.writers[other];
    Visible& readers = boxed.readers[other];
    const bool waits_for_readers = writes && Sees(readers, tree.box(other), region);
    if (waits_for_readers) AddReaders(readers.first, node, out);
    if (!waits_for_readers && Sees(writer, tree.box(other), region)) Add(writer.first, node, out);
    if (!writes) continue;
    Overwrite(writer, tree.box(other), region);
    Overwrite(readers, tree.box(other), region);
    if (!writer.any() && !readers.any()) tree.SetLive(boxed.live, other, false);
  }
  Visible& writer = boxed.writers[box];
  Visible& readers = boxed.readers[box];
  if (!writer.any() && !readers.any()) tree.SetLive(boxed.live, box, true);
  if (writes) {
    writer.Reset(node);
  } else {
    if (readers.cut) readers.Reset(-1);
    AddReader(readers.first, node);
  }
}

}  // namespace penstock::graph
