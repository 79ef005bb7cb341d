// StateWaits: when a slot's run began to wait for each State that another run used, and when it had it.
//
// Two timing events for each State, on the first lane of the State's device that waits for it; other lanes wait no
// longer. A graph of several devices waits on one lane for all of them, so waits for States elsewhere are not timed.
//
// Ownership: belongs to the slot; owns the events.
// Threads:   used only by the slot's owner.
// Errors:    the driver's.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class StateWaits {
 public:
  struct Wait {
    LaneId lane{};  // none: no lane has waited
    bool ended = false;
    driver::Event begin, end;
  };

  explicit StateWaits(const CompiledGraph& graph) : graph_(graph) {}
  StateWaits(const StateWaits&) = delete;
  StateWaits& operator=(const StateWaits&) = delete;
  ~StateWaits();

  // From then on waits are timed. Called before the first run.
  absl::Status Make();
  // A run begins, which has not waited.
  void Reset();
  // Before the lane waits for the State of Plan::states[use], once or more often, and when it has been told what for.
  absl::Status Begin(int32_t use, LaneId lane, driver::Stream stream);
  absl::Status End(int32_t use, LaneId lane, driver::Stream stream);
  // For each of Plan::states; empty if waits are not timed.
  const std::vector<Wait>& waits() const { return waits_; }

 private:
  // The wait, if it is the lane's.
  Wait* Find(int32_t use, LaneId lane);

  const CompiledGraph& graph_;
  std::vector<Wait> waits_;
};

}  // namespace penstock::runtime
