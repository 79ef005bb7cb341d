// DeviceRef: a device of a runtime, with the driver that has it.
//
// Ownership: borrows the driver, which outlives it.
// Threads:   plain data.
#pragma once

#include "src/driver/driver.h"

namespace penstock::driver {

struct DeviceRef {
  Driver* driver = nullptr;
  int local = 0;  // its index in the driver
  int driver_index = 0;
  DeviceInfo info;
};

}  // namespace penstock::driver
