// AddEntries: adds the entries of one of a program's graphs to a driver graph, each after those that it depends on.
//
// Threads: a pure function except for what its arguments do.
// Errors:  the first failure of `add`, prefixed with the node.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/graph_exec/node_numbers.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

// A graph begins with heads, at most one on each device. `head_of(entry)` returns the number of the one on the entry's
// device, or -1 if the entry need not come after it; it does so by an edge of its own unless an entry on its device
// that it depends on already does. `add(entry, after, place)` adds its nodes after others and returns those that later
// entries come after, which are stored in last[entry].
template <class HeadOf, class Add>
absl::Status AddEntries(const CompiledGraph& compiled, GraphId graph, Table<EntryId, NodeNumbers>& last, HeadOf head_of,
                        Add add) {
  const GraphProgram& replay = compiled.program().replay;
  const Table<NodeId, graph::PlanNode>& nodes = compiled.plan().nodes;
  const EntryId begin = replay.begin[graph], end = replay.begin[graph + 1];
  std::vector<bool> led(static_cast<size_t>(end - begin));  // the entry comes after its device's head
  std::vector<int32_t> after;
  for (EntryId e = begin; e < end; ++e) {
    const auto at = static_cast<size_t>(e - begin);
    const NodeId node = replay.entries[e].node;
    after.clear();
    for (const int32_t p : replay.preds[e]) {
      after.insert(after.end(), last[begin + p].begin(), last[begin + p].end());
      led[at] = led[at] || (led[p] && nodes[replay.entries[begin + p].node].device == nodes[node].device);
    }
    if (const int32_t head = led[at] ? -1 : head_of(e); head >= 0) {
      after.push_back(head);
      led[at] = true;
    }
    const driver::NodePlace place{.priority = nodes[node].priority, .device = compiled.local_device_of(node)};
    absl::StatusOr<NodeNumbers> added = add(e, after, place);
    if (!added.ok()) return compiled.Describe(node, added.status());
    last[e] = *std::move(added);
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
