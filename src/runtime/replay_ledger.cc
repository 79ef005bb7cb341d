#include "penstock/replay_ledger.h"

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace penstock {

std::string ReplayLedger::Text() const {
  std::string text = mode == Mode::kStream ? "stream mode: a call for each node" : "graph mode";
  if (mode == Mode::kGraph) {
    absl::StrAppend(&text, ": ", graphs, " graphs of ", graph_nodes, " nodes in all slots, launched ", graph_launches,
                    " times; nodes set ", nodes_set, " times, switched on or off ", nodes_switched, " times");
  }
  for (const std::string& note : notes) absl::StrAppend(&text, "\n  ", note);
  return text + "\n";
}

}  // namespace penstock
