// Orders a run with a stream of the application's (Bindings::On).
//
// Threads: the launching thread. The stream is queried before any device is made current.
// Errors:  the driver's; see driver.h for streams of other devices and for streams that capture.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

class RunCore;
class RuntimeCore;
struct RunContext;
struct RunSlot;

// Makes all lanes wait for the work submitted to the stream; of a run that is in order, they do that in its turn.
// Called before the run submits anything, once its mode is known. Returns the stream's device.
absl::StatusOr<int> BeginBehindStream(const RunContext& context, RunSlot& slot, void* stream);

// Returns when all of the run has been submitted and the stream waits for it, or when the run has drained. Returns the
// run's status if the run is abandoned before that.
absl::Status HoldStream(RuntimeCore& runtime, driver::Driver& driver, RunCore& run, void* stream, int device);

}  // namespace penstock::runtime
