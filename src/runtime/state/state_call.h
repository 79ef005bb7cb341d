// A call of Set, Read or Reset: its place in the order, and what it copies through.
//
// Ownership: the call's own while it lasts; the State's where the deadline has passed while it copied.
// Threads:   whoever owns it.
#pragma once

#include <array>

#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/state/copy_life.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

struct StateCore::Call {
  Call(const StateCore& state, bool writes) : runtime(state.runtime_.get()) {
    ticket.places[0].ticket = &ticket;
    ticket.places[0].queue = &state.queue_;
    ticket.places[0].writes = writes;
    ticket.places[0].done = &state.events_;
  }
  StatePlace& place() { return ticket.places[0]; }

  // By a thread of the ring, or whoever withdraws the copy: the State may be gone, the runtime is not before this call
  // has ended or, where that was left, this tells so.
  static void EndInRing(void* context, int64_t) {
    auto* const call = static_cast<Call*>(context);
    RuntimeCore& runtime = *call->runtime;
    call->ring.End() ? runtime.LeftCopyEnded() : runtime.event_count().Notify();
  }

  RuntimeCore* const runtime;
  StateTicket ticket{1};
  std::array<memory::PinnedBlock, 2> blocks;
  // Or else:
  memory::StagedCopy staged;
  driver::RunFault fault;
  CopyLife<> ring;
};

}  // namespace penstock::runtime
