// Registers the host driver for the driver conformance suite: with threads to spare, with as few as it takes, behind a
// checked driver, and taking up work in other orders than that of submission.
#include "src/driver/host/host_driver.h"
#include "tests/conformance/driver/driver_conformance.h"

namespace penstock::driver::conformance::host_driver_conformance_test {
namespace {

absl::StatusOr<std::unique_ptr<Driver>> Create(int threads, penstock::host::Bell* bell, uint64_t seed = 0) {
  return host::CreateHostDriver({.devices = 2,
                                 .threads_per_device = threads,
                                 .memory_bytes = int64_t{1} << 30,
                                 .order_seed = seed,
                                 .bell = bell});
}

// Two: a held kernel keeps one.
INSTANTIATE_TEST_SUITE_P(
    Host, DriverConformance,
    testing::Values(
        DriverUnderTest{"two_threads", [](penstock::host::Bell* bell) { return Create(2, bell); }, &HostProbes},
        DriverUnderTest{"five_threads", [](penstock::host::Bell* bell) { return Create(5, bell); }, &HostProbes},
        DriverUnderTest{"checked", [](penstock::host::Bell* bell) { return Create(3, bell); }, &HostProbes, nullptr,
                        true},
        DriverUnderTest{"permuted", [](penstock::host::Bell* bell) { return Create(2, bell, 1); }, &HostProbes},
        DriverUnderTest{"permuted_again", [](penstock::host::Bell* bell) { return Create(4, bell, 2); }, &HostProbes}),
    NameOf);

}  // namespace
}  // namespace penstock::driver::conformance::host_driver_conformance_test
