#include "src/analysis/rules/words.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"

namespace penstock::analysis {

std::string GraphText(const Profile::Graph& graph) { return absl::StrCat("graph '", graph::OneLine(graph.name), "'"); }

std::string NodeText(const Profile::Node& node) {
  std::string text = absl::StrCat("'", graph::OneLine(node.name), "'");
  if (!node.where.empty()) absl::StrAppend(&text, " (", graph::OneLine(node.where), ")");
  return text;
}

std::string WhyNoGraphs(const SubmissionReport& report) {
  for (const std::string& note : report.notes) {
    for (const std::string_view begin : {"no graphs: ", "no graphs any more: "}) {
      if (std::string_view(note).starts_with(begin)) return graph::OneLine(note.substr(begin.size()));
    }
  }
  return "";
}

}  // namespace penstock::analysis
