// Numbers of devices, as an option names them: "1,2,4", or "1..1024" for 1, 2, 4 and so on up to 1024.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::cli {

// Returns them in ascending order, each once. A range doubles from its first number, and has its last one in any case.
// InvalidArgument if the text is anything else, or if a number is not from 1 to analysis::kMostDevices.
absl::StatusOr<std::vector<int32_t>> ParseDeviceList(const std::string& text);

}  // namespace penstock::cli
