// The graphs of a profile that a user means.
//
// Threads: pure functions.
// Errors:  NotFound: there is none. InvalidArgument: several, where one is needed. Each lists names and numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/profile.h"

namespace penstock::cli {

// Places in Profile::graphs.
using GraphPlaces = std::vector<size_t>;

// Returns the graphs with that name, or whose executable has that number, and all of them if it is empty.
absl::StatusOr<GraphPlaces> GraphsNamed(const Profile& profile, const std::string& name);
// The one of that number, or else of that name; the one that was launched most often if it is empty.
absl::StatusOr<size_t> GraphNamed(const Profile& profile, const std::string& name);

}  // namespace penstock::cli
