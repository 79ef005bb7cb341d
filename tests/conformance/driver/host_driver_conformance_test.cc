// Registers the host driver for the driver conformance suite: with threads to spare, with as few as it takes, behind a
// checked driver, and taking up work in other orders than that of submission.
#include "src/driver/host/host_driver.h"
#include "tests/conformance/driver/driver_conformance.h"

namespace penstock::driver::conformance::host_driver_conformance_test {
namespace {

absl::StatusOr<std::unique_ptr<Driver>> Create(int threads, penstock::host::EventCount* event_count,
                                               uint64_t seed = 0) {
  return host::CreateHostDriver({.devices = 2,
                                 .threads_per_device = threads,
                                 .memory_bytes = int64_t{1} << 30,
                                 .order_seed = seed,
                                 .event_count = event_count});
}

// Two: a held kernel keeps one.
INSTANTIATE_TEST_SUITE_P(
    Host, DriverConformance,
    testing::Values(
        DriverUnderTest{"two_threads", [](penstock::host::EventCount* event_count) { return Create(2, event_count); },
                        &HostProbes},
        DriverUnderTest{"five_threads", [](penstock::host::EventCount* event_count) { return Create(5, event_count); },
                        &HostProbes},
        DriverUnderTest{"checked", [](penstock::host::EventCount* event_count) { return Create(3, event_count); },
                        &HostProbes, nullptr, true},
        DriverUnderTest{"permuted", [](penstock::host::EventCount* event_count) { return Create(2, event_count, 1); },
                        &HostProbes},
        DriverUnderTest{"permuted_again",
                        [](penstock::host::EventCount* event_count) { return Create(4, event_count, 2); },
                        &HostProbes}),
    NameOf);

}  // namespace
}  // namespace penstock::driver::conformance::host_driver_conformance_test
