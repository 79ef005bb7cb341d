// What `penstock doctor` says of a program before it has run: estimates of its graphs, as text or as JSON.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/estimate.h"

namespace penstock::cli {

struct Estimates {
  std::string machine;  // the file with its figures; empty: none
  std::vector<std::string> assumed;  // figures that it does not have
  std::vector<analysis::Estimate> graphs;
  std::vector<std::string> notes;  // graphs that cannot be estimated, and why; sentences
};

// `known`: what `file` says of the machine; null and empty: nothing.
Estimates EstimateAll(const Profile& profile, const analysis::Machine* known, const std::string& file);

std::string TextOf(const Profile& profile, const Estimates& estimates);
nlohmann::json JsonOf(const Profile& profile, const Estimates& estimates);

}  // namespace penstock::cli
