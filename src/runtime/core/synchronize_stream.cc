#include "src/runtime/core/synchronize_stream.h"

#include "penstock/status_macros.h"
#include "src/host/progress.h"

namespace penstock::runtime {
namespace {

absl::Status Await(driver::Driver& driver, driver::Event event, driver::Stream stream, host::Bell& bell) {
  PENSTOCK_RETURN_IF_ERROR(driver.Record(event, stream));
  absl::StatusOr<bool> complete = false;
  host::WaitForProgress(bell, driver.rings(), host::TimePoint::max(), [&] {
    complete = driver.Query(event);
    return !complete.ok() || *complete;
  });
  return complete.status();
}

}  // namespace

absl::Status AwaitStream(driver::Driver& driver, driver::Event event, driver::Stream stream, host::Bell& bell) {
  absl::Status awaited = Await(driver, event, stream, bell);
  if (awaited.ok()) return awaited;
  const absl::Status again = Await(driver, event, stream, bell);
  if (!again.ok()) awaited = again;
  return awaited;
}

}  // namespace penstock::runtime
