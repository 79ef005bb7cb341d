// StateCore: a State's memory on its device, its place in the order of runs (state_order.h), and the calls that set,
// read and reset it.
//
// A call takes its place in the State's queue, waits until every earlier user has drained (advancing them itself), and
// copies. Large memory that is not pinned goes through the ring, as in a run; all other memory goes through two blocks
// of pinned memory on the State's own stream. Calls on one State copy one after another. StateTransfer
// (state_transfer.h) makes a call without waiting.
//
// Ownership: shared by handles, graphs and executables, and so by runs in flight; keeps the runtime's core. The memory
//            is freed with the last of them, when it can no longer be in use; adopted memory is left to its owner.
// Threads:   thread-safe.
// Errors:    see state.h. A call whose deadline passes during its copy leaves the copy unfinished but no longer touches
//            the caller's memory. The next user of the State takes back its place and pinned memory; if the copy never
//            ends, they are leaked on purpose.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/extent.h"
#include "penstock/state.h"
#include "src/base/mutex.h"
#include "src/driver/device_ref.h"
#include "src/memory/chunks.h"
#include "src/memory/staging.h"
#include "src/runtime/core/state_order.h"

namespace penstock::runtime {

class RuntimeCore;
struct StateRequest;

// Device memory of the application, and what keeps it alive.
struct AdoptedMemory {
  void* data = nullptr;
  std::shared_ptr<const void> keep_alive{};
};

class StateCore : public StateRecord {
 public:
  // Makes memory with unspecified contents, or takes what is `adopted`. `bytes` is the size of the record's extent.
  static absl::StatusOr<std::shared_ptr<StateCore>> Create(std::shared_ptr<RuntimeCore> runtime, StateRecord record,
                                                           size_t bytes, const AdoptedMemory* adopted = nullptr);
  ~StateCore();
  StateCore(const StateCore&) = delete;
  StateCore& operator=(const StateCore&) = delete;

  // The StateCore of a record in a graph compiled by its own runtime (Validate has checked that), or in a State handle.
  static const StateCore& Of(const StateRecord& record) { return static_cast<const StateCore&>(record); }

  void* memory() const { return memory_; }
  StateQueue& queue() const { return queue_; }

  // Waits until it is done; `request` is without its box.
  absl::Status Transfer(StateRequest request, const Box& box, Deadline deadline) const;
  absl::Status Reset(Deadline deadline, const char* what = "Reset") const;
  absl::Status status() const;
  // Takes back what a call left behind at its deadline, once none of it is in flight. Returns false if there is nothing
  // left to take back.
  bool TakeBack() const;

 private:
  friend class StateTransfer;
  struct Call;
  static constexpr size_t kChunk = size_t{4} << 20;  // bytes copied through one pinned block

  StateCore(std::shared_ptr<RuntimeCore> runtime, StateRecord record, size_t bytes, const AdoptedMemory* adopted);
  absl::Status MakeResources();
  // Sets the request's box. Refuses one outside the State, and other memory than for its elements.
  absl::Status FindBox(StateRequest& request, const Box& box) const;
  template <class Work>
  absl::Status Do(const StateRequest& request, Deadline deadline, Work work) const;
  absl::Status Enter(Call& call) const;
  absl::Status AwaitTurn(const Call& call, Deadline deadline) const;
  absl::Status NeverItsTurn(const Call& call, const char* why) const;
  // What the call returns after its work has ended with `status`; decides whether the State is poisoned.
  absl::Status Conclude(Call& call, const StateRequest& request, absl::Status status) const;

  // The copies of a call whose turn has come (state_copy.cc).
  absl::Status Copy(Call& call, const StateRequest& request, Deadline deadline) const;
  absl::Status CopyByBlocks(Call& call, const StateRequest& request, Deadline deadline) const;
  absl::Status CopyByRing(memory::Staging& ring, Call& call, const StateRequest& request, Deadline deadline) const;
  // Null if the two blocks suffice.
  absl::StatusOr<memory::Staging*> RingFor(const StateRequest& request) const;
  void PostToRing(memory::Staging& ring, Call& call, const StateRequest& request) const;
  // Fills a block, if the call writes, and submits its copy; the same for what a copy has brought to a block.
  absl::Status SubmitChunk(Call& call, const StateRequest& request, const memory::Chunks& chunks, size_t index) const;
  static void EmptyBlock(Call& call, const StateRequest& request, const memory::Chunks& chunks, size_t index);
  driver::CopyOp OpOf(const StateRequest& request) const;
  static absl::Status CutShort(const char* why);
  absl::Status Zero(Call& call, Deadline deadline) const;
  absl::Status AwaitCopy(size_t event, Deadline deadline) const;
  bool Settled() const;

  static void Leak(std::unique_ptr<Call> call);
  absl::Status Describe(const absl::Status& cause) const;

  const std::shared_ptr<RuntimeCore> runtime_;
  const driver::DeviceRef device_;
  const size_t bytes_;
  const bool owns_memory_;
  void* memory_ = nullptr;
  std::shared_ptr<const void> keep_alive_;  // of adopted memory
  driver::Stream stream_;
  std::vector<driver::Event> events_;  // one for each pinned block of a call
  mutable StateQueue queue_{*this};  // guarded by the runtime's StateOrder

  mutable base::Mutex mu_;
  mutable std::unique_ptr<Call> left_behind_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
