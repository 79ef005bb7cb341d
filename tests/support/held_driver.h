// HeldDriver: a driver under which no work is seen to have ended while a flag is set.
//
// Threads: those of the driver that it wraps.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "tests/support/forwarding_driver.h"

namespace penstock {

class HeldDriver final : public driver::ForwardingDriver {
 public:
  HeldDriver(std::unique_ptr<Driver> behind, std::shared_ptr<const std::atomic<bool>> held)
      : ForwardingDriver(std::move(behind)), held_(std::move(held)) {}
  bool notifies_completion() const override { return false; }  // nobody would when the flag is cleared
  absl::StatusOr<bool> Query(driver::Event event) override {
    return *held_ ? absl::StatusOr<bool>(false) : ForwardingDriver::Query(event);
  }

 private:
  const std::shared_ptr<const std::atomic<bool>> held_;
};

}  // namespace penstock
