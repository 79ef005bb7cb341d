// MemoryPressure: what a call waits for that has run out of memory, and whether any is to come: executables on their
// way out, and pinned blocks that runs in flight have been left with.
//
// Ownership: borrows the rest of its runtime.
// Threads:   thread-safe. Whoever waits advances the runs that it waits for.
// Errors:    WithMemory returns what its function does; AllocateHost ResourceExhausted, or DeadlineExceeded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/deadline.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/core/admission.h"
#include "src/runtime/core/devices.h"
#include "src/runtime/core/in_flight_list.h"
#include "src/runtime/core/shutdown_counts.h"

namespace penstock::runtime {

class MemoryPressure {
 public:
  MemoryPressure(Devices& devices, const InFlightList& in_flight, const Admission& admission,
                 host::EventCount& event_count)
      : devices_(devices), in_flight_(in_flight), admission_(admission), event_count_(event_count) {}

  // Calls `make` until it is something other than ResourceExhausted, or no memory is to come: idle pinned slabs are
  // given back first, then whatever executables without handles hold until their last runs have ended. In user code it
  // is called once.
  absl::Status WithMemory(const std::function<absl::Status()>& make);
  // Pinned memory of a HostBuffer. Waits as WithMemory, and for blocks that runs in flight have been left with.
  absl::StatusOr<memory::PinnedBlock> AllocateHost(size_t bytes, Deadline deadline);

  // The last handle on an executable has gone, or memory is about to be freed; all of it has.
  void ReleaseBegins() { releases_.Begin(); }
  void ReleaseEnds();
  // The HostBuffer of a block has gone: bindings or runs may still have it. Then, the block has returned.
  void BlockLeft() { blocks_left_.fetch_add(1, std::memory_order_acq_rel); }
  void LeftBlockReturned();
  // A copy that a State's call leaves to the ring counts as a run that was abandoned, until it has ended.
  void CopyLeft() { copies_left_.fetch_add(1, std::memory_order_acq_rel); }
  void LeftCopyEnded() { copies_left_.fetch_sub(1, std::memory_order_acq_rel); }
  int64_t copies_left() const { return copies_left_.load(std::memory_order_acquire); }
  // Around the end of a run's keep-alives, which may be blocks.
  void LetGoBegins() { letting_go_.fetch_add(1, std::memory_order_acq_rel); }
  void LetGoEnds();

 private:
  bool Wait(int64_t ended_then, const std::function<bool()>& more, bool blocks, Deadline deadline);
  bool MayReturnBlocks(int64_t abandoned) const;

  Devices& devices_;
  const InFlightList& in_flight_;
  const Admission& admission_;
  host::EventCount& event_count_;
  ReleaseCount<> releases_;
  std::atomic<int64_t> copies_left_{0};  // to the ring
  std::atomic<int64_t> letting_go_{0};  // runs that have drained and still have keep-alives
  std::atomic<int64_t> blocks_left_{0};  // of HostBuffers that have gone
};

}  // namespace penstock::runtime
