// What a test of children does where a device is not there. A child says so by code 77 (world.h):
//
//   if (DeviceMissing(child)) GTEST_SKIP() << child;
#pragma once

#include <cstdlib>
#include <string>

#include "tests/process/child.h"

namespace penstock::test_support {

// Never under PENSTOCK_REQUIRE_GPU=1.
inline bool DeviceMissing(const ChildResult& child) {
  const char* require = std::getenv("PENSTOCK_REQUIRE_GPU");
  return child.ended == "exit 77" && (require == nullptr || std::string(require) != "1");
}

}  // namespace penstock::test_support
