// RunTrace: the spans that the runs of an executable add to its trace. Without a trace every call returns at once.
//
// Ownership: of the executable's context; owns an event for each device, which ties the device's clock to the trace's.
// Threads:   SetBase by Compile; the rest by whoever owns the slot, and by a thread of the staging ring for its copy.
// Errors:    a span whose times cannot be read is left out: that is better than a run that fails for it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class RunTrace {
 public:
  explicit RunTrace(const CompiledGraph& graph) : graph_(graph) {}
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;
  ~RunTrace();

  // Reads the clocks of the devices, before the first run, on the streams of a slot. The error is the time of one poll.
  absl::Status SetBase(RunSlot& slot);
  // The spans of all nodes that the slot's run has submitted, once it has drained.
  void Record(RunSlot& slot) const;
  // A copy of the staging ring, around it.
  void BeginStagedCopy(RunSlot& slot, int32_t ring) const;
  void RecordStagedCopy(const RunSlot& slot, int32_t step, int64_t serial) const;

 private:
  void RecordGraphs(RunSlot& slot) const;
  // `batched`: how many nodes it stands for.
  void RecordNode(const RunSlot& slot, int32_t node, size_t batched, double begin, double end) const;

  const CompiledGraph& graph_;
  std::vector<driver::Event> base_;  // a device each
  std::vector<double> base_us_;
  uint64_t base_timestamp_ = 0;  // of the graphs' device, at that time; 0: graphs have no timestamps
};

}  // namespace penstock::runtime
