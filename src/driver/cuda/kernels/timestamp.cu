// Records the time: see timestamp.h. One thread.
#include "penstock/detail/decision.h"
#include "penstock/detail/programmatic.h"
#include "src/driver/timestamp.h"

namespace penstock::driver {

extern "C" __global__ void PenstockTimestamp(TimestampArgs args) {
  detail::AwaitDependencies();
  *args.at = detail::DeviceNanos();
}

}  // namespace penstock::driver
