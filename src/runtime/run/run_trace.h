// RunTrace: the spans that the runs of an executable add to its trace. Without a trace every call returns immediately.
//
// Ownership: belongs to the executable's context; owns an event for each device, which relates its clock to the
//            trace's.
// Threads:   Compile calls SetBase; the slot's owner calls the rest, a thread of the staging ring those for its copy.
// Errors:    a span whose times cannot be read is left out, which is better than failing the run.
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
  // Adds the spans of all nodes that the slot's run has submitted, once it has drained.
  void Record(RunSlot& slot) const;
  // Called before and after a copy by the staging ring.
  void BeginStagedCopy(RunSlot& slot, int32_t ring) const;
  void RecordStagedCopy(const RunSlot& slot, int32_t step, int64_t serial) const;

 private:
  void RecordGraphs(RunSlot& slot) const;
  // `batched`: how many nodes the span stands for.
  void RecordNode(const RunSlot& slot, int32_t node, size_t batched, double begin, double end) const;

  const CompiledGraph& graph_;
  std::vector<driver::Event> base_;  // one for each device
  std::vector<double> base_us_;
  uint64_t base_timestamp_ = 0;  // the graphs' device's clock at that time; 0: graphs have no timestamps
};

}  // namespace penstock::runtime
