// Host devices: CPU threads that implement the driver interface with CUDA's semantics.
//
// Work really runs, on threads of the driver and never on the caller's: one thread per device for each copy direction,
// and several for kernels, fills and copies within or between devices. Device memory has addresses that the host cannot
// read or write; the driver translates them in copies, fills and kernel arguments. Operations that CUDA would do
// synchronously or answer with a fault are refused: copies from pageable memory, ranges outside live device memory,
// memory of another device.
//
// Ownership: the driver owns its threads and memory. Destroying it finishes the queued work. The event count
//            must outlive it.
// Threads:   thread-safe. Its parts have one mutex each (Scheduler, HostGraphs, HostCaptures, DeviceHeap,
//            PinnedMemory), never nested.
// Ordering:  as in driver.h. Handles are never reused: a destroyed stream or event is InvalidArgument.
// Errors:    CreateHostDriver: ResourceExhausted if the system grants no threads, or no memory for them. Otherwise as
//            in driver.h; failures of host code go to the RunFault of its tag, and are lost if that is null.
#pragma once

#include <cstdint>
#include <memory>

#include "src/driver/driver.h"
#include "src/host/event_count.h"

namespace penstock::driver::host {

struct HostDriverOptions {
  int devices = 1;
  int threads_per_device =
      0;  // for kernels; 0: the processors that the process may use (base/limits.h), shared by the devices, at least 2
  // Per device, at most what the process may use; 0: 16 GiB, but all devices together at most half of what it may use.
  int64_t memory_bytes = 0;
  uint64_t order_seed = 0;  // for tests; if not 0, it seeds the order of work that no rule orders
  penstock::host::EventCount* event_count = nullptr;  // notified when an event completes; may be null
};

absl::StatusOr<std::unique_ptr<Driver>> CreateHostDriver(const HostDriverOptions& options);

}  // namespace penstock::driver::host
