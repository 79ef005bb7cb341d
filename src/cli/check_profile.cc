#include "src/cli/check_profile.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/analysis/node_order.h"

namespace penstock::cli {
namespace {

// Where a profile says something: made into text only for errors, since there may be a million nodes.
struct InProfile {
  const char* list;  // "graphs"
  size_t place;
  const char* inner = nullptr;  // "nodes"
  size_t inner_place = 0;

  std::string Text() const {
    const std::string outer = absl::StrCat(list, "[", place, "]");
    return inner == nullptr ? outer : absl::StrCat(outer, ".", inner, "[", inner_place, "]");
  }
};

absl::Status CheckIndex(const InProfile& in, const char* member, int64_t index, int64_t least, size_t count,
                        const char* what) {
  if (index >= least && index < static_cast<int64_t>(count)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(in.Text(), ".", member, ": is ", index, ", and there are ", count, " ", what));
}

absl::Status CheckOrder(const Profile::Graph& graph, size_t g) {
  const std::vector<int> order = analysis::NodeOrder(graph);
  if (order.size() == graph.nodes.size()) return absl::OkStatus();
  std::vector<bool> in_order(graph.nodes.size());
  for (const int node : order) in_order[static_cast<size_t>(node)] = true;
  const auto missing = static_cast<size_t>(std::find(in_order.begin(), in_order.end(), false) - in_order.begin());
  const InProfile in{"graphs", g, "nodes", missing};
  return absl::DataLossError(in.Text() + ".after: leads in a circle");
}

absl::Status CheckGraph(const Profile& profile, size_t g) {
  const Profile::Graph& graph = profile.graphs[g];
  for (size_t l = 0; l < graph.lanes.size(); ++l) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckIndex({"graphs", g, "lanes", l}, "device", graph.lanes[l].device, 0, profile.devices.size(), "devices"));
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Profile::Node& node = graph.nodes[n];
    const InProfile in{"graphs", g, "nodes", n};
    PENSTOCK_RETURN_IF_ERROR(CheckIndex(in, "device", node.device, -1, profile.devices.size(), "devices"));
    PENSTOCK_RETURN_IF_ERROR(CheckIndex(in, "lane", node.lane, -1, graph.lanes.size(), "lanes"));
    for (const int before : node.after) {
      PENSTOCK_RETURN_IF_ERROR(CheckIndex(in, "after", before, 0, graph.nodes.size(), "nodes"));
    }
  }
  return CheckOrder(graph, g);
}

}  // namespace

absl::Status CheckProfile(const Profile& profile) {
  absl::flat_hash_map<int64_t, size_t> places;
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    PENSTOCK_RETURN_IF_ERROR(CheckGraph(profile, g));
    const auto [at, is_new] = places.try_emplace(profile.graphs[g].executable, g);
    if (is_new) continue;
    return absl::DataLossError(
        absl::StrCat("graphs[", g, "].executable: is ", at->first, ", as that of graphs[", at->second, "]"));
  }
  for (size_t s = 0; s < profile.spans.size(); ++s) {
    const Span& span = profile.spans[s];
    const InProfile in{"spans", s};
    PENSTOCK_RETURN_IF_ERROR(CheckIndex(in, "device", span.device, -1, profile.devices.size(), "devices"));
    const auto at = places.find(span.executable);
    if (at == places.end()) continue;
    PENSTOCK_RETURN_IF_ERROR(CheckIndex(in, "node", span.node, -1, profile.graphs[at->second].nodes.size(), "nodes"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli
