#include "src/cli/find_graphs.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

// "3 'saxpy', 4 'reduce', ..."
std::string ListOfGraphs(const Profile& profile) {
  constexpr size_t kMostListed = 10;
  std::string list;
  for (size_t g = 0; g < std::min(profile.graphs.size(), kMostListed); ++g) {
    absl::StrAppend(&list, g == 0 ? "" : ", ", profile.graphs[g].executable, " '", Shown(profile.graphs[g].name), "'");
  }
  return profile.graphs.size() > kMostListed ? list + ", ..." : list;
}

bool HasNumber(const Profile::Graph& graph, const std::string& number) {
  return absl::StrCat(graph.executable) == number;
}

}  // namespace

absl::StatusOr<GraphPlaces> GraphsNamed(const Profile& profile, const std::string& name) {
  if (profile.graphs.empty()) {
    return absl::NotFoundError("the profile has no graphs; record the program's executables (docs/howto/profile.md)");
  }
  GraphPlaces places;
  for (size_t g = 0; g < profile.graphs.size(); ++g) {
    const Profile::Graph& graph = profile.graphs[g];
    if (name.empty() || HasNumber(graph, name) || graph.name == name) places.push_back(g);
  }
  if (!places.empty()) return places;
  return absl::NotFoundError(absl::StrCat("the profile has no graph '", Shown(name),
                                          "'; name one of these, or its "
                                          "executable's number: ",
                                          ListOfGraphs(profile)));
}

absl::StatusOr<size_t> GraphNamed(const Profile& profile, const std::string& name) {
  const absl::StatusOr<GraphPlaces> places = GraphsNamed(profile, name);
  if (!places.ok()) return places.status();
  const std::vector<Profile::Graph>& graphs = profile.graphs;
  if (name.empty()) {
    const auto fewer = [](const auto& x, const auto& y) { return x.launches < y.launches; };
    return static_cast<size_t>(std::max_element(graphs.begin(), graphs.end(), fewer) - graphs.begin());
  }
  for (const size_t g : *places) {
    if (places->size() == 1 || HasNumber(graphs[g], name)) return g;
  }
  return absl::InvalidArgumentError(absl::StrCat("the profile has several graphs '", Shown(name),
                                                 "'; name one by its executable's number: ", ListOfGraphs(profile)));
}

}  // namespace penstock::cli
