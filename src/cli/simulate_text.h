// What the command simulate writes: a prediction beside what was measured, changes beside that, and slots beside each
// other; as text, or as JSON.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/simulate/simulate.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/over_devices.h"
#include "src/analysis/sim_graph.h"

namespace penstock::cli {

// A simulation and its result.
struct Prediction {
  analysis::SimulatedGraph simulated;
  graph::SimResult result;
};

struct Simulations {
  const Profile* profile = nullptr;
  const Profile::Graph* graph = nullptr;
  Prediction as_measured{};
  std::optional<Prediction> changed{};
  std::vector<Prediction> slots{};  // the same with other numbers of slots
  std::optional<analysis::OverDevices> devices{};  // the same over other numbers of devices

  const Prediction& shown() const { return changed ? *changed : as_measured; }
};

std::string TextOf(const Simulations& simulations);
nlohmann::json JsonOf(const Simulations& simulations);

}  // namespace penstock::cli
