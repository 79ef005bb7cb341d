// ExecutableCore: what Executable handles and runs in flight share: the model, the plan, the program and the slots.
//
// Ownership: shared by handles and by every run in flight; slots and their memory go with it.
// Threads:   thread-safe. Everything but the free list is constant after Create.
// Locks:     mu_ guards the free list and Slot::run; nothing is called with it held.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "penstock/executable.h"
#include "penstock/runtime.h"
#include "penstock/submission_report.h"
#include "src/base/mutex.h"
#include "src/base/try_semaphore.h"
#include "src/runtime/core/in_flight.h"
#include "src/runtime/executable/device_choice.h"
#include "src/runtime/executable/mode_trial.h"
#include "src/runtime/program/program.h"
#include "src/runtime/run/submitter.h"
#include "src/runtime/slot/slot.h"
#include "src/runtime/state/keyed_states.h"

namespace penstock::runtime {

class GraphExport;
class RuntimeCore;

// Whether both are of one graph, with the same parameters and buffers: a graph only grows. Then bindings of one fit the
// other.
bool SameSignature(const Model& a, const Model& b);

class ExecutableCore final : public InFlight {
 public:
  static absl::StatusOr<std::shared_ptr<ExecutableCore>> Create(std::shared_ptr<RuntimeCore> runtime,
                                                                const Model& model, const CompileOptions& options);
  ~ExecutableCore() override;

  // What an Executable holds: when the last copy goes, so does the executable, after its last run.
  static std::shared_ptr<ExecutableCore> HandleOn(std::shared_ptr<ExecutableCore> core);
  // Whether all handles are gone, but a run in flight was abandoned and may never end.
  bool IsStuck() override;
  // Runs that were abandoned and whose work has not ended.
  int64_t CountAbandoned() override;

  Bindings MakeBindings() const;
  // Takes a slot (waiting until the deadline if `wait`), applies the bindings and starts the run.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline, bool wait);
  // The same in steps: whether this thread may; a slot that is free, or null; the run, which takes the slot over.
  absl::Status CheckLaunch(bool wait) const;
  Slot* TakeFree();
  absl::StatusOr<Run> Start(Slot* slot, const Bindings& bindings, Deadline deadline);
  // A slot for its holder alone, until GiveBack and its run's end.
  absl::StatusOr<Slot*> Lease(Deadline deadline, bool wait);
  // The same in steps, around TakeFree.
  absl::Status CheckLease(bool wait) const;
  void MarkLeased(Slot* slot);
  void GiveBack(Slot* slot);
  // The same as Launch, in a slot that was leased.
  absl::StatusOr<Run> LaunchIn(Slot* slot, const Bindings& bindings, Deadline deadline);
  // What a launch would do, for the application: see Executable::Export. `handle`: as an Executable holds this.
  absl::StatusOr<std::shared_ptr<const GraphExport>> Export(std::shared_ptr<ExecutableCore> handle,
                                                            const Bindings& bindings);
  // A host step of what was exported, or else (-1) an ask.
  void CallExported(Slot& slot, int32_t node, int32_t step, int32_t ask);
  // Whether no slot is taken. Advances every run in flight; never blocks.
  bool IsIdle();
  // Whether some slot is not taken. May advance runs in flight; never blocks.
  bool HasFreeSlot();
  // Advances every run in flight; never blocks.
  void AdvanceAll() override;
  // Ends every run in flight: see RunCore::Abandon.
  void AbandonAll(const absl::Status& why) override;

  // Before the first launch. The States by key, where the graph has some, of which this executable is `member`.
  void UseKeys(std::shared_ptr<KeyedStates> keyed, int member) {
    keyed_ = std::move(keyed);
    key_member_ = member;
  }
  KeyedStates* keyed() const { return keyed_.get(); }
  int key_member() const { return key_member_; }
  // Before the first launch. Whether load() is to know how long runs take.
  void MeasureRuns(bool measure) { measures_ = measure; }
  // But for its weight.
  DeviceLoad load();
  double mean_ns() const { return mean_ns_.load(std::memory_order_relaxed); }

  const Model& model() const { return *model_; }
  const graph::Plan& plan() const { return plan_; }
  const Program& program() const { return program_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }  // null: none
  StreamExecutor& executor() { return executor_; }
  RuntimeCore& runtime() const { return *runtime_; }
  const std::shared_ptr<RuntimeCore>& runtime_ptr() const { return runtime_; }
  driver::Driver& driver() const { return *driver_; }
  // Of plans with copies through the ring.
  memory::Staging& staging() const { return *staging_; }
  const driver::DeviceRef& device(int32_t device) const;
  // Where it runs: the device of its first lane; without lanes the one it was compiled for.
  int32_t home() const { return plan_.lanes.empty() ? default_device_ : plan_.lanes[0].device; }
  int local_device_of_lane(int32_t lane) const { return lane_devices_[static_cast<size_t>(lane)]; }
  // What only whoever has leased it, or has just made the executable, may change.
  Slot& slot(int index) { return *slots_[static_cast<size_t>(index)]; }
  int slots() const { return static_cast<int>(slots_.size()); }
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  SubmissionReport submission_report() const;

  // One callable runs at most `concurrency` times at once over all slots. EnterGate never blocks.
  bool EnterGate(int32_t node);
  void LeaveGate(int32_t node);

  // For the run that owns the slot.
  void RunHostNode(Slot& slot, int32_t step, int64_t serial);
  void CallHostcall(Slot& slot, const HostcallEntry& entry, int64_t serial);
  void BeginStagedCopy(Slot& slot, int32_t ring) const;
  void RecordStagedCopy(Slot& slot, int32_t step, int64_t serial) const;
  void RecordTrace(Slot& slot, int64_t serial);
  void EndTrial(Slot& slot);
  void NoteTime(const Slot& slot);
  void Release(Slot* slot);
  absl::Status Describe(int32_t node, const absl::Status& cause) const override;
  std::string Label() const override;
  std::string TextOfNode(int32_t node) const;
  // "launching nodes 'a' to 'z', 26 in one graph".
  std::string TextOfGraph(int32_t graph) const;
  // How a run that has drained ended: OK or its first failure.
  absl::Status DescribeEnd(const Slot& slot) const;
  // For a run that ends before it has drained. Reads only what stays as it is while the run is in flight.
  absl::Status DescribeAbandoned(const Slot& slot, const absl::Status& why) const;

 private:
  explicit ExecutableCore(std::shared_ptr<RuntimeCore> runtime, const Model& model, const CompileOptions& options);
  absl::Status Compile(const CompileOptions& options);
  bool MayBePartitioned(Mode mode) const;
  absl::Status AddHostChecks(const CompileOptions& options, const graph::PlanOptions& plan_options);
  absl::StatusOr<std::vector<LoadedKernel>> LoadKernels();
  absl::StatusOr<Mode> WantedMode(const CompileOptions& options) const;
  void ChooseMode(Mode wanted);
  absl::StatusOr<bool> MakeReplays(int count);
  absl::Status PrepareGraphs(Slot& slot);
  absl::Status DescribeSlotError(int slot, int count, const absl::Status& cause) const;
  void BeginTrial(Slot& slot);
  graph::GraphSchedule ScheduleGraphs();
  std::vector<bool> RefusedNodes();
  absl::Status FindStaging(const driver::DeviceRef& device);
  absl::StatusOr<bool> MakeSlots(int count);
  absl::StatusOr<bool> MakeProgram(const CompileOptions& options, const std::vector<LoadedKernel>& kernels);
  absl::Status SetTraceBase();
  void CallHost(Slot& slot, int32_t call) const;
  void RecordReplay(Slot& slot, int64_t serial);
  void RecordNode(const Slot& slot, int32_t node, size_t batched, double begin, double end, int64_t serial) const;
  void RecordHostNode(int32_t node, int64_t serial, double begin) const;
  absl::Status MakePlan(graph::PlanOptions options);
  absl::StatusOr<Slot*> AcquireSlot(Deadline deadline, bool wait);
  absl::Status CheckMayWait(const char* what, const char* instead) const;
  absl::Status CheckMayLaunch(const char* called = "launched") const;
  absl::Status CheckExports() const;
  absl::Status Unexported(int32_t node, const char* why) const;
  absl::Status BindToExport(Slot& slot, const Bindings& bindings);
  template <class F>
  void ForEachRun(F f);
  absl::Status DescribeCancelled(const Slot& slot) const;
  std::vector<bool> NodesKnownDone(const Slot& slot) const;
  std::string TextOfOpenNodes(const Slot& slot) const;
  absl::Status Bind(Slot& slot, const Bindings& bindings);
  absl::StatusOr<bool> BindKey(Slot& slot, const Bindings& bindings);  // whether it is another key
  absl::Status CheckParams(const Bindings& bindings) const;
  bool BindParams(Slot& slot, const Bindings& bindings);
  bool IsStillBound(const Slot& slot, const Bindings& bindings) const;
  absl::Status BindBuffers(Slot& slot, const Bindings& bindings);
  absl::Status BindBuffer(Slot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory);
  // Whether all bytes of the memory are where the buffer must have them. True: they are pinned.
  absl::StatusOr<bool> CheckPlace(Slot& slot, const BufferDecl& decl, size_t buffer, const BoundMemory& memory,
                                  int64_t bytes) const;
  absl::Status BindPredecessors(Slot& slot, const Bindings& bindings);
  absl::Status WaitForNative(Slot& slot, const Bindings& bindings, int& stream_device);
  absl::Status CheckOverlaps(Slot& slot) const;
  static void TakeOver(Slot& slot, const Bindings& bindings);
  void PatchPointers(Slot& slot);
  absl::Status EnterStates(Slot& slot);
  bool PrepareHostSteps(Slot& slot);  // true when some must run on a worker

  const std::shared_ptr<RuntimeCore> runtime_;
  std::shared_ptr<const Model> model_;  // constant after Compile
  const std::shared_ptr<Trace> trace_;
  const int32_t default_device_;
  graph::Plan plan_;
  Program program_;
  std::vector<std::string> uncaptured_;  // of each plan node: why it could not be captured; empty: it could be
  SubmissionReport submission_report_;  // but for what the slots and the trial count; constant after Compile
  std::unique_ptr<ModeTrial> trial_;  // under Mode::kAuto, where there are graphs
  driver::Driver* driver_ = nullptr;
  memory::Staging* staging_ = nullptr;  // null where nothing goes through the ring
  std::vector<int> hostcalls_reserved_;  // of each device: how many of its kMaxPendingHostcalls are kept for this one
  std::vector<int> lane_devices_;
  std::vector<driver::TrySemaphore> driver_gates_;  // a call each, for host devices
  std::vector<base::TrySemaphore<>> gates_;  // a plan node each
  std::vector<driver::Event> trace_base_;  // a device each
  std::vector<double> trace_base_us_;
  uint64_t trace_base_timestamp_ = 0;  // of the graphs' device, then; 0: nothing is stamped
  std::vector<std::unique_ptr<Slot>> slots_;
  StreamExecutor executor_;
  std::shared_ptr<KeyedStates> keyed_;
  int key_member_ = 0;
  bool measures_ = false;
  std::atomic<int64_t> launches_{0};  // the serial of the next run
  std::atomic<int64_t> measured_{0};  // runs
  std::atomic<double> mean_ns_{0};  // of their times of late, from launch until somebody has seen the end
  std::atomic<bool> handles_gone_{false};  // set after ReleaseCount::Begin

  base::Mutex mu_;
  std::vector<Slot*> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::runtime
