// Transfer: the public handle of a StateTransfer.
#include "penstock/transfer.h"

#include "src/runtime/state/state_transfer.h"

namespace penstock {
namespace {

absl::Status NoTransfer() {
  return absl::FailedPreconditionError("this Transfer was default-constructed or moved from");
}

}  // namespace

absl::Status Transfer::Wait(Deadline deadline) const {
  return transfer_ == nullptr ? NoTransfer() : transfer_->Wait(deadline);
}
bool Transfer::done() const {
  if (transfer_ == nullptr || transfer_->ended() || transfer_->forked()) return true;
  transfer_->Advance();
  return transfer_->ended();
}
absl::Status Transfer::status() const { return transfer_ == nullptr ? NoTransfer() : transfer_->status(); }

}  // namespace penstock
