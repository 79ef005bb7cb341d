// A call of Set, Read or Reset: its place in the order, and what it copies through.
//
// Ownership: the call's own while it lasts; the State's where the deadline has passed while it copied.
// Threads:   whoever owns it.
#pragma once

#include <array>

#include "src/memory/pinned_pool.h"
#include "src/runtime/state_core.h"
#include "src/runtime/state_order.h"

namespace penstock::runtime {

struct StateCore::Call {
  Call(const StateCore& state, bool writes) {
    ticket.places[0].ticket = &ticket;
    ticket.places[0].queue = &state.queue_;
    ticket.places[0].writes = writes;
    ticket.places[0].done = &state.events_;
  }
  StatePlace& place() { return ticket.places[0]; }

  StateTicket ticket{1};
  std::array<memory::PinnedBlock, 2> blocks;
};

}  // namespace penstock::runtime
