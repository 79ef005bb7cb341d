// StateTransfer: a Set or Read of a State for which no thread has to wait. It is a state machine that any thread may
// advance, and no thread waits for the device in it.
//
// It is queued until every earlier user of the State has drained, then copies like a call (state_core.h), and ends. If
// its deadline passes during the copy, or a Shutdown gives up, it ends for its user at once, and leaves the State's
// order when what was in flight has drained.
//
// Ownership: shared by handles and, until it has drained, by the thread that watches it. Keeps the State and the
//            caller's keep-alive until it has drained.
// Threads:   thread-safe. One thread at a time owns the machine (CoalescingRunner); only that touches the members below
//            "The machine". The completion thread advances it until it has drained.
// Errors:    see state.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/transfer.h"
#include "src/base/coalescing_runner.h"
#include "src/base/mutex.h"
#include "src/memory/chunks.h"
#include "src/runtime/core/progressable.h"
#include "src/runtime/state/state_call.h"
#include "src/runtime/state/state_core.h"

namespace penstock::runtime {

class StateTransfer final : public Progressable, public std::enable_shared_from_this<StateTransfer> {
 public:
  // Takes a place in the State's order and begins what can begin. `request` is without its box.
  static absl::StatusOr<std::shared_ptr<StateTransfer>> Start(std::shared_ptr<const StateCore> state,
                                                              StateRequest request, const TransferOptions& options);

  bool forked() const { return runtime_->forked(); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  absl::Status status() const;
  absl::Status Wait(Deadline deadline);

  // Only one thread watches it.
  void Ref() override { watched_ = shared_from_this(); }
  void Unref() override { const std::shared_ptr<StateTransfer> last = std::move(watched_); }
  void Advance() override;
  bool drained() const override { return drained_.load(std::memory_order_acquire); }
  bool idle() const override { return false; }
  host::TimePoint due() const override { return ended() ? host::TimePoint::max() : deadline_.at(); }

 private:
  enum class Phase : uint8_t { kQueued, kCopying, kLeft, kDrained };

  StateTransfer(std::shared_ptr<const StateCore> state, const StateRequest& request, const TransferOptions& options);
  absl::Status Enter();
  void Step();
  void Queued();
  void Copying(absl::StatusOr<bool> over);
  bool IsItsTurn() const;
  // Why it is to end before it is done; null: it goes on.
  const char* GivenUp() const;
  void Begin();
  absl::StatusOr<bool> Copy();
  absl::Status Submit();
  std::shared_ptr<const StateCore> Leave();
  void End(const absl::Status& status, std::shared_ptr<const StateCore> state);

  const std::shared_ptr<RuntimeCore> runtime_;
  const StateRequest request_;
  const Deadline deadline_;
  base::CoalescingRunner<> notes_;  // calls of Advance; the first caller owns the machine
  std::atomic<bool> ended_{false};  // for its user; set with mu_ held
  std::atomic<bool> drained_{false};  // nothing is left to advance; set once, by the machine's owner
  std::shared_ptr<StateTransfer> watched_;  // itself, while a thread watches it; only that thread's

  mutable base::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  // The machine.
  std::shared_ptr<const StateCore> state_;  // set until drained
  std::shared_ptr<const void> keep_alive_;
  StateCore::Call call_;
  const memory::Chunks chunks_;
  size_t submitted_ = 0, arrived_ = 0;  // chunks through the two blocks
  memory::Staging* ring_ = nullptr;  // set if it copies through the ring
  Phase phase_ = Phase::kQueued;
};

}  // namespace penstock::runtime
