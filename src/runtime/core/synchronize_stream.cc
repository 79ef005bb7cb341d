#include "src/runtime/core/synchronize_stream.h"

#include "penstock/status_macros.h"
#include "src/host/progress.h"

namespace penstock::runtime {
namespace {

absl::Status Await(driver::Driver& driver, driver::Event event, driver::Stream stream, host::EventCount& event_count,
                   AwaitBy by) {
  PENSTOCK_RETURN_IF_ERROR(driver.Record(event, stream));
  absl::StatusOr<bool> complete = false;
  const bool sleeps = by == AwaitBy::kSleeping && driver.notifies_completion();
  host::WaitForProgress(event_count, sleeps, host::TimePoint::max(), [&] {
    complete = driver.Query(event);
    return !complete.ok() || *complete;
  });
  return complete.status();
}

}  // namespace

absl::Status AwaitStream(driver::Driver& driver, driver::Event event, driver::Stream stream,
                         host::EventCount& event_count, AwaitBy by) {
  absl::Status awaited = Await(driver, event, stream, event_count, by);
  if (awaited.ok()) return awaited;
  const absl::Status again = Await(driver, event, stream, event_count, by);
  if (!again.ok()) awaited = again;
  return awaited;
}

absl::Status RunOnNewStream(driver::Driver& driver, int device, host::EventCount& event_count,
                            absl::FunctionRef<absl::Status(driver::Stream)> submit) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Stream stream, driver.CreateStream(device, /*priority=*/0));
  const absl::StatusOr<driver::Event> event = driver.CreateEvent(device, false);
  absl::Status status = event.status();
  if (event.ok()) {
    status = submit(stream);
    status.Update(AwaitStream(driver, *event, stream, event_count));
    driver.DestroyEvent(*event);
  }
  driver.DestroyStream(stream);
  return status;
}

}  // namespace penstock::runtime
