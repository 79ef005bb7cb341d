// What would happen if something about a graph were different: changes of a SimulatedGraph.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/profile.h"
#include "src/analysis/sim_graph.h"

namespace penstock::analysis {

struct Changes {
  std::optional<int32_t> slots{};
  std::optional<bool> as_graphs{};
  double upload_gbs = 0, download_gbs = 0;  // GB/s of every copy of that direction; 0: as it is
  std::vector<std::pair<std::string, double>> scale{};  // nodes by name: what they take, times a factor

  bool empty() const { return !slots && !as_graphs && upload_gbs == 0 && download_gbs == 0 && scale.empty(); }
};

// `of` is the graph of the profile from which `simulated` was made. What a submission in the other mode costs was not
// measured: it counts as on an H100. An application that always had a run in each slot has one in each of the new ones.
// Errors: NotFound names a node that does not exist.
absl::StatusOr<SimulatedGraph> WithChanges(SimulatedGraph simulated, const Profile::Graph& of, const Changes& changes);

}  // namespace penstock::analysis
