// Transfer: a counted handle on one copy to or from a State that the caller does not wait for (State::StartSet,
// State::StartRead).
//
//   PS_ASSIGN_OR_RETURN(ps::Transfer next, weights.StartSet(loaded));
//   ...                             // launches, which use what has been set
//   PS_RETURN_IF_ERROR(next.Wait());  // `loaded` is the caller's again
//
// Ownership: copies share the transfer, which continues when every handle is gone.
// Threads:   thread-safe.
// Ordering:  once a transfer has ended, any thread that saw it end (Wait, done) sees what it has read, and the library
//            no longer touches the caller's memory.
// Errors:    as State::Set and State::Read (state.h), as the transfer's status.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/extent.h"

namespace penstock {

namespace runtime {
class StateTransfer;
}

// Options of State::StartSet and State::StartRead.
struct TransferOptions {
  Box box{};  // the elements to copy (Slice); by default all
  Deadline deadline{};  // when the transfer is given up if it has not ended
  std::shared_ptr<const void> keep_alive{};  // the owner of the caller's memory, held until the transfer has ended
};

class PENSTOCK_EXPORT Transfer {
 public:
  Transfer() = default;  // no transfer: done, with FailedPrecondition

  // Whether there is a transfer: not if default-constructed or moved from.
  explicit operator bool() const { return transfer_ != nullptr; }

  // Waits until the transfer has ended, and returns its status. FailedPrecondition inside a host node or callback, for
  // which the transfer might wait.
  absl::Status Wait() const { return Wait(Deadline()); }
  // The same, but returns DeadlineExceeded at the deadline and lets the transfer continue.
  absl::Status Wait(Deadline deadline) const;
  // Whether the transfer has ended. Advances it; never blocks.
  bool done() const;
  // The final status; Unavailable until the transfer has ended.
  absl::Status status() const;

  // For the library: the handle on this transfer.
  explicit Transfer(std::shared_ptr<runtime::StateTransfer> transfer) : transfer_(std::move(transfer)) {}

 private:
  std::shared_ptr<runtime::StateTransfer> transfer_;
};

}  // namespace penstock
