#include "penstock/submission_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/status.h"

namespace penstock {

std::string SubmissionReport::Text() const {
  std::string text = mode == Mode::kStream  ? "stream mode: a call for each node"
                     : mode == Mode::kGraph ? "graph mode"
                                            : "both modes in turns, until it is known which is faster";
  if (stream_us > 0 && graph_us > 0) {
    absl::StrAppendFormat(&text, "; a run took %.1f us in stream mode and %.1f us in graph mode", stream_us, graph_us);
  }
  if (graphs > 0) {
    absl::StrAppend(&text, "; ", graphs, " graphs of ", graph_nodes, " nodes in all slots");
    if (regions > 0) {
      absl::StrAppend(&text, ", ", regions, " of which are regions, where ", region_nodes, " nodes run resident");
    }
    absl::StrAppend(&text, ", launched ", graph_launches, " times; nodes set ", nodes_set,
                    " times, switched on or off ", nodes_switched, " times; parameters copied for all nodes at once ",
                    refreshes, " times; Launch nodes captured ", captures, " times");
    absl::StrAppendFormat(&text, "; making graphs took %.1f us, capturing %.1f us", instantiating_us, capturing_us);
  }
  for (const Loop& loop : loops) {
    absl::StrAppend(&text, "\n  loop '", loop.name, "': ", loop.iterations, " iterations");
    if (loop.iteration_us > 0) absl::StrAppendFormat(&text, " of %.1f us on average", loop.iteration_us);
  }
  for (const Fused& map : fused) absl::StrAppend(&text, "\n  ", map.text);
  for (const std::string& note : notes) absl::StrAppend(&text, "\n  ", note);
  return text + "\n";
}

}  // namespace penstock
