// ExecutableCore: one graph compiled for one device, shared by the Executable handles and the runs in flight.
//
// Ownership: shared by handles and by every run in flight; slots and their memory are freed with it.
// Threads:   thread-safe. Everything except which slots are taken is constant after Create.
// Locks:     none of its own; see SlotPool.
// Errors:    see penstock/executable.h. Create returns the errors of Compiler.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/executable.h"
#include "penstock/runtime.h"
#include "penstock/submission_report.h"
#include "src/runtime/core/in_flight.h"
#include "src/runtime/core/wait.h"
#include "src/runtime/executable/compiler.h"
#include "src/runtime/executable/device_choice.h"
#include "src/runtime/executable/late_launch.h"
#include "src/runtime/executable/launch_binder.h"
#include "src/runtime/executable/mode_selection.h"
#include "src/runtime/executable/profile_graph.h"
#include "src/runtime/executable/run_durations.h"
#include "src/runtime/executable/run_pace.h"
#include "src/runtime/executable/slot_pool.h"
#include "src/runtime/run/run_owner.h"

namespace penstock::runtime {

class ExecutableCore;

// A condition or body of a construct, compiled for all slots around it.
struct ControlPart {
  DeclId construct{};  // its node in the model around it
  ControlKind kind{};
  std::string label;  // "condition", "then", "case 0"
  std::shared_ptr<ExecutableCore> core;
};

class ExecutableCore final : public InFlight, public RunOwner {
 public:
  // `model` has no constructs: they are nodes of it (graph/control/fold.h).
  static absl::StatusOr<std::shared_ptr<ExecutableCore>> Create(std::shared_ptr<RuntimeCore> runtime,
                                                                const Model& model, const CompileOptions& options,
                                                                const DeclaredGraph& declared = {});
  ~ExecutableCore() override;

  // What an Executable holds: the executable is freed after the last copy has gone and its last run has ended.
  static std::shared_ptr<ExecutableCore> HandleOn(std::shared_ptr<ExecutableCore> core);

  Bindings MakeBindings() const;
  // Takes a slot, applies the bindings and starts the run.
  absl::StatusOr<Run> Launch(const Bindings& bindings, Deadline deadline, Wait wait);
  // Launch in steps: whether this thread may launch; a free slot, or null; the run, which takes over the slot.
  absl::Status CheckLaunch(Wait wait) const;
  RunSlot* TakeFree() { return pool_.TakeFree(); }
  // kPartOfARun: Shutdown waits for the run that this is a part of, so it starts also while the runtime shuts down.
  enum class Kind : uint8_t { kRun, kPartOfARun };
  absl::StatusOr<Run> Start(RunSlot* slot, const detail::BoundValues& bindings, Deadline deadline,
                            Kind kind = Kind::kRun);
  // A slot for its holder alone, until GiveBack and the end of its run.
  absl::StatusOr<RunSlot*> Lease(Deadline deadline, Wait wait);
  // Lease in steps, around TakeFree.
  absl::Status CheckLease(Wait wait) const;
  void MarkLeased(RunSlot* slot) { pool_.MarkLeased(*slot); }
  void GiveBack(RunSlot* slot) { pool_.GiveBack(*slot); }
  // Like Launch, in a leased slot.
  absl::StatusOr<Run> LaunchIn(RunSlot* slot, const Bindings& bindings, Deadline deadline);
  // FailedPrecondition if this thread may not launch, or do what `called` names instead.
  absl::Status CheckMayLaunch(const char* called = "launched") const;

  // Whether no slot is taken, and whether some slot is free. Both may advance runs in flight; neither blocks.
  bool IsIdle();
  bool HasFreeSlot();
  // The load, without the weight.
  DeviceLoad load();
  // What is in front of a launch that is refused if it is late; nothing if late launches are not refused.
  RunsInFront in_front();

  void AdvanceAll() override;
  void AbandonAll(const absl::Status& why) override;
  int64_t CountAbandoned() override;
  bool IsStuck() override;
  absl::Status Describe(int32_t node, const absl::Status& cause) const override {
    return graph().Describe(node, cause);
  }
  std::string Label() const override { return graph().Label(); }
  void OnRunEnded(RunSlot& slot) override;

  // Called before the first launch: load() is to know how long runs take.
  void MeasureRuns() { durations_.Measure(); }

  LaunchBinder& binder() { return binder_; }
  const LaunchBinder& binder() const { return binder_; }
  const CompiledGraph& graph() const { return context_.graph; }
  const RunContext& context() const { return context_; }
  const Model& model() const { return graph().model(); }
  RuntimeCore& runtime() const { return *context_.runtime; }
  const std::shared_ptr<RuntimeCore>& shared_runtime() const { return context_.runtime; }
  // Only the holder of the slot's lease, or the thread that has just made the executable, may change the slot.
  RunSlot& slot(int index) { return *pool_.slots()[index]; }
  const RunSlot& slot(int index) const { return *pool_.slots()[index]; }
  int slots() const { return pool_.size(); }
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  // The conditions and bodies of its constructs. SetParts is called before the first launch.
  void SetParts(std::vector<ControlPart> parts) { parts_ = std::move(parts); }
  const std::vector<ControlPart>& parts() const { return parts_; }
  Mode DecideMode() { return modes_.Decide(); }
  SubmissionReport submission_report() const;

 private:
  friend void AddToProfile(const std::shared_ptr<ExecutableCore>& core);
  ExecutableCore(std::shared_ptr<RuntimeCore> runtime, const Model& model, const CompileOptions& options);
  absl::StatusOr<RunSlot*> AcquireSlot(Deadline deadline, Wait wait);
  // Does what may fail before the run begins. Returns the device of the application's stream; -1 if there is none.
  absl::StatusOr<int> Prepare(RunSlot& slot, const detail::BoundValues& bindings);

  RunContext context_;
  observe::CountedExecutable counted_;
  HostcallReservation hostcalls_;
  ModeSelection modes_{context_};
  LaunchBinder binder_{context_};
  RunDurations durations_;
  const bool refuses_late_;
  RunPace pace_;  // if launches are refused for being late
  std::atomic<int64_t> waiting_{0};  // launches that wait for a slot
  SlotPool pool_;
  std::vector<ControlPart> parts_;
  std::atomic<int64_t> launches_{0};  // the serial of the next run
  const ProfiledExecutable profiled_{*this};
  std::atomic<bool> handles_gone_{false};  // set after ReleaseCount::Begin
};

}  // namespace penstock::runtime
