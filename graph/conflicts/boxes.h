// Boxes of elements: what each access covers of the buffer that has the memory, and a tree that finds overlapping ones.
//
// The Region of an access (graph/plan/region.h) holds every element that it may touch in any run: the whole buffer if
// an offset comes from a parameter, up to the declared maximum if a size does. Only an `exact` access touches all of
// its region whatever the parameters are.
//
// Most graphs only access whole buffers. A BoxTable then holds no tree.
//
// Threads: a BoxTable and its trees are immutable once filled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/plan/region.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

using detail::Table;

// A part of `region` that no box of `boxes` holds; empty if they cover it. O(n log n) for n boxes that do not overlap;
// overlapping boxes cost up to n^1.5 in two and n^2 in three dimensions. Reorders and drops boxes.
Region Uncovered(const Region& region, std::vector<Region> boxes);
// Appends all such parts, which are disjoint. The boxes do not overlap.
void AppendUncovered(const Region& region, std::vector<Region> boxes, std::vector<Region>& out);

// A fixed set of boxes, each live or not, that finds the live ones overlapping a region. Uses median partitions: O(log
// n + k) for tiles of which k overlap the region, more if the boxes overlap each other.
class BoxTree {
 public:
  explicit BoxTree(std::vector<Region> boxes);
  int32_t size() const { return static_cast<int32_t>(boxes_.size()); }
  const Region& box(int32_t index) const { return boxes_[index]; }

  // The number of live boxes in each node of the tree; one for each use of the tree.
  using Live = std::vector<int32_t>;
  Live NoneLive() const { return Live(nodes_.size()); }
  void SetLive(Live& live, int32_t box, bool on) const {
    for (int32_t n = leaf_[box]; n >= 0; n = nodes_[n].parent) {
      live[n] += on ? 1 : -1;
    }
  }
  // Appends the live boxes that overlap `region`.
  void Find(const Live& live, const Region& region, std::vector<int32_t>& found) const;

 private:
  struct Node {
    Region bound;
    int32_t parent = -1, left = -1, right = -1;  // children are nodes
    int32_t box = -1;  // for a leaf
  };
  int32_t Build(std::vector<int32_t>& order, size_t begin, size_t end, int32_t parent);

  std::vector<Region> boxes_;
  std::vector<Node> nodes_;
  std::vector<int32_t> leaf_;  // for each box
};

// One access: the buffer it names, if one of this model, the one that has the memory, if any, its box there (0:
// all of it, -1: no element), whether it touches all of that box in every run, and the rest of its declaration.
struct BoxRef {
  BufferId buffer{}, base{};
  int32_t box = 0;
  bool exact = true;
  AccessMode mode = AccessMode::kRead;
  bool unordered = false;
  bool part = false;  // whether it names part of its buffer
  bool uncopied = false;
  bool whole() const { return box == 0 && exact; }
};

// The regions that all accesses of a model cover.
class BoxTable {
 public:
  // Add every node in order, as if it accessed whole buffers with memory; then call FindBoxes, unless all do.
  void Reserve(size_t nodes);
  void Add(const Model& model, const NodeDecl& node);
  void FindBoxes(const Model& model);
  // The accesses of node `n`, in the order declared.
  std::span<const BoxRef> operator[](DeclId n) const {
    return {refs_.data() + (n > 0 ? end_[n - 1] : 0), refs_.data() + end_[n]};
  }
  size_t accesses() const { return refs_.size(); }
  bool any_part() const { return any_part_; }
  bool any_unordered() const { return any_unordered_; }
  bool any_tree() const { return !trees_.empty(); }
  // The boxes of a buffer; null if every access is to all of it.
  const BoxTree* tree(BufferId base) const {
    return trees_.empty() || tree_of_[base] < 0 ? nullptr : &trees_[tree_of_[base]];
  }

 private:
  std::vector<size_t> end_;  // offset in refs_ for each node
  std::vector<BoxRef> refs_;  // for each access
  bool any_part_ = false, any_unordered_ = false;
  Table<BufferId, int32_t> tree_of_;
  std::vector<BoxTree> trees_;
};

// The parameter that `dim` names; null for a constant, and for a handle of another graph or a default-constructed one.
const ParamDecl* ParamOf(const Model& model, const Dim& dim);
// The buffer that has the memory of `buffer`: itself unless it is an alias; -1 if the alias has no base.
BufferId BaseOf(const Model& model, BufferId buffer);
// The extent of `buffer` when its rows are read as elements of `element_bytes`: the last dimension, if constant, holds
// as many as fit. Validate checks that they fit exactly.
Extent ReadAs(const BufferDecl& buffer, uint32_t element_bytes);
// "Slice({4, 0}, {4, 16})", in elements of `buffer`.
std::string SliceText(const BufferDecl& buffer, const Region& region);

}  // namespace penstock::graph
