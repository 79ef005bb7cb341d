// The PENSTOCK_* environment variables, all read here; README.md has their table.
//
// An empty variable counts as unset.
//
// Threads:   free functions. They read the environment, which no thread may change meanwhile.
// Errors:    InvalidArgument with the variable's name, its value and the values allowed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::base {

std::optional<std::string> Variable(const char* name);
// The value in lower case, for variables that take one of a few words.
std::optional<std::string> WordOf(const char* name);

// True for 1, true, yes and on; false for 0, false, no, off and unset; case does not matter.
absl::StatusOr<bool> FlagOf(const char* name);

}  // namespace penstock::base
