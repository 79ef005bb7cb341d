// Registers the host driver for the driver conformance suite: with threads to spare, and with as few as it takes.
#include "src/driver/host/host_driver.h"
#include "tests/conformance/driver/driver_conformance.h"

namespace penstock::driver::conformance {
namespace {

absl::StatusOr<std::unique_ptr<Driver>> Create(int threads, penstock::host::Bell* bell) {
  auto driver = host::CreateHostDriver(
      {.devices = 2, .threads_per_device = threads, .memory_bytes = int64_t{1} << 30, .bell = bell});
  if (!driver) return absl::UnavailableError("no threads");
  return driver;
}

// Two: a held kernel keeps one.
INSTANTIATE_TEST_SUITE_P(
    Host, DriverConformance,
    testing::Values(
        DriverUnderTest{"two_threads", [](penstock::host::Bell* bell) { return Create(2, bell); }, &HostProbes},
        DriverUnderTest{"five_threads", [](penstock::host::Bell* bell) { return Create(5, bell); }, &HostProbes}),
    NameOf);

}  // namespace
}  // namespace penstock::driver::conformance
