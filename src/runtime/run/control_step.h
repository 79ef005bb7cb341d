// ControlStep: a host step of a run that is a construct (control.h): it begins when what comes before the construct has
// ended, and ends when the last of its bodies has.
//
// Ownership: belongs to the slot.
// Threads:   Begin is called by the thread that advances the run; any thread may end the step.
// Errors:    a failure is the run's (RunFault), as for every host step. No other body begins then.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "src/runtime/graph_exec/loop_totals.h"
#include "src/runtime/program/commands.h"

namespace penstock::runtime {

class ControlStep {
 public:
  virtual ~ControlStep() = default;
  // Starts and returns. `done(context, arg)` is called once when nothing of it is at work any more; the step may be
  // gone then.
  virtual void Begin(void (*done)(void* context, int64_t arg), void* context, int64_t arg) = 0;
  // The construct's node in the plan of the slot.
  virtual NodeId node() const = 0;
  // Of all iterations of a loop that have ended; none for an If or a Switch. Any thread may call it.
  virtual std::optional<LoopTotals> Totals() const = 0;
  // Why the part failed that has failed the run, with its node; OK: none has.
  virtual absl::Status Failure() const = 0;
  // From now on a host word that is not 0 ends the loops that devices decide in its bodies.
  virtual void UseStop(const uint32_t* stop) = 0;
};

}  // namespace penstock::runtime
