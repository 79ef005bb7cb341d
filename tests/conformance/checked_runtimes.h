// Runtimes whose drivers are checked, and what their checks found.
//
//   CheckedRuntimes checks;
//   absl::StatusOr<Runtime> runtime = checks.CreateRuntime({.devices = "host:2"}, /*order_seed=*/1);
//   ...
//   runtime and everything made from it goes;
//   EXPECT_EQ(checks.Complaints(), "");
//
// Threads: single-threaded; the runtime may be used by any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/runtime.h"
#include "src/driver/checked/call_recorder.h"

namespace penstock::conformance {

// A runtime as users have it: sanitized, with small slabs of pinned memory like those below, since a sanitizer takes
// longer to zero one of the usual size than most tests take.
absl::StatusOr<Runtime> CreateUncheckedRuntime(const RuntimeOptions& options);

class CheckedRuntimes {
 public:
  // Other than 0, host devices take up work in an order of the seed. `hostcall_patience`: how long a device waits for
  // who answers it.
  absl::StatusOr<Runtime> CreateRuntime(const RuntimeOptions& options, uint64_t order_seed = 0,
                                        std::chrono::nanoseconds hostcall_patience = std::chrono::seconds(10));

  // Of driver `i` of all runtimes made here. Of a runtime with one kind of devices there is one driver.
  driver::checked::CallRecorder& witness(size_t i = 0) { return *witnesses_[i]; }
  // Violations so far, and what is alive now, one a line; empty when all is well.
  std::string Complaints() const;

 private:
  std::vector<std::shared_ptr<driver::checked::CallRecorder>> witnesses_;
};

}  // namespace penstock::conformance
