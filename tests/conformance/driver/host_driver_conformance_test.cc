// Registers the host driver for the driver conformance suite: with threads to spare, with as few as it takes, behind a
// checked driver, and taking up work in other orders than that of submission.
#include "src/driver/host/host_driver.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/support/sanitized.h"

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

// At least two threads: a held kernel keeps one. Sanitized, two of the five drivers, and not the same two under each
// sanitizer: ./run test has all.
std::vector<DriverUnderTest> Drivers() {
  using penstock::host::EventCount;
  const DriverUnderTest two_threads{"two_threads", [](EventCount* count) { return Create(2, count); }, &HostProbes},
      five_threads{"five_threads", [](EventCount* count) { return Create(5, count); }, &HostProbes},
      checked{"checked", [](EventCount* count) { return Create(3, count); }, &HostProbes, nullptr, true},
      permuted{"permuted", [](EventCount* count) { return Create(2, count, 1); }, &HostProbes},
      permuted_again{"permuted_again", [](EventCount* count) { return Create(4, count, 2); }, &HostProbes};
  if (kThreadSanitized) return {five_threads, permuted};
  if (kSanitized) return {checked, permuted_again};
  return {two_threads, five_threads, checked, permuted, permuted_again};
}
INSTANTIATE_TEST_SUITE_P(Host, DriverConformance, testing::ValuesIn(Drivers()), NameOf);

}  // namespace
}  // namespace penstock::driver::conformance::host_driver_conformance_test
