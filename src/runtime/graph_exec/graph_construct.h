// GraphConstruct: a construct (control.h) of a slot that its device decides: nodes of a graph. Those of its parts are
// among them, or in the bodies of a conditional node.
//
// Ownership: belongs to the slot; borrows the driver's graph and exec.
// Threads:   used only by the slot's owner.
// Errors:    the driver's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/graph_exec/loop_totals.h"
#include "src/runtime/graph_exec/node_numbers.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class GraphConstruct {
 public:
  // Why the device cannot decide a construct after all.
  struct Refusal {
    ControlId construct{};
    std::string why;
  };
  // One iteration of a loop or, of a Repeat, the several that a body holds. In nanoseconds of the device's clock.
  struct Iterations {
    uint64_t begin = 0, end = 0;
    int64_t first = 0, count = 1;  // in its run of the loop
  };
  using AddIterations = absl::FunctionRef<void(std::string_view loop, const Iterations& times)>;

  virtual ~GraphConstruct() = default;
  // The construct's node in the plan of the slot.
  virtual NodeId node() const = 0;
  // Captures the Launch nodes in it and in the constructs within, whose arguments are those of the slot. Called once,
  // before AddTo.
  virtual std::optional<Refusal> Capture() = 0;
  // Adds the nodes, which begin after others, and returns those that later nodes come after.
  virtual absl::StatusOr<NodeNumbers> AddTo(driver::Graph to, std::span<const int32_t> after) = 0;
  // The graph has been instantiated: `exec` has its nodes, and `root` those of the graph that is launched.
  virtual absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root) = 0;
  // Before the exec is destroyed.
  virtual void DropExec() = 0;
  // Passes what the slot's next run has bound on to the parts. Called before Update, which sets the nodes by it.
  virtual absl::Status Bind() = 0;
  virtual absl::Status Update() = 0;
  // Copies to the device what the regions in it read, before a graph that has it is launched on the stream.
  virtual absl::Status Refresh(driver::Stream stream) = 0;
  // For runs that are submitted on streams: MakeGraph makes a graph of the construct alone, and Launch launches it.
  virtual absl::Status MakeGraph() = 0;
  virtual absl::Status Launch(driver::Stream stream) = 0;
  // Why the part failed that has failed the run, with its node; OK: none has.
  virtual absl::Status Failure() const = 0;
  // From now on a host word that is not 0 ends its loops.
  virtual void UseStop(const uint32_t* stop) = 0;
  // Of all iterations that have ended, those of a loop that is at work left out; none for an If or a Switch. Any thread
  // may call it.
  virtual std::optional<LoopTotals> Totals() const = 0;
  // The iterations of its loops in the slot's last run, as far as these mark them; each is told once.
  virtual void TakeIterations(AddIterations add) = 0;
  // What the submission report says of how the device decides it, about the construct with this name; empty: nothing.
  virtual std::string Note(const std::string& name) const = 0;
  // The nodes in its region, each counted once; 0: it is in none.
  virtual int64_t RegionNodes() const { return 0; }
};

}  // namespace penstock::runtime
