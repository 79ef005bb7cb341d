// How the photo job words its errors: what happened, why, what to do; file names quoted so that a name cannot spoil the
// terminal or the line.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace photos {

// 'name' with control characters, quotes and bytes that are not UTF-8 escaped.
std::string Quoted(const std::string& name);

// "<what>; <reason>; <todo>".
absl::Status Error(absl::StatusCode code, const std::string& what, const std::string& reason, const std::string& todo);

// The same, with the reason and the code of an errno.
absl::Status SystemError(int error, const std::string& what, const std::string& todo);

}  // namespace photos
