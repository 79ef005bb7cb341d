// Calls user code and makes a Status of what it throws.
//
// Threads: stateless.
#pragma once

#include <exception>
#include <string>

#include "absl/status/status.h"

namespace penstock::runtime {

// What f, a callable that returns a Status or StatusOr, returns; Internal where it throws.
template <class F>
auto CatchAll(const char* what, const F& f) -> decltype(f()) {
  const char* const what_to_do = "; catch it there and return a Status";
  try {
    return f();
  } catch (const std::exception& e) {
    return absl::InternalError(std::string(what) + " threw an exception: " + e.what() + what_to_do);
  } catch (...) {
    return absl::InternalError(std::string(what) + " threw something that is no std::exception" + what_to_do);
  }
}

}  // namespace penstock::runtime
