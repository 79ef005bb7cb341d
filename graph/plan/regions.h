// FindRegions: the parts of a graph that can run as one, and the graph that is left when each is one entry.
//
// Nodes of one group may share a region. The nodes of a region are connected, or would wait for the same entries and
// be waited for by the same, so that putting them together delays nothing.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/common/csr_rows.h"

namespace penstock::graph {

// A graph whose regions are contracted to entries. Every other node is an entry of its own.
struct Contraction {
  struct Entry {
    int32_t node;  // the first node of a region
    int32_t region;  // -1: `node` is in no region
  };
  std::vector<std::vector<int32_t>> regions;  // the nodes of each, ascending; in the order of their entries
  std::vector<int32_t> entry_of;  // for each node
  std::vector<Entry> entries;  // in a topological order: the next is that with the first node among those possible
  CsrRows preds;  // the predecessors of each entry, by TransitiveReduction
};

// Row v of `preds` has the predecessors of node v: less than v, ascending, transitively reduced. Nodes of group -1 are
// in no region. Regions have `least` to `most` nodes and are convex: no path leaves one and comes back.
//
// A node's level is the most times that a path to it leaves a group. Candidates are the components of connected nodes
// of one group and level. Those of one group and level are merged if the entries before them and those after them are
// the same; a predecessor or successor in a component of less than `least` or more than `most` nodes counts as itself.
// A merged candidate of more than `most` nodes is divided among regions: components stay whole, in order of their first
// nodes, unless one alone has more than `most`, which is then cut by position. What is then smaller than `least` is no
// region. O((nodes + edges) log nodes), TransitiveReduction apart.
Contraction FindRegions(const CsrRows& preds, const std::vector<int32_t>& group, int32_t least, int32_t most);

}  // namespace penstock::graph
