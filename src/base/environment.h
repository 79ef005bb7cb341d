// The variables PENSTOCK_* of the environment, which all are read here; README.md has the table of them.
//
// One that is empty counts as one that is not set.
//
// Threads: free functions. They read the environment, which no thread may change meanwhile.
// Errors:  InvalidArgument with the variable's name, its value and what it may be.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::base {

std::optional<std::string> Variable(const char* name);
// In small letters, for values that are one of a few words.
std::optional<std::string> WordOf(const char* name);

// 1, true, yes and on; 0, false, no and off, and where it is not set; in letters of any size.
absl::StatusOr<bool> FlagOf(const char* name);

}  // namespace penstock::base
