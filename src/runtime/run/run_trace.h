// RunTrace: the spans that the runs of an executable add to its trace. Without a trace every call returns immediately.
//
// Ownership: belongs to the executable's context; owns what relates the clock of each device to the trace's.
// Threads:   Compile calls Start; the slot's owner calls the rest, a thread of the staging ring those for its copy.
// Errors:    a span whose times cannot be read is left out, which is better than failing the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

// What the span of the loop's iterations from `first` on is called.
std::string IterationName(std::string_view loop, int64_t first, int64_t count);

class RunTrace {
 public:
  explicit RunTrace(const CompiledGraph& graph) : graph_(graph) {}
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;
  ~RunTrace();

  // Before the first run: reads the clocks of the devices, on the streams of a slot (the error is the time of one
  // poll), and for a profile has the slots time how long they wait for States.
  absl::Status Start(const std::vector<std::unique_ptr<RunSlot>>& slots);
  // Adds the spans of all nodes that the slot's run has submitted, once it has drained. For a profile also one of the
  // run, which was launched at RunSlot::launched, and one of all this, if it took long.
  void Record(RunSlot& slot) const;
  // For a profile, whole runs are recorded too. Called before the first run.
  void UseForProfile() { for_profile_ = true; }
  bool for_profile() const { return for_profile_; }
  // A launch has waited for the slot. Does nothing without a profile.
  void RecordWait(const RunSlot& slot, std::chrono::steady_clock::time_point since) const;
  // Launch has submitted what could be.
  void RecordLaunch(int slot, int64_t serial, std::chrono::steady_clock::time_point launched) const;
  // Called before and after a copy by the staging ring.
  void BeginStagedCopy(RunSlot& slot, int32_t ring) const;
  void RecordStagedCopy(const RunSlot& slot, int32_t step, int64_t serial) const;

 private:
  // When both clocks were read.
  struct Base {
    driver::Event event;
    double micros = 0;  // of the trace
    uint64_t nanos = 0;  // of the device; 0: the executable has no graphs and no constructs
  };

  absl::Status SetBase(RunSlot& slot);
  absl::Status SetBaseWithoutStreams(RunSlot& slot);
  absl::Status ReadClocks(Base& base, DeviceId device, driver::Stream stream, RunSlot& slot);
  void RecordRun(const RunSlot& slot) const;
  void RecordNodes(RunSlot& slot) const;
  void RecordStateWaits(const RunSlot& slot) const;
  void RecordGraphs(RunSlot& slot) const;
  void RecordRegion(RunSlot& slot, RegionId region) const;
  void RecordIterations(const RunSlot& slot) const;
  std::string OthersIn(const GraphNodeEntry& entry) const;
  double MicrosOf(uint64_t nanos, DeviceId device) const;
  std::string TrackOf(const RunSlot& slot, LaneId lane) const;
  // `others`: what the name says of the nodes that the span stands for, too.
  void RecordNode(const RunSlot& slot, int32_t node, const std::string& others, double begin, double end) const;

  Span SpanOf(const RunSlot& slot, std::string name, std::string track, SpanKind kind, double begin, double end) const;

  const CompiledGraph& graph_;
  bool for_profile_ = false;
  std::vector<Base> base_;  // one for each device
  memory::PinnedBlock stamp_;  // a device writes its time here
};

}  // namespace penstock::runtime
