// HostSteps: runs the host steps of a run: host callables on workers, copies through the staging ring on its threads,
// small copies on the thread that advances the run.
//
// HostProgress counts which steps may begin; this class starts them in plan order, as the callables' gates permit.
//
// Ownership: belongs to its run; borrows the slot, which stays until every step has settled.
// Threads:   the owner of the run's machine calls Start, Settled and LookAtEvents. All steps except small
//            copies run on a worker or a thread of the ring, and hold a count of the run meanwhile.
// Ordering:  what a step did happens before what waits for it.
// Errors:    a step that fails fails the run. Once a run has failed, steps that have not begun are skipped.
#pragma once

#include <cstdint>

#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class HostSteps {
 public:
  // The run as its steps see it.
  class Owner {
   public:
    virtual void Ref() = 0;
    virtual void Unref() = 0;
    // Some steps have ended, so others may begin. Called by the thread that ran them.
    virtual void OnHostStepsEnded() = 0;

   protected:
    ~Owner() = default;
  };

  // `workers`: the group of workers near the run's device.
  HostSteps(const RunContext& context, RunSlot& slot, Owner& run, int workers);

  // Starts the steps that may begin. Returns true if some have ended, so that others may begin now, or if the run has
  // failed.
  bool Start();
  // Checks which of the events that steps wait for are complete.
  void LookAtEvents();
  // Whether every step has ended or was skipped.
  bool Settled();

 private:
  bool StreamIsDone();
  void SkipAll();
  bool TaskIsNoop(int32_t first) const;
  void StartTask(int32_t first);
  static void RunTask(void* self, int64_t first);
  void RunSteps(int32_t first);
  void PostStagedCopy(int32_t step);
  static void EndStagedCopy(void* self, int64_t step);
  static void EndControl(void* self, int64_t step);
  void EndElsewhere(int32_t step);
  static void EndTask(void* self, int64_t);
  void EndStep(int32_t step, HostStepState end);
  int32_t EndOfTask(int32_t first) const;
  void SetStates(int32_t first, HostStepState state);

  const RunContext& context_;
  RunSlot& slot_;
  Owner& run_;
  host::WorkerPool& pool_;
  const int workers_;
};

}  // namespace penstock::runtime
