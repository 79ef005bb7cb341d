// AddEntries: adds the entries of one of a program's graphs to a driver graph, each after those that it depends on.
//
// Threads: a pure function except for what its arguments do.
// Errors:  the first failure of `add`, prefixed with the node.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

// `head`: the node that the graph begins with; -1 if there is none. An entry for which `wants_head` returns true comes
// after the head, unless an entry that it depends on already does. `add(entry, after, priority)` adds a node after
// others and returns the node that later entries come after, which is stored in last[entry].
template <class WantsHead, class Add>
absl::Status AddEntries(const CompiledGraph& compiled, GraphId graph, int32_t head, Table<EntryId, int32_t>& last,
                        WantsHead wants_head, Add add) {
  const GraphProgram& replay = compiled.program().replay;
  const EntryId begin = replay.begin[graph], end = replay.begin[graph + 1];
  std::vector<bool> led(static_cast<size_t>(end - begin));  // the entry comes after the head
  std::vector<int32_t> after;
  for (EntryId e = begin; e < end; ++e) {
    const auto at = static_cast<size_t>(e - begin);
    after.clear();
    for (const int32_t p : replay.preds[e]) {
      after.push_back(last[begin + p]);
      led[at] = led[at] || led[p];
    }
    if (head >= 0 && !led[at] && wants_head(e)) {
      after.push_back(head);
      led[at] = true;
    }
    const NodeId node = replay.entries[e].node;
    const int priority = compiled.plan().nodes[node].priority;
    const absl::StatusOr<int32_t> added = add(e, after, priority);
    if (!added.ok()) return compiled.Describe(node, added.status());
    last[e] = *added;
  }
  return absl::OkStatus();
}

}  // namespace penstock::runtime
