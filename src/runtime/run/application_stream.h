// The order of a run with a stream of the application's own (Bindings::On).
//
// Threads:  whoever launches. What is asked of the stream is asked with no device made current before.
// Errors:   the driver's; see driver.h for streams of other devices and such as capture.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

class RunCore;
class RuntimeCore;
struct RunSlot;

// Makes all lanes wait for what has been submitted to the stream: before all else the run submits, when its mode is
// known. Returns the stream's device.
absl::StatusOr<int> BeginBehindStream(RunSlot& slot, void* stream);

// Returns when all of the run has been submitted and the stream waits for it, or else when the run has drained. The
// run's status where it is abandoned before.
absl::Status HoldStream(RuntimeCore& runtime, driver::Driver& driver, RunCore& run, void* stream, int device);

}  // namespace penstock::runtime
