// WholeGraph: all graphs and host steps of a slot as one graph, with the memory and values now bound, for the
// application to launch. It is never instantiated here.
//
// Ownership: owns the graph and the memory that its nodes name besides the slot's; borrows the slot.
// Threads:   made and destroyed by one thread; constant in between. Its host nodes call CallExportedNode.
// Errors:    the driver's. If a Launch node could not be captured, the Status names it (base::TakeNode).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "src/runtime/calls/host_call.h"
#include "src/runtime/graph_exec/captured_calls.h"
#include "src/runtime/graph_exec/node_numbers.h"
#include "src/runtime/graph_exec/node_operations.h"

namespace penstock::runtime {

class WholeGraph {
 public:
  static absl::StatusOr<std::unique_ptr<WholeGraph>> Create(Slot& slot, std::vector<LaunchObjects>& launch,
                                                            const Hostcalls* hostcalls);
  WholeGraph(const WholeGraph&) = delete;
  WholeGraph& operator=(const WholeGraph&) = delete;
  ~WholeGraph();

  // The platform's own handle (Driver::NativeGraph).
  void* native() const { return native_; }

 private:
  // A host node of the graph: a host step, or a node that a device would otherwise call.
  struct HostNode {
    ExportedNode node;
    Slot* slot = nullptr;
    driver::HostCall code{};
  };

  WholeGraph(Slot& slot, std::vector<LaunchObjects>& launch, const Hostcalls* hostcalls);
  absl::Status CaptureAll();
  absl::Status Build();
  absl::Status Join();
  absl::Status AddPart(GraphId graph);
  absl::Status AddHostStep(HostStepId step);
  absl::Status AddGraph(GraphId graph, driver::Graph to);
  absl::StatusOr<int32_t> AddNode(EntryId entry, driver::Graph to, const std::vector<int32_t>& after,
                                  driver::NodePlace place);
  absl::StatusOr<int32_t> AddNothing(driver::Graph to, const std::vector<int32_t>& after);
  absl::StatusOr<int32_t> AddHost(const ExportedNode& node, driver::Graph to, std::span<const int32_t> after);
  static void CallHostNode(void* context);

  Slot& slot_;
  const GraphProgram& replay_;
  driver::Driver& driver_;
  const int device_;  // of the graph's streams, an index in the driver
  NodeOperations operations_;
  CapturedCalls captured_;
  std::vector<std::unique_ptr<HostNode>> host_nodes_;
  Table<EntryId, NodeNumbers> entry_last_;  // the nodes that later ones come after
  driver::Graph graph_;
  void* native_ = nullptr;
  // While it is joined: the node added last, if any, and the host steps that have been handled.
  std::vector<int32_t> last_;
  Table<HostStepId, bool> steps_;
};

}  // namespace penstock::runtime
