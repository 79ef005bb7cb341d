// StateCore: a State's memory on its device, its place in the order of runs (state_order.h), and the calls that set,
// read and reset it.
//
// A call takes its place in the State's queue, waits until everybody before it has drained (advancing them itself), and
// copies: large memory that is not pinned through the ring, as a run does; any other through two blocks of pinned
// memory on a stream of the State's own. At most one call of a State copies at once.
//
// Ownership: shared by handles, graphs, executables and so by runs in flight; keeps the runtime's core. The memory is
//            freed with the last of them, when nobody can be using it any more.
// Threads:   thread-safe.
// Errors:    see state.h. A call whose deadline passes while it copies leaves what it was copying behind, but touches
//            the caller's memory no more: its place and pinned memory are taken back by whoever comes next, or leaked
//            on purpose where the copy never ends.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/state.h"
#include "src/base/mutex.h"
#include "src/driver/device_ref.h"
#include "src/memory/staging.h"
#include "src/runtime/core/state_order.h"

namespace penstock::runtime {

class RuntimeCore;

class StateCore : public StateRecord {
 public:
  // Memory of unspecified contents. `bytes` is that of the record's extent.
  static absl::StatusOr<std::shared_ptr<StateCore>> Create(std::shared_ptr<RuntimeCore> runtime, StateRecord record,
                                                           size_t bytes);
  ~StateCore();
  StateCore(const StateCore&) = delete;
  StateCore& operator=(const StateCore&) = delete;

  // What a record of a graph compiled by its own runtime is (Validate has seen to that), or one of a State handle.
  static const StateCore& Of(const StateRecord& record) { return static_cast<const StateCore&>(record); }

  void* memory() const { return memory_; }
  StateQueue& queue() const { return queue_; }

  absl::Status Set(const void* contents, size_t elements, Deadline deadline, const char* what = "Set") const;
  absl::Status Read(void* contents, size_t elements, Deadline deadline) const;
  absl::Status Reset(Deadline deadline, const char* what = "Reset") const;
  absl::Status status() const;
  // Takes back what a call has left behind at its deadline, once nothing of it is under way. False: there is nothing to
  // be taken back.
  bool TakeBack() const;

 private:
  struct Call;
  static constexpr size_t kChunk = size_t{4} << 20;  // bytes copied through one pinned block

  StateCore(std::shared_ptr<RuntimeCore> runtime, StateRecord record, size_t bytes);
  absl::Status MakeResources();
  absl::Status CheckElements(const char* what, const void* contents, size_t elements) const;
  template <class Work>
  absl::Status Do(const char* what, bool writes, Deadline deadline, Work work) const;
  absl::Status AwaitTurn(const Call& call, Deadline deadline) const;
  // Of these, one of `from` and `to` is null.
  absl::Status Copy(Call& call, const std::byte* from, std::byte* to, Deadline deadline) const;
  absl::Status CopyByBlocks(Call& call, const std::byte* from, std::byte* to, Deadline deadline) const;
  absl::Status CopyByRing(memory::Staging& ring, Call& call, const std::byte* from, std::byte* to,
                          Deadline deadline) const;
  // Null: the two blocks do.
  absl::StatusOr<memory::Staging*> RingFor(const void* contents) const;
  // `bytes` of the State from `at` on, from host memory or to it.
  driver::CopyOp OpOf(size_t at, size_t bytes, const void* from, void* to) const;
  absl::Status SubmitChunk(size_t index, void* block, bool in) const;
  absl::Status Zero(Call& call, Deadline deadline) const;
  absl::Status AwaitCopy(size_t event, Deadline deadline) const;
  bool Settled() const;
  static void Leak(std::unique_ptr<Call> call);
  absl::Status Describe(const absl::Status& cause) const;
  size_t ChunkBytes(size_t index) const;

  const std::shared_ptr<RuntimeCore> runtime_;
  const driver::DeviceRef device_;
  const size_t bytes_;
  void* memory_ = nullptr;
  driver::Stream stream_;
  std::vector<driver::Event> events_;  // one for each pinned block of a call
  mutable StateQueue queue_{*this};  // guarded by the runtime's StateOrder

  mutable base::Mutex mu_;
  mutable std::unique_ptr<Call> left_behind_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
