// Waiting for a stream while something is made, before there are runs.
//
// Threads: any; the stream's device is current.
#pragma once

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"

namespace penstock::runtime {

// Until all that was submitted to the stream has ended, recording `event` for it. Who has submitted cannot free or
// destroy before that, so it is tried twice.
absl::Status AwaitStream(driver::Driver& driver, driver::Event event, driver::Stream stream,
                         host::EventCount& event_count);

}  // namespace penstock::runtime
