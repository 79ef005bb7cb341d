// The value, or the end of this process: by 77 where there is no such device, by 78 where it is anything else.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"

namespace penstock::test_support {

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::printf("%s\n", value.status().ToString().c_str());
  std::fflush(stdout);
  std::_Exit(value.status().code() == absl::StatusCode::kNotFound ? 77 : 78);
}

}  // namespace penstock::test_support
