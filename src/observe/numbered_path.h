// Paths that are named once for many processes, and in each of them for several runtimes: "%p" in a name stands for the
// number of the process and "%%" for a '%', and the second runtime of a process gets "app.profile.2".
//
// Threads: free functions.
// Locks:   numbered_path.cc: mu, a leaf.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace penstock::observe {

// The value of a variable that names such a path; empty: it is not set. Errors: InvalidArgument for a % that stands for
// nothing; those of base::CheckWritable.
absl::StatusOr<std::string> PatternIn(const char* variable);
// The path of the next runtime that asks for it.
std::string NumberedPath(const std::string& pattern);

}  // namespace penstock::observe
