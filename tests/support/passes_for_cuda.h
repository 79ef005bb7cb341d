// A host device that passes for a CUDA device: where the runtime does something else for those, as calling Launch nodes
// while they are submitted.
//
// Threads: those of the driver behind.
#pragma once

#include <memory>
#include <utility>

#include "tests/support/forwarding_driver.h"

namespace penstock::driver {

class PassesForCuda : public ForwardingDriver {
 public:
  explicit PassesForCuda(std::unique_ptr<Driver> behind)
      : ForwardingDriver(std::move(behind)), info_(ForwardingDriver::device(0)) {
    info_.kind = DeviceKind::kCuda;
  }
  const DeviceInfo& device(int) const override { return info_; }

 private:
  DeviceInfo info_;
};

}  // namespace penstock::driver
