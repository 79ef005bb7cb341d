// MemoryPressure: lets a call that has run out of memory wait for memory that is about to be freed: by executables that
// are being released, or by runs in flight that hold the last reference to pinned blocks.
//
// Ownership: borrows the rest of its runtime.
// Threads:   thread-safe. A waiting thread advances the runs that it waits for.
// Errors:    WithMemory returns what its function returns; AllocateHost returns ResourceExhausted or DeadlineExceeded.
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

  // Calls `make` until it returns something other than ResourceExhausted or no more memory will be freed. Idle pinned
  // slabs are given back first, then the wait is for executables without handles, which keep memory until their last
  // runs have ended. From user code `make` is called only once.
  absl::Status WithMemory(const std::function<absl::Status()>& make);
  // Allocates pinned memory for a HostBuffer. Waits like WithMemory, and also for blocks that only runs still hold.
  absl::StatusOr<memory::PinnedBlock> AllocateHost(size_t bytes, Deadline deadline);

  // ReleaseBegins: the last handle on an executable has gone, or memory is about to be freed. ReleaseEnds: that memory
  // has been freed.
  void ReleaseBegins() { releases_.Begin(); }
  void ReleaseEnds();
  // BlockLeft: the HostBuffer of a block has gone, though bindings or runs may still hold the block. LeftBlockReturned:
  // the block has been returned.
  void BlockLeft() { blocks_left_.fetch_add(1, std::memory_order_acq_rel); }
  void LeftBlockReturned();
  // A copy that a call of a State leaves to the ring counts as an abandoned run until it has ended.
  void CopyLeft() { copies_left_.fetch_add(1, std::memory_order_acq_rel); }
  void LeftCopyEnded() { copies_left_.fetch_sub(1, std::memory_order_acq_rel); }
  int64_t copies_left() const { return copies_left_.load(std::memory_order_acquire); }
  // Called before and after a run releases its keep-alives, which may be blocks.
  void LetGoBegins() { letting_go_.fetch_add(1, std::memory_order_acq_rel); }
  void LetGoEnds();

 private:
  enum class Awaits : uint8_t { kReleases, kReleasesAndBlocks };
  bool Wait(int64_t ended_then, const std::function<bool()>& more, Awaits awaits, Deadline deadline);
  bool MayReturnBlocks(int64_t abandoned) const;

  Devices& devices_;
  const InFlightList& in_flight_;
  const Admission& admission_;
  host::EventCount& event_count_;
  ReleaseCount<> releases_;
  std::atomic<int64_t> copies_left_{0};  // copies left to the ring
  std::atomic<int64_t> letting_go_{0};  // drained runs that still have keep-alives
  std::atomic<int64_t> blocks_left_{0};  // blocks whose HostBuffers have gone
};

}  // namespace penstock::runtime
