// StateRequest: what a call of Set, Read or Reset is to do. StateCore::Call: its place in the order, and the memory
// that it copies through.
//
// Ownership: a Call is owned by the call while it lasts, or by the State if the deadline passed during the copy; that
// of
//            a StateTransfer is part of it.
// Threads:   used only by their owner.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/memory/staging.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/state_order.h"
#include "src/runtime/state/copy_life.h"
#include "src/runtime/state/state_box.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

inline constexpr char kDeadlinePassed[] = "the deadline passed";  // why a call ends before it is done

struct StateRequest {
  const char* what = "";  // the call, for messages
  bool writes = false;
  // The caller's memory: `from` if it writes (null for Reset), else `to`.
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t elements = 0;  // of that memory
  StateBox box{};
  bool clears = false;  // writes all of the State, which ends its poison

  const std::byte* contents() const { return writes ? from : to; }
};

struct StateCore::Call {
  Call(const StateCore& state, const StateRequest& request) : runtime(state.runtime_.get()) {
    ticket.places[0].ticket = &ticket;
    ticket.places[0].queue = &state.queue_;
    ticket.places[0].writes = request.writes;
    ticket.places[0].clears = request.clears;
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
