// PipelineCore: what a Pipeline handle refers to: producers, consumers, waiting, and the end.
//
// Its parts: PipelineState holds the items and knows where each of them is; RunQueues launch them and see runs end;
// HostStages has the threads of host stages; SubmitterWakeup calls submission threads; StateReset resets States; a
// PullLoop calls a source and a sink.
//
// Ownership: shared by the handle, items that others hold, and the completion thread while it watches.
// Threads:   thread-safe. An item's record belongs to the thread that has the item (item.h).
// Locks:     none of its own; see PipelineState.
// Errors:    see penstock/pipeline.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/host/progress.h"
#include "src/observe/profiled_pipelines.h"
#include "src/runtime/core/progressable.h"
#include "src/runtime/pipeline/host_stage.h"
#include "src/runtime/pipeline/internals.h"
#include "src/runtime/pipeline/pipeline_state.h"
#include "src/runtime/pipeline/run_queue.h"
#include "src/runtime/pipeline/state_reset.h"
#include "src/runtime/pipeline/submitter_wakeup.h"
#include "src/runtime/pipeline/utilization.h"

namespace penstock::runtime {

// What happens to the pipeline when a source has no more.
enum class AtEndOfSource : uint8_t { kStop, kLeaveOpen };

class PipelineCore final : public std::enable_shared_from_this<PipelineCore>,
                           public Progressable,
                           public observe::ProfiledPipeline {
 public:
  static absl::StatusOr<std::shared_ptr<PipelineCore>> Create(detail::StageList stages, const detail::ValueType& value,
                                                              PipelineOptions options);
  PipelineCore(const PipelineCore&) = delete;
  PipelineCore& operator=(const PipelineCore&) = delete;

  // For producers.
  absl::StatusOr<AnyItem> Acquire(Key key, int device, Deadline deadline, Wait wait);
  absl::Status Submit(PipelineItem& item, const ItemOptions& options);
  // For consumers.
  AnyItem Pop(Deadline deadline);
  absl::Status RunAll(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink,
                      AtEndOfSource at_end);
  // An item that was acquired or popped is dropped.
  void Return(PipelineItem& item);

  void Stop();
  absl::Status Drain(Deadline deadline);
  void Cancel();
  absl::Status status() const;
  PipelineStats stats() const override;
  const PipelineState& state() const { return state_; }  // for what is constant in it
  // Called when the handle ends: cancels, and returns when nothing is in flight, or leaves that to another thread.
  void Close();

  Bindings& BindingsOf(PipelineItem& item, uint32_t graph);
  std::pair<void*, size_t> Find(const PipelineItem& item, uint32_t graph, int32_t index, TypeInfo type) const;
  absl::StatusOr<int64_t> Count(const PipelineItem& item, uint32_t graph, int32_t output) const;

  void Ref() override;
  void Unref() override;
  void Poll() override;
  void Advance() override;
  bool drained() const override { return closed_.load(std::memory_order_acquire); }
  bool idle() const override { return !queues_.Busy() || state_.activity.waiting.load() > 0; }
  host::TimePoint due() const override;

 private:
  friend class PullLoop;  // the loop of RunAll
  using Clock = PipelineState::Clock;
  // Why no window slot was taken: none is free, or a stage has no slot.
  struct MissingSlot {
    int stage = -1;  // -1: window slots
    int wanted = -1;  // the member of its sets that it must be; -1: any
  };

  PipelineCore(std::unique_ptr<StageTable> table, const detail::ValueType& value, PipelineOptions options);

  absl::Status CheckMayWait(const char* what) const;
  // A held item with the slots that it keeps; kNone if no window slot or no slot is free. All other errors are final.
  absl::StatusOr<int> TakePlace(Key key, int device);
  // Takes a slot of each stage whose slots items keep. Returns false if one has none, which `missing` then names.
  absl::StatusOr<bool> TakeKeptSlots(PipelineItem& item, MissingSlot& missing);
  bool SlotsAreFree(PipelineItem& item, MissingSlot& missing);
  bool DropOne(const MissingSlot& missing);
  AnyItem ItemAt(int item) { return detail::Internals<AnyItem>::Make(shared_from_this(), state_.items.at(item)); }
  absl::Status Enter(PipelineItem& item, const ItemOptions& options);
  void PumpHere();
  bool Free(PipelineItem& item);
  int TakeReady(ItemBook::Batch* batch = nullptr);
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
  SubmitterWakeup wakeup_{state_, queues_};
  std::atomic<bool> closed_{false};  // set once: nothing is in flight, and no thread is left
  std::atomic<int> refs_{0};  // held by the completion thread
  std::shared_ptr<PipelineCore> self_;  // set while there are any
};

}  // namespace penstock::runtime
