// The counts of a run's Outputs of variable size (Output with a CountOf in penstock/graph.h): how many elements of each
// count. They outlive the slot in which the run has left them.
//
// Threads: plain values. The owner of the run reads them from the slot once the run has drained.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "penstock/detail/model.h"

namespace penstock::runtime {

struct RunSlot;

struct ReturnedCount {
  uint32_t graph = 0;
  BufferId output{};
  int64_t count = 0;
};
using ReturnedCounts = absl::InlinedVector<ReturnedCount, 2>;

// Each is cut to 0 and the maximum of this run.
ReturnedCounts ReadCounts(const RunSlot& slot);
// InvalidArgument: the handle is of no such Output.
absl::StatusOr<int64_t> FindCount(const ReturnedCounts& counts, uint32_t graph, int32_t output);

}  // namespace penstock::runtime
