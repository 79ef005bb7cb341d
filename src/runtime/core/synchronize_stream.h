// Waits for a stream during setup, before there are runs.
//
// Threads: any thread on which the stream's device is current.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"

namespace penstock::runtime {

// A thread that polls sees the end at once, unless it has polled for a while and naps.
enum class AwaitBy : uint8_t { kSleeping, kPolling };

// Records `event` in the stream and waits until all work submitted before it has ended. The caller must not free or
// destroy anything until then, so a failed wait is tried once more.
absl::Status AwaitStream(driver::Driver& driver, driver::Event event, driver::Stream stream,
                         host::EventCount& event_count, AwaitBy by = AwaitBy::kSleeping);

// Passes a new stream of the device to `submit`, and returns when what that has submitted to it has ended.
absl::Status RunOnNewStream(driver::Driver& driver, int device, host::EventCount& event_count,
                            absl::FunctionRef<absl::Status(driver::Stream)> submit);

}  // namespace penstock::runtime
