// Looks at a file that a command is to write.
//
// Threads: free function.
// Errors:  InvalidArgument, with `what` and the path: it is the file that the command reads.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::cli {

// `what` begins the message, as in "report". Links count as the file that they lead to.
absl::Status CheckIsNotInput(std::string_view what, const std::string& path, const std::string& input);

}  // namespace penstock::cli
