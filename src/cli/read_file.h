// Reads a file as a whole: a regular file, or something else that ends, such as a pipe.
//
// Threads: free function.
// Errors:  from errno, with `what`, the path and the system's text; ResourceExhausted: it is larger than `most_bytes`.
// Of
//          a regular file that is known before any of it is read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::cli {

// `what` begins the message, as in "profile".
absl::StatusOr<std::string> ReadFile(std::string_view what, const std::string& path, size_t most_bytes);

}  // namespace penstock::cli
