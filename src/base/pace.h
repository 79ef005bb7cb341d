// How long calls tell their progress (penstock/progress.h): at a pace, and with what the user's function may do to
// them.
//
// Threads: a paced function is for one call, and so for one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "penstock/progress.h"

namespace penstock::base {

// Passes on what it is told a tenth of a second or more after it was made, or after it last passed something on. Null
// stays null.
ProgressFunction Paced(const ProgressFunction& of, const std::function<std::chrono::steady_clock::time_point()>& now =
                                                       std::chrono::steady_clock::now);

// Cancelled if it returns false, and Internal if it throws; `option` is what the user knows it by. Null is told
// nothing.
absl::Status Tell(const ProgressFunction& to, std::string_view option, const Progress& progress);

}  // namespace penstock::base
