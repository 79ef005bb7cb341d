// What a test of children does where a device is not there. A child says so by code 77 (world.h):
//
//   if (DeviceMissing(child)) GTEST_SKIP() << child;
#pragma once

#include "tests/process/child.h"
#include "tests/support/environment.h"

namespace penstock::test_support {

// Never under PENSTOCK_REQUIRE_GPU.
inline bool DeviceMissing(const ChildResult& child) { return child.ended == "exit 77" && RequiredDevices() == 0; }

}  // namespace penstock::test_support
