// PipelineCore: what a Pipeline handle stands for: producers, consumers, waiting, and the end.
//
// Its parts: PipelineState has the items and says where each of them is; RunQueues launch them and see runs end;
// HostStages has the threads of host stages; SubmitterWakeup has submission threads help; StateReset resets States.
//
// Ownership: shared by the handle, items that others hold, and the completion thread while it watches.
// Threads:   thread-safe. An item's record belongs to whoever has the item (item.h).
// Locks:     none of its own; see PipelineState.
// Errors:    see penstock/pipeline.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/host/progress.h"
#include "src/runtime/core/progressable.h"
#include "src/runtime/pipeline/host_stage.h"
#include "src/runtime/pipeline/pipeline_state.h"
#include "src/runtime/pipeline/run_queue.h"
#include "src/runtime/pipeline/state_reset.h"
#include "src/runtime/pipeline/submitter_wakeup.h"
#include "src/runtime/pipeline/utilization.h"

namespace penstock::runtime {

class PipelineCore final : public std::enable_shared_from_this<PipelineCore>, public Progressable {
 public:
  static absl::StatusOr<std::shared_ptr<PipelineCore>> Create(detail::StageList stages, const detail::ValueType& value,
                                                              PipelineOptions options);
  PipelineCore(const PipelineCore&) = delete;
  PipelineCore& operator=(const PipelineCore&) = delete;

  // For those that fill items.
  absl::StatusOr<AnyItem> Acquire(Key key, int device, Deadline deadline, bool wait);
  absl::Status Submit(PipelineItem& item, const ItemOptions& options);
  // For those that take them out.
  AnyItem Pop(Deadline deadline);
  absl::Status RunAll(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink);
  // An item that was acquired or taken out is dropped.
  void Return(PipelineItem& item);

  void Stop();
  absl::Status Drain(Deadline deadline);
  void Cancel();
  absl::Status status() const;
  PipelineStats stats() const;
  int window() const { return state_.items.size(); }
  // The handle has gone: cancels, and returns when nothing is under way, or leaves that to another thread.
  void Close();

  Bindings& BindingsOf(PipelineItem& item, uint32_t graph);
  std::pair<void*, size_t> Find(const PipelineItem& item, uint32_t graph, int32_t index, TypeInfo type) const;

  void Ref() override;
  void Unref() override;
  void Poll() override;
  void Advance() override;
  bool drained() const override { return closed_.load(std::memory_order_acquire); }
  bool idle() const override { return !queues_.Busy() || waiting_.load() > 0; }
  host::TimePoint due() const override;

 private:
  using Clock = PipelineState::Clock;
  // Why no place was taken: there is none, or a stage has no slot.
  struct MissingSlot {
    int stage = -1;  // -1: places
    int wanted = -1;  // the member of its sets that it must be of; -1: any
  };

  PipelineCore(std::unique_ptr<StageTable> table, const detail::ValueType& value, PipelineOptions options);

  // A thread that waits here pushes the queues on. False: at the deadline.
  template <class Step>
  bool WaitFor(Deadline deadline, Step step);
  absl::Status CheckMayWait(const char* what) const;
  // A held item with the slots that it keeps; kNone: there is no place, or no slot. The other errors are final.
  absl::StatusOr<int> TakePlace(Key key, int device);
  // Whether there was a slot of each stage whose slots items keep; if not `missing` says of which, on which device.
  absl::StatusOr<bool> TakeKeptSlots(PipelineItem& item, MissingSlot& missing);
  bool SlotsAreFree(PipelineItem& item, MissingSlot& missing);
  bool DropOldest(const MissingSlot& missing);
  AnyItem ItemAt(int item) { return AnyItem(shared_from_this(), &state_.items.at(item)); }
  absl::Status Enter(PipelineItem& item, const ItemOptions& options);
  absl::StatusOr<bool> PullInto(int place, const std::function<bool(AnyItem&)>& pull, AnyItem& refused);
  void PumpHere();
  bool Free(PipelineItem& item);
  int TakeReady();
  bool IsStopped() const;
  bool AtEnd() const;
  bool IsQuiet() const;
  void EndThreads();
  void CloseHere();

  PipelineState state_;
  RunQueues queues_{state_};
  HostStages hosts_{state_, queues_};
  StateReset reset_{state_, queues_, this, [this] { return stats(); }};
  const BusyShares shares_;
  const Clock::time_point made_ = Clock::now();
  alignas(kCacheLine) std::atomic<int> waiting_{0};  // threads in WaitFor
  SubmitterWakeup wakeup_{state_, queues_, waiting_};
  std::atomic<bool> closed_{false};  // set once: nothing is under way, and no thread is left
  std::atomic<int> refs_{0};  // of the completion thread
  std::shared_ptr<PipelineCore> self_;  // while there are any
};

}  // namespace penstock::runtime
