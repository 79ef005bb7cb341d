// AddEntries: adds the entries of one of a program's graphs to a driver graph, each after those that it depends on.
//
// Threads: a pure function except for what its arguments do.
// Errors:  the first failure of `add`, prefixed with the node.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/runtime/graph_exec/node_numbers.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

// `head`: the node that the graph begins with; -1 if there is none. An entry for which `wants_head` returns true comes
// after the head, unless an entry that it depends on already does. `add(entry, after, priority)` adds its nodes after
// others and returns those that later entries come after, which are stored in last[entry].
template <class WantsHead, class Add>
absl::Status AddEntries(const CompiledGraph& compiled, GraphId graph, int32_t head, Table<EntryId, NodeNumbers>& last,
                        WantsHead wants_head, Add add) {
  const GraphProgram& replay = compiled.program().replay;
  const EntryId begin = replay.begin[graph], end = replay.begin[graph + 1];
  std::vector<bool> led(static_cast<size_t>(end - begin));  // the entry comes after the head
  std::vector<int32_t> after;
  for (EntryId e = begin; e < end; ++e) {
    const auto at = static_cast<size_t>(e - begin);
    after.clear();
    for (const int32_t p : replay.preds[e]) {
      after.insert(after.end(), last[begin + p].begin(), last[begin + p].end());
      led[at] = led[at] || led[p];
    }
    if (head >= 0 && !led[at] && wants_head(e)) {
      after.push_back(head);
      led[at] = true;
    }
    const NodeId node = replay.entries[e].node;
    const int priority = compiled.plan().nodes[node].priority;
    absl::StatusOr<NodeNumbers> added = add(e, after, priority);
    if (!added.ok()) return compiled.Describe(node, added.status());
    last[e] = *std::move(added);
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
