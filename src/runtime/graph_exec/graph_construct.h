// GraphConstruct: a construct (control.h) of a slot that its device decides: nodes of a graph, among them a conditional
// node, in whose bodies those of the construct's parts are.
//
// Ownership: belongs to the slot; borrows the driver's graph and exec.
// Threads:   used only by the slot's owner.
// Errors:    the driver's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class GraphConstruct {
 public:
  // Why the device cannot decide a construct after all.
  struct Refusal {
    ControlId construct{};
    std::string why;
  };

  virtual ~GraphConstruct() = default;
  // The construct's node in the plan of the slot.
  virtual NodeId node() const = 0;
  // Captures the Launch nodes in it and in the constructs within, whose arguments are those of the slot. Called once,
  // before AddTo.
  virtual std::optional<Refusal> Capture() = 0;
  // Adds the nodes, which begin after others, and returns the one that later nodes come after.
  virtual absl::StatusOr<int32_t> AddTo(driver::Graph to, std::span<const int32_t> after) = 0;
  // The graph has been instantiated: `exec` has its nodes, and `root` those of the graph that is launched.
  virtual absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root) = 0;
  // Before the exec is destroyed.
  virtual void DropExec() = 0;
  // Passes what the slot's next run has bound on to the parts. Called before Update, which sets the nodes by it.
  virtual absl::Status Bind() = 0;
  virtual absl::Status Update() = 0;
  // For runs that are submitted on streams: MakeGraph makes a graph of the construct alone, and Launch launches it.
  virtual absl::Status MakeGraph() = 0;
  virtual absl::Status Launch(driver::Stream stream) = 0;
  // Why the part failed that has failed the run, with its node; OK: none has.
  virtual absl::Status Failure() const = 0;
  // From now on a host word that is not 0 ends its loops.
  virtual void UseStop(const uint32_t* stop) = 0;
  // Returns how many iterations a body of the loop holds; 1 for an If or a Switch.
  virtual int32_t unroll() const = 0;
};

}  // namespace penstock::runtime
