// PipelineCore: the machine behind Pipeline: places for items, threads of host stages, and *feeds*, which launch and
// see the end of runs.
//
// The book (item_book.h) says where each item is. A feed is pushed on by whoever calls Pump: producers, consumers, host
// stages that have ended an item; one thread at a time owns it, others leave a note. While runs are in flight the
// completion thread looks once a millisecond whether nobody else does, and then does; it also has the submission
// threads of the feed's device help meanwhile (submitter_wakeup.cc). A feed has one device of a stage, or all of a
// stage whose items must begin in order. Nobody blocks in it. Where launches take long the submission threads of each
// feed's device launch, all at once (shared_launching.cc).
//
// Ownership: shared by the handle, items that others hold, and the completion thread while it watches.
// Threads:   thread-safe. An item's record belongs to who has the item (item.h).
// Locks:     mu_ guards the book and the counts; no user code, driver or other component is called with it held.
// Errors:    see penstock/pipeline.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/pipeline.h"
#include "src/base/coalescing_runner.h"
#include "src/base/mutex.h"
#include "src/host/progress.h"
#include "src/host/submission_threads.h"
#include "src/runtime/core/progressable.h"
#include "src/runtime/executable/device_choice.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/item_book.h"
#include "src/runtime/pipeline/utilization.h"

namespace penstock::runtime {

class ExecutableSet;
class RuntimeCore;

// Of each slot of a device's executable: the memory of each link.
using DeviceSlotsMemory = std::vector<std::vector<std::shared_ptr<void>>>;

class PipelineCore final : public std::enable_shared_from_this<PipelineCore>, public Progressable {
 public:
  static absl::StatusOr<std::shared_ptr<PipelineCore>> Create(detail::StageList stages, const detail::ValueType& value,
                                                              PipelineOptions options);
  ~PipelineCore();
  PipelineCore(const PipelineCore&) = delete;
  PipelineCore& operator=(const PipelineCore&) = delete;

  // Who fills items.
  absl::StatusOr<AnyItem> Acquire(Key key, int device, Deadline deadline, bool wait);
  absl::Status Submit(PipelineItem& item, const ItemOptions& options);
  // Who takes them out.
  AnyItem Pop(Deadline deadline);
  absl::Status RunAll(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink);
  // One that was acquired or taken out is dropped.
  void Return(PipelineItem& item);

  void Stop();
  absl::Status Drain(Deadline deadline);
  void Cancel();
  absl::Status status() const;
  PipelineStats stats() const;
  int window() const { return static_cast<int>(items_.size()); }
  // The handle has gone: cancels, and returns when nothing is under way, or leaves that to another thread.
  void Close();

  Bindings& BindingsOf(PipelineItem& item, uint32_t graph);
  std::pair<void*, size_t> Find(const PipelineItem& item, uint32_t graph, int32_t index, TypeInfo type) const;

  // Does whatever can be done now, without blocking, but for launches that are left to submission threads. Without
  // news: but for what another thread is at.
  void Pump(bool news = true);
  void Ref() override;
  void Unref() override;
  void Poll() override;
  void Advance() override {
    if (waiting_.load() == 0) {  // else somebody does
      Pump();
      TakeOver();
    }
    CallSubmissionThreads();
  }
  bool drained() const override { return closed_.load(std::memory_order_acquire); }
  bool idle() const override { return !Busy() || waiting_.load() > 0; }
  host::TimePoint due() const override;
  host::TimePoint ItemDue() const;  // the first deadline of an item that waits

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kCacheLine = 64;
  struct Work {  // of a host stage, or a station
    int64_t working = 0, done = 0, failed = 0, busy_ns = 0;
  };
  // One executable of a stage, or of several that are launched together, each behind the one before.
  struct Leg {
    std::string prefix;  // of what is said of it
    detail::StageFunction call;
    std::shared_ptr<ExecutableSet> set;
    int part;  // PipelineItem::parts
    std::vector<Link> links;  // with the leg before
    std::vector<DeviceSlotsMemory> between{};  // of those: of each member
  };
  // A device of a stage. What is from `work` on is guarded by mu_.
  struct Station {
    int stage, member;  // the index among all stages, and in each leg's set
    int feed;
    int device;
    std::string name;
    Work work{};
    DeviceLoad load{};  // slots are taken by items
    bool blocked = false;  // others have had all slots of an executable when it was tried last
  };
  struct Feed;
  struct Help final : host::SubmissionClient {
    Help(PipelineCore* c, PipelineCore::Feed* f) : SubmissionClient(1), core(c), feed(f) {}
    bool Feed() override { return core->PollAsSubmitter(*feed); }
    PipelineCore* const core;
    PipelineCore::Feed* const feed;
    host::SubmissionThreads* submission_threads = nullptr;  // null: there are none. Constant once made
    bool added = false;  // the completion thread's
  };
  // Cache lines of their own for what submission threads read all the time, and for what whoever moves items writes.
  struct Feed {
    Feed(PipelineCore* core, int of_stage) : stage(of_stage), help(core, this) {}
    const int stage;
    Help help;
    // The submission thread that has taken it over, until another thread moves something.
    std::atomic<const void*> submitter{nullptr};
    alignas(kCacheLine) std::atomic<int64_t> next_look_ns{0};  // of submission threads, which look no oftener
    // From when on submission threads are to begin items that wait, which whoever found them has left to them; 0:
    // nothing is left. Written by the owner, with mu_ held.
    std::atomic<int64_t> left_ns{0};
    bool fed = false;  // submission threads have been called, and what is left to them they will see; guarded by mu_
    alignas(kCacheLine) base::CoalescingRunner<> notes;
    // The owner's.
    int32_t look = 0;  // the run that was looked at beside the oldest
    std::vector<int> running;  // items, in the order of their launches
    std::atomic<int64_t> moved_ns{0};  // when it moved something last; others read it, as the next two
    std::atomic<int64_t> launch_ns{0};  // where launches may be shared: how long they took of late
    std::atomic<int64_t> launching_ns{0};  // since when one has not returned; 0: there is none
    bool starved = false;
    bool cancelled = false;
  };
  // An abandoned run goes on. When that has ended, what the stage has of slots for the item comes free, or, where the
  // item has been handed back meanwhile, all of it (stage -1).
  struct Quarantined {
    int item, stage;
  };
  struct HostStage {
    int workers;
    base::CondVar waiting;  // for items
    Work work{};  // guarded by mu_
  };
  struct Stage {
    std::string prefix;  // of what is said of it
    std::string name;
    detail::StageFunction call;  // of a host stage
    std::vector<Leg> legs;  // else
    bool keeps_slots = false;  // items have their slots from beginning to end
    bool halted = false;  // its States are to be reset; guarded by mu_
    std::vector<uint64_t> poisoned;  // then: of the items with these keys; guarded by mu_
    std::vector<int> stations;
    std::unique_ptr<HostStage> host;
  };

  explicit PipelineCore(const detail::ValueType& value, PipelineOptions options);
  absl::Status MakeStages(detail::StageList stages);
  absl::Status AddLeg(detail::StageDecl decl, Stage& stage);
  bool HasLegOf(uint32_t graph) const;
  absl::Status CheckLeg(const Stage& stage, const Leg& leg);
  bool IsWritten(const StateRecord* state) const;
  bool FinishStage(Stage& stage);  // whether its items begin in order
  absl::Status MakeLinks(const Stage& stage, Leg& leg);
  absl::Status MakeItems();
  void MakeShares();
  absl::Status StartThreads();
  void EndThreads();
  void CloseHere();

  // Who waits here pushes the feeds on. False: at the deadline.
  template <class Step>
  bool WaitFor(Deadline deadline, Step step);
  bool Polls() const;
  // Whether there is anything to be seen of devices.
  bool Busy() const { return in_flight_.load() > 0 || starved_.load() > 0 || quarantined_.load() > 0; }
  void BeginActivity();
  void NoteInFlight() {
    if (in_flight_.fetch_add(1) == 0) BeginActivity();
  }
  absl::Status CheckMayWait(const char* what) const;
  absl::Status CheckMayPull() const;
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A held item with the slots it keeps; kNone: there is no place, or no slot. The other errors are final.
  absl::StatusOr<int> TakePlace(Key key, int device);
  // Which of the stages' devices the item has to be on, by its key and pin; `kept`: of stages whose slots it keeps.
  absl::Status FindDevices(PipelineItem& item, bool kept) const;
  static absl::Status FindDevice(const Stage& stage, PipelineItem& item);
  // Whether there was a slot of each stage whose slots items keep; if not `lack` says of which, on which device.
  struct Lack {
    int stage = -1;  // -1: places
    int wanted = -1;  // -1: any
  };
  absl::StatusOr<bool> TakeSlots(PipelineItem& item, Lack& lack);
  bool SlotsAreFree(PipelineItem& item, Lack& lack);
  // Of all legs, on the station's device. ResourceExhausted: others have them.
  static bool HaveFreeSlots(const Stage& stage, int member);
  void SetBlocked(Station& station, bool blocked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Unblock(const Stage& stage);
  bool IsStarved(const Feed& feed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool NoteStarved(Feed& feed, bool starved);
  static absl::Status TakeSlotsOf(const Stage& stage, const Station& station, PipelineItem& item);
  bool DropOldest(const Lack& lack);
  absl::Status Enter(PipelineItem& item, const ItemOptions& options);
  absl::StatusOr<bool> PullInto(int place, const std::function<bool(AnyItem&)>& pull, AnyItem& refused);
  void NoteDue(const PipelineItem& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PumpHere();
  void Clear(PipelineItem& item);  // what its users have left in it
  bool Free(PipelineItem& item);
  int TakeReady();
  bool IsStopped() const;
  bool AtEnd() const;
  bool IsQuiet() const;

  void WorkOnHost(size_t stage);
  void EndOnHost(Stage& stage, int i, absl::Status status);
  // Calls user code; a failure has `prefix`, an exception is Internal.
  static absl::Status CallOnItem(const std::string& prefix, const detail::StageFunction& call, PipelineItem& item);

  // Help of others than who pumps. True: something moved.
  void FindSubmissionThreads();
  void CallSubmissionThreads();
  // The owner of the feed, whoever it is, has moved something.
  static void NoteMove(Feed& feed, Clock::time_point now);
  // When nothing has moved in it for so long, unless something does until then.
  static Clock::time_point StaleAt(const Feed& feed, std::chrono::nanoseconds after);
  void DismissSubmissionThreads();
  bool PollAsSubmitter(Feed& feed);
  bool Look(Feed& feed, bool as_submitter);

  // Who launches where that takes long.
  void NoteLaunch(Feed& feed, int64_t took_ns);  // its owner has launched
  bool IsSlowToLaunch(const Feed& feed) const;
  static int64_t UntilLaunched(const Feed& feed);  // ns
  // By an owner that is none of its submission threads.
  bool BeginHere(Feed& feed) { return !(shares_launches_ && LeaveToSubmissionThreads(feed)) && BeginRun(feed); }
  bool LeaveToSubmissionThreads(Feed& feed);
  bool MayBegin(const Feed& feed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteLeft(Feed& feed, int64_t from_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its owner has looked for an item that it may begin, and found this one; null: none.
  void NoteLooked(Feed& feed, const PipelineItem* begun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AnyLeft() const;
  // When what is left will have been so for too long, and what is done then by who has nothing else to do.
  Clock::time_point LeftDue() const { return shares_launches_ ? FirstLeftDue() : Clock::time_point::max(); }
  Clock::time_point FirstLeftDue() const;
  bool TakeOver() { return shares_launches_ && BeginLeft(); }
  bool BeginLeft();
  bool BeginOneLeft(Feed& feed, int64_t left_ns);  // since when
  void NoteFed();
  bool MayDismiss();

  // What the owner of a feed does. True: something moved.
  bool EndRuns(Feed& feed);
  bool EndRunAt(Feed& feed, size_t at);  // of feed.running
  bool BeginRun(Feed& feed);
  bool LaunchItem(Feed& feed, PipelineItem& item, Station& station);
  void PutBack(const Stage& stage, PipelineItem& item, Station& station);  // it has found no slot
  static absl::Status StartRuns(const Stage& stage, int member, PipelineItem& item);
  static absl::Status StartLeg(const Stage& stage, size_t leg, int member, PipelineItem& item);
  static void BindLinks(const Stage& stage, size_t leg, int member, PipelineItem& item);
  static absl::Status StatusOfRuns(const Stage& stage, PipelineItem& item);
  static bool IsKeyed(const Stage& stage);  // whether it has States by key
  static bool IsDrained(const PipelineItem& item);
  void EndRun(Feed& feed, PipelineItem& item, const absl::Status& status);
  static PipelineItem::Part& PartOf(const Stage& stage, PipelineItem& item) {
    return item.parts[static_cast<size_t>(stage.legs[0].part)];
  }
  int StationFor(const Feed& feed, PipelineItem& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int BestStation(const Stage& stage, int wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeStation(PipelineItem::Part& part, int station) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReleaseStation(PipelineItem::Part& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status PoisonOf(const Stage& stage, const Station& station, const PipelineItem& item) const;
  void NotePoison(int stage, const absl::Status& poison, uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static void NoteBegin(Work& work, PipelineItem& item);
  static void NoteEnd(Work& work, const PipelineItem& item, bool failed);
  // An item's stage has ended: it goes on, is tried again, or ends.
  void EndStage(int item, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishItem(int item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeStage(int item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(const absl::Status& failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAll(const absl::Status& end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Expire();
  bool IsQuarantined(int item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Quarantine(const PipelineItem& item, int stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeQuarantined();
  // The thread that resets States and tells of progress.
  void Serve();
  bool MayReset() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ResetStates();
  void DropCallables();

  // Constant once made.
  const detail::ValueType value_;
  PipelineOptions options_;
  std::shared_ptr<RuntimeCore> runtime_;
  std::vector<Stage> stages_;
  int parts_ = 0;  // of an item
  std::vector<std::unique_ptr<Station>> stations_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<PipelineItem> items_;
  std::unique_ptr<std::byte[]> values_;
  Clock::time_point made_;
  std::unique_ptr<const BusyShares> shares_;
  std::vector<std::thread> threads_;
  bool shares_launches_ = false;  // more than one feed has submission threads
  std::atomic<int> dear_{0};  // feeds whose launches take long; seldom written

  // Whoever moves items writes these.
  alignas(kCacheLine) std::atomic<int> in_flight_{0};  // runs
  std::atomic<int> starved_{0};  // feeds that found no slot free, since others use their executables
  std::atomic<int> blocked_{0};  // stations; set under mu_
  std::atomic<int> waiting_{0};  // threads in WaitFor
  std::atomic<int64_t> active_ns_{0};  // when runs came to be in flight last
  // A thread that polls reads the first three all the time.
  alignas(kCacheLine) Clock::time_point next_poll_;  // its own
  Clock::time_point next_advance_;  // its own
  std::atomic<bool> closed_{false};  // the pipeline's handle has gone
  Clock::time_point helped_;  // when the completion thread has last seen runs in flight; its own
  std::atomic<bool> cancel_runs_{false};  // set under mu_
  std::atomic<int> refs_{0};  // of the completion thread
  std::shared_ptr<PipelineCore> self_;  // while there are any

  alignas(kCacheLine) mutable base::Mutex mu_;
  std::unique_ptr<ItemBook> book_ ABSL_GUARDED_BY(mu_);
  std::vector<Quarantined> quarantine_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> quarantined_{0};  // how many of them; set under mu_
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;  // nothing comes in
  bool end_threads_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mu_);  // what items end with that have not; OK: they go on
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::atomic<int64_t> due_ns_{INT64_MAX};  // no later than the deadline of an item that waits; set under mu_
  base::CondVar service_;
  int64_t accepted_ ABSL_GUARDED_BY(mu_) = 0, delivered_ ABSL_GUARDED_BY(mu_) = 0, dropped_ ABSL_GUARDED_BY(mu_) = 0,
                    refused_ ABSL_GUARDED_BY(mu_) = 0, failed_ ABSL_GUARDED_BY(mu_) = 0,
                    retries_ ABSL_GUARDED_BY(mu_) = 0, begun_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::runtime
