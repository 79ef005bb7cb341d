// PipelineState: the items of a pipeline, where each of them is, and what happens to an item when a stage has ended it.
//
// Ownership: owns the items and the values in them; shares the stage table and the runtime.
// Threads:   an item's record belongs to the thread that has the item (item.h). The rest is guarded by mu, or atomic.
// Locks:     mu guards the book, the placement and the counts; no user code, driver or other component is called with
//            it held, except notifications.
// Errors:    an item ends with the failure of a stage, of its deadline, or of the pipeline's end.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "penstock/pipeline.h"
#include "src/base/mutex.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/pipeline/abandoned_items.h"
#include "src/runtime/pipeline/activity.h"
#include "src/runtime/pipeline/item_book.h"
#include "src/runtime/pipeline/items.h"
#include "src/runtime/pipeline/placement.h"
#include "src/runtime/pipeline/poisoned_stages.h"
#include "src/runtime/pipeline/shared_launching.h"
#include "src/runtime/pipeline/stage_table.h"

namespace penstock::runtime {

struct PipelineCounts {
  explicit PipelineCounts(const StageTable& table) : hosts(table.stages().size()) {}
  int64_t accepted = 0, delivered = 0, dropped = 0, refused = 0, failed = 0, retries = 0;
  std::vector<StageWork> hosts;  // one for each stage
};

struct PipelineEnding {
  bool stopped = false;  // nothing comes in
  bool threads = false;  // the pipeline's threads are to end
  absl::Status with;  // what unfinished items end with; OK: they continue
  absl::Status failure;
};

class PipelineState {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostPlaces = 1 << 20;

  // Throws std::bad_alloc if memory for that many items is lacking.
  PipelineState(std::unique_ptr<StageTable> stages, const detail::ValueType& value, PipelineOptions from);
  PipelineState(const PipelineState&) = delete;
  PipelineState& operator=(const PipelineState&) = delete;

  // OK while items may come in; otherwise the reason why not.
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // An item's stage has ended: the item goes on, is retried, or ends.
  void EndStage(int item, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void FinishItem(int item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // If the item waits for a host stage, notifies one of its threads.
  void WakeStage(int item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The pipeline has failed or is cancelled: items that wait end with `why`, and so do those that come to wait later.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void EndAll(const absl::Status& with) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // A State of the stage was poisoned: it is reset, or the pipeline fails.
  void NotePoison(int stage, const absl::Status& poison, uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The item's deadline counts from now on.
  void NoteDue(const PipelineItem& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The device of the stage (StageTable::devices) on which an item should begin it; -1 if none is free. See
  // Placement::Best.
  int BestDevice(const Stage& stage, int wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void SetBlocked(int device, bool blocked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Unblocks devices of the stage that have free slots now. Returns whether there was one.
  bool Unblock(const Stage& stage);
  // The item's run continues after it was abandoned (AbandonedItems).
  void Abandon(const PipelineItem& item, int stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Ends items that wait and are past their deadline.
  void Expire();
  // At or before the first deadline of a waiting item.
  host::TimePoint ItemDue() const;
  // Frees a window slot. Returns false if the item's run continues and may use what is in it; the window slot is then
  // freed when the run has ended.
  bool Free(PipelineItem& item);
  // Gives back what abandoned items hold whose runs have ended. Returns true if there was any.
  bool FreeAbandoned();
  bool HasAbandoned() const { return activity.abandoned.load() > 0; }

  const PipelineOptions& options() const { return options_; }
  RuntimeCore& runtime() const { return *runtime_; }
  const std::shared_ptr<RuntimeCore>& shared_runtime() const { return runtime_; }
  bool cancels_runs() const { return cancel_runs_.load(); }
  // Destroys the callables that users gave. Nothing may be inside the pipeline.
  void DropCallables();

  PipelineActivity activity;
  const std::unique_ptr<StageTable> table;

  mutable base::Mutex mu;
  ItemBook book ABSL_GUARDED_BY(mu);
  Placement placement ABSL_GUARDED_BY(mu);
  PoisonedStages poisoned ABSL_GUARDED_BY(mu);
  PipelineCounts counts ABSL_GUARDED_BY(mu);
  PipelineEnding ending ABSL_GUARDED_BY(mu);
  std::vector<base::CondVar> host_waiting;  // one for each stage: its threads wait for items
  base::CondVar service;  // the thread that resets States and reports progress waits here
  Items items;
  SharedLaunching launching;

 private:
  const std::shared_ptr<RuntimeCore> runtime_;
  PipelineOptions options_;
  AbandonedItems abandoned_ ABSL_GUARDED_BY(mu);
  std::atomic<int64_t> due_ns_{INT64_MAX};  // see ItemDue; set with mu held
  std::atomic<bool> cancel_runs_{false};  // set with mu held
};

}  // namespace penstock::runtime
