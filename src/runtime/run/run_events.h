// Queries a run's events. A failure that is a fault of the runtime is noted as such.
//
// Threads: the owner of the run's machine.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

inline absl::StatusOr<bool> QueryEvent(const RunContext& context, driver::Event event) {
  absl::StatusOr<bool> complete = context.graph.driver().Query(event);
  if (!complete.ok()) context.runtime->NoteFault(context.graph.Describe(-1, complete.status()));
  return complete;
}

// Whether an event of the plan is complete in the slot's run.
inline absl::StatusOr<bool> IsComplete(const RunContext& context, RunSlot& slot, int32_t event) {
  const auto e = static_cast<size_t>(event);
  absl::StatusOr<bool> complete = QueryEvent(context, slot.queues.events().all[event]);
  if (complete.ok() && *complete) slot.progress.seen_complete[e] = slot.progress.serial;
  return complete;
}

}  // namespace penstock::runtime
