// Hazards: the earlier accesses that a new one must wait for, by read after write, write after read and write after
// write, over places that are accessed as a whole or by boxes.
//
// Told of accesses one by one, it reports those that conflict with the new one and have not been overwritten since; an
// overwriting access already orders the others. For a place that is only accessed as a whole, these are the last writer
// and its readers, found in constant time. Otherwise each box of the tree keeps a writer and the readers since, with
// the part of the box that no later write covers: O(log n) for each, if the boxes are tiles, with or without halos.
// Every overlap is an edge, so m reads of a whole buffer written in n tiles are m * n edges.
//
// Ownership: borrows the trees.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/common/csr_rows.h"
#include "graph/conflicts/boxes.h"

namespace penstock::graph {

class Hazards {
 public:
  explicit Hazards(size_t places) : places_(places) {}

  // Whether redundant edges were kept because a box had too many parts to be cut further. Which edges these are
  // depends on the order of commuting accesses.
  bool surplus() const { return surplus_; }

  // Adds everything that `node` must wait for to the open row, possibly with repetitions. `tree` has the boxes by which
  // the place is accessed, the same at each call; null if it is only accessed as a whole.
  void Access(int32_t place, const BoxTree* tree, int32_t box, AccessMode mode, int32_t node, CsrRows& out) {
    if (box < 0) return;  // no element
    if (tree != nullptr) return AccessBox(place, *tree, box, mode, node, out);
    Place& p = places_[place];
    if (mode == AccessMode::kRead || p.readers < 0) Add(p.writer, node, out);
    if (mode == AccessMode::kRead) {
      AddReader(p.readers, node);
    } else {
      AddReaders(p.readers, node, out);
      p.writer = node;
      p.readers = -1;
    }
  }

 private:
  struct Place {
    int32_t writer = -1;
    int32_t readers = -1;  // head of a list in readers_
    int32_t boxes = -1;  // index in boxed_, for a place with a tree
  };
  struct Reader {
    int32_t node, next;
  };
  // Nodes that have accessed a box, and the part of it that no later write covers: all of it, or some regions.
  struct Visible {
    int32_t first = -1;  // the writer, or the head of a list in readers_
    bool cut = false;
    std::vector<Region> parts;
    bool any() const { return first >= 0; }
    void Reset(int32_t to) {
      first = to;
      cut = false;
      parts.clear();
    }
  };
  struct Boxed {
    BoxTree::Live live;  // boxes with a writer or readers
    std::vector<Visible> writers, readers;
  };

  static void Add(int32_t from, int32_t to, CsrRows& out) {
    if (from >= 0 && from != to) out.Add(from);
  }
  void AddReader(int32_t& list, int32_t node) {
    readers_.push_back({node, list});
    list = static_cast<int32_t>(readers_.size()) - 1;
  }
  void AddReaders(int32_t list, int32_t node, CsrRows& out) const {
    for (; list >= 0; list = readers_[list].next) {
      Add(readers_[list].node, node, out);
    }
  }
  void AccessBox(int32_t place, const BoxTree& tree, int32_t box, AccessMode mode, int32_t node, CsrRows& out);
  static bool Sees(const Visible& visible, const Region& box, const Region& region);
  void Overwrite(Visible& visible, const Region& box, const Region& by);

  std::vector<Place> places_;
  std::vector<Reader> readers_;
  std::vector<Boxed> boxed_;
  std::vector<int32_t> found_;
  std::vector<Region> left_;
  bool surplus_ = false;
};

}  // namespace penstock::graph
