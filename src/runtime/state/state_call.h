// A call of Set, Read or Reset: its place in the order, and the memory that it copies through.
//
// Ownership: owned by the call while it lasts, or by the State if the deadline passed during the copy.
// Threads:   used only by its owner.
#pragma once

#include <array>
#include <memory>

#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/state/copy_life.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

struct StateCore::Call {
  Call(const StateCore& state, AccessMode mode) : runtime(state.runtime_.get()) {
    ticket.places[0].ticket = &ticket;
    ticket.places[0].queue = &state.queue_;
    ticket.places[0].writes = mode == AccessMode::kWrite;
    ticket.places[0].done = &state.events_;
  }
  StatePlace& place() { return ticket.places[0]; }

  // Called by a thread of the ring, or by the one that withdraws the copy. The State may be gone by then, but the
  // runtime lives until this call has ended or, if the copy was left, until this function reports its end.
  static void EndInRing(void* context, int64_t) {
    auto* const call = static_cast<Call*>(context);
    RuntimeCore& runtime = *call->runtime;
    call->ring.End() ? runtime.LeftCopyEnded() : runtime.event_count().Notify();
  }

  RuntimeCore* const runtime;
  StateTicket ticket{1};
  std::array<memory::PinnedBlock, 2> blocks;
  // Used instead of `blocks`, for a copy through the ring:
  memory::StagedCopy staged;
  driver::RunFault fault;
  CopyLife<> ring;
  std::shared_ptr<const void> owner;  // of adopted memory that is leaked with the call
};

}  // namespace penstock::runtime
