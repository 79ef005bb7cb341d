// PlacementReport::Text.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "penstock/placement.h"

namespace penstock {
namespace {

std::string CountsOf(const PlacementReport& report) {
  std::vector<int64_t> counts(report.devices.size());
  int64_t on_host = 0, left_out = 0;
  for (const PlacementReport::Node& node : report.nodes) {
    const auto device = static_cast<size_t>(node.device);
    if (node.left_out) ++left_out;
    else if (node.device < 0) ++on_host;
    else if (device < counts.size()) ++counts[device];
  }
  std::string text;
  for (size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", report.devices[d], " ", counts[d]);
  }
  if (on_host > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", "the host ", on_host);
  if (left_out > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", "left out ", left_out);
  return text.empty() ? "none" : text;
}

std::string WorkOf(const PlacementReport& report, const PlacementReport::Candidate& candidate) {
  std::string text;
  for (size_t d = 0; d < candidate.work_us.size() && d < report.devices.size(); ++d) {
    if (candidate.work_us[d] <= 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", report.devices[d],
                    absl::StrFormat(" %.1f us", candidate.work_us[d]));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string PlacementReport::Text() const {
  std::string text = absl::StrCat("placement of graph '", graph::OneLine(graph), "'; nodes: ", CountsOf(*this), "\n");
  for (const Candidate& candidate : candidates) {
    absl::StrAppend(&text, "  ", candidate.name, ": ", candidate.why, "\n");
    if (candidate.work_us.empty()) continue;
    absl::StrAppend(&text,
                    absl::StrFormat("    %.1f us a run (gain %.1f %%); work: %s; %d bytes between devices, %d with "
                                    "the host\n",
                                    candidate.makespan_us, 100 * candidate.gain, WorkOf(*this, candidate),
                                    candidate.between_bytes, candidate.host_bytes));
  }
  return text;
}

}  // namespace penstock
