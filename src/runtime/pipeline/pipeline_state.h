// PipelineState: the items of a pipeline, where each of them is, and what becomes of it when a stage has ended it.
//
// Ownership: owns the items and the values in them; shares the stage table and the runtime.
// Threads:   an item's record belongs to who has the item (item.h). The rest is guarded by mu, or atomic.
// Locks:     mu guards the book, the placement and the counts; no user code, driver or other component is called with
//            it held, except notifications.
// Errors:    an item ends with the failure of a stage, its deadline's, or that of the pipeline's end.
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
#include "src/runtime/pipeline/item_book.h"
#include "src/runtime/pipeline/items.h"
#include "src/runtime/pipeline/placement.h"
#include "src/runtime/pipeline/poisoned_stages.h"
#include "src/runtime/pipeline/shared_launching.h"
#include "src/runtime/pipeline/stage_table.h"

namespace penstock::runtime {

// What a host stage, or a device of another one, has done.
struct StageWork {
  int64_t working = 0, done = 0, failed = 0, busy_ns = 0;

  void Begin(PipelineItem& item);
  void End(const PipelineItem& item, bool failed_in_it);
};

struct PipelineCounts {
  explicit PipelineCounts(const StageTable& table) : hosts(table.stages().size()), devices(table.devices().size()) {}
  int64_t accepted = 0, delivered = 0, dropped = 0, refused = 0, failed = 0, retries = 0;
  std::vector<StageWork> hosts;  // a stage each
  std::vector<StageWork> devices;  // StageTable::devices
};

struct PipelineEnding {
  bool stopped = false;  // nothing comes in
  bool threads = false;  // the pipeline's threads are to end
  absl::Status with;  // what items end with that have not; OK: they go on
  absl::Status failure;
};

class PipelineState {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostPlaces = 1 << 20;

  // Throws std::bad_alloc where there is no memory for so many items.
  PipelineState(std::unique_ptr<StageTable> stages, const detail::ValueType& value, PipelineOptions from);
  PipelineState(const PipelineState&) = delete;
  PipelineState& operator=(const PipelineState&) = delete;

  // Nothing more comes in, or why it does.
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // An item's stage has ended: it goes on, is tried again, or ends.
  void EndStage(int item, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void FinishItem(int item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Where it waits for a host stage, a thread of that is notified.
  void WakeStage(int item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The pipeline has failed, or is cancelled: what waits ends with it, and so does what comes to wait.
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void EndAll(const absl::Status& with) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // A State of the stage was poisoned: it is reset, or the pipeline fails.
  void NotePoison(int stage, const absl::Status& poison, uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The item's deadline counts from now on.
  void NoteDue(const PipelineItem& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // On which device of the stage (StageTable::devices) an item is to begin it; -1: none is free. As Placement::Best.
  int BestDevice(const Stage& stage, int wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void SetBlocked(int device, bool blocked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether a device of the stage was blocked and has free slots now.
  bool Unblock(const Stage& stage);
  // An item's run goes on after it was abandoned (AbandonedItems).
  void Abandon(const PipelineItem& item, int stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Ends items that wait and are past their deadline.
  void Expire();
  // No later than the first deadline of an item that waits.
  host::TimePoint ItemDue() const;
  // Frees a place. False: the item's run goes on, and may use what is in it; then its place comes free when that has
  // ended.
  bool Free(PipelineItem& item);
  // Gives back what abandoned items have of which the runs have ended. True: some was.
  bool FreeAbandoned();
  bool HasAbandoned() const { return abandoned_count_.load() > 0; }

  const PipelineOptions& options() const { return options_; }
  RuntimeCore& runtime() const { return *runtime_; }
  const std::shared_ptr<RuntimeCore>& shared_runtime() const { return runtime_; }
  bool cancels_runs() const { return cancel_runs_.load(); }
  // What users gave that may be called goes, with nothing inside.
  void DropCallables();

  const std::unique_ptr<StageTable> table;

  alignas(kCacheLine) mutable base::Mutex mu;  // apart from `table`, which all threads read
  ItemBook book ABSL_GUARDED_BY(mu);
  Placement placement ABSL_GUARDED_BY(mu);
  PoisonedStages poisoned ABSL_GUARDED_BY(mu);
  PipelineCounts counts ABSL_GUARDED_BY(mu);
  PipelineEnding ending ABSL_GUARDED_BY(mu);
  std::vector<base::CondVar> host_waiting;  // a stage each: its threads, for items
  base::CondVar service;  // the thread that resets States and tells of progress
  Items items;
  SharedLaunching launching;

 private:
  const std::shared_ptr<RuntimeCore> runtime_;
  PipelineOptions options_;
  AbandonedItems abandoned_ ABSL_GUARDED_BY(mu);
  std::atomic<int> abandoned_count_{0};  // set with mu held
  std::atomic<int64_t> due_ns_{INT64_MAX};  // see ItemDue; set with mu held
  std::atomic<bool> cancel_runs_{false};  // set with mu held
  std::atomic<int> blocked_{0};  // devices that are; set with mu held
};

}  // namespace penstock::runtime
