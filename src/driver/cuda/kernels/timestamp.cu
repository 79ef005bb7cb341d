// Records the time: see timestamp.h. One thread.
#include "penstock/detail/programmatic.h"
#include "src/driver/timestamp.h"

namespace penstock::driver {

extern "C" __global__ void PenstockTimestamp(TimestampArgs args) {
  detail::AwaitDependencies();
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *args.at = now;
}

}  // namespace penstock::driver
