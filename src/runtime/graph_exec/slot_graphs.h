// SlotGraphs: the CUDA graphs of one slot. They are made once, launched by each run, and updated only with what has
// changed since the previous launch.
//
// A node whose operation is unknown before the first launch (bound memory) is made with a placeholder; the first launch
// sets it or switches it off. A node that never has anything to do is switched off from the start.
//
// If many nodes have new parameters in launch after launch, they read these from device memory instead, and the graph
// is made again once for that (parameter_indirection.h). The copy that fills that memory is the first node of a graph
// on each device, its head. A head that copies nothing is switched off but still pays: a graph that begins with one
// kernel is launched faster than one that begins with many (bench/replay). Copies by the copy engines do not wait for
// the head.
//
// A graph may have nodes on several devices. It belongs to the one of its lane, on which it is launched. A copy between
// devices that can be given new addresses neither as a line nor as a batch has the graph instantiated again.
//
// A region (region_operations.h) is one node. All of its arguments belong to it: if one differs, the region does.
//
// If the executable has a trace, timestamps are added between the nodes (node_timestamps.h). NodeOperations holds what
// nodes do, CapturedCalls what Launch nodes have submitted.
//
// The graph of a part of a construct that the device decides is none of its own: its nodes are in a body of the graph
// around it (Upload::kPart).
//
// Ownership: owns its graphs and the timestamps; borrows the slot.
// Threads:   used only by the slot's owner; any thread may call AddTo.
// Ordering:  an update applies to later launches. The slot's last run must have ended before it.
// Locks:     mu_ guards the text for the submission report; it is a leaf.
// Errors:    the driver's. What could not be set is tried again by the next launch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/submission_report.h"
#include "src/base/mutex.h"
#include "src/runtime/calls/hostcalls.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/graph_exec/captured_calls.h"
#include "src/runtime/graph_exec/graph_construct.h"
#include "src/runtime/graph_exec/graph_heads.h"
#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/graph_exec/node_timestamps.h"
#include "src/runtime/graph_exec/owner_count.h"
#include "src/runtime/graph_exec/parameter_indirection.h"
#include "src/runtime/graph_exec/switched_part.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

using GraphConstructs = std::vector<std::unique_ptr<GraphConstruct>>;

class SlotGraphs {
 public:
  enum class Upload : uint8_t { kLater, kNow, kPart };
  // Instantiates the graphs and, with kNow, uploads them and waits for that. Otherwise the first launches upload them.
  // With kPart it instantiates none: the program of a part is one graph. A graph with a Launch node whose arguments
  // depend on the launch is instantiated by the first launch instead.
  struct Parts {
    std::vector<LaunchObjects>& launch;  // one for each lane
    const Hostcalls* hostcalls;  // null if no node calls the host
    const GraphConstructs& constructs;  // those that the device decides, in the order of their nodes
  };
  // If a Launch node could not be captured, the Status names it (base::TakeNode).
  static absl::StatusOr<std::unique_ptr<SlotGraphs>> Create(Slot& slot, const Parts& parts, Upload upload);
  // For a part: CaptureWhatIsKnown calls all Launch nodes with what the slot holds, and fails if a body cannot hold
  // what one of them submits; the Status names that node. AddTo adds the part's nodes to a graph after others, and
  // returns those that are last in it; SetExec is as in GraphConstruct. What is said to `part` before AddTo decides how
  // its nodes are added. It has as many as Kernels returns, which is 0 if kernels cannot switch some of them.
  absl::Status CaptureWhatIsKnown();
  int32_t Kernels() const { return part_->Kernels(operations_); }
  SwitchedPart& part() { return *part_; }
  absl::StatusOr<NodeNumbers> AddTo(driver::Graph to, std::span<const int32_t> after);
  absl::Status SetExec(driver::GraphExec exec, driver::GraphExec root);
  ~SlotGraphs();
  SlotGraphs(const SlotGraphs&) = delete;
  SlotGraphs& operator=(const SlotGraphs&) = delete;

  // A parameter differs from the slot's previous run. Returns true if every node that takes it reads it by reference,
  // so that none of their arguments need be written.
  bool ReadsIndirectly(size_t param);
  // The same for a call (Program::calls) that takes it. Returns false if its arguments need not be written.
  bool TakesParam(CallId call);
  // The same for a value among a call's arguments, for a fill's pattern, and for a callable (in the same memory).
  void ValueDiffers(CallId call);
  void FillDiffers(FillId fill);
  void CallableDiffers(CallId call);
  // Anything that varies may differ.
  void AllMayDiffer() { all_differ_ = true; }

  // Called before Update: calls the Launch nodes whose arguments differ from those they were captured with. Returns
  // false if one is being called elsewhere; another try continues there. A failure names the node.
  absl::StatusOr<bool> Capture();
  // Called once for each run, before its first graph: updates the graphs to the slot's operations; does nothing if
  // nothing may differ. A failure names the node of the plan. The lane's device is current, as for Launch.
  absl::Status Update();
  absl::Status Launch(GraphId graph, driver::Stream stream);
  // What Launch does before it launches: copies to the device what regions read, those of its constructs included.
  absl::Status Refresh(driver::Stream stream);

  // From now on only graphs use the slot's arguments, so some of them need not be kept up to date.
  void OnlyGraphs() { indirection_.Allow(); }

  // Destroys the graphs but keeps the memory: freeing it would wait for the device.
  void Drop();

  void AddTo(SubmissionReport& submission_report) const;

  // Null if nodes have no timestamps.
  NodeTimestamps* timestamps() const { return timestamps_.get(); }
  // Whether the node of an entry did anything in the graphs' last launch.
  bool IsOn(EntryId entry) const { return nodes_[entry].enabled; }

 private:
  // The state of an entry's node in its graph.
  struct Node {
    GraphId graph{};
    int32_t number = -1;  // index in its graph
    bool enabled = true;
    bool known = false;  // it has been given an operation
    bool marked = false;  // it is in `differing_`
  };
  struct Made {
    driver::GraphExec exec;
    bool stale = true;  // it must be instantiated, for the first time or since a child has a new structure
  };
  // Whether the values that launches decide are known when a graph is made. Otherwise the first launch sets what
  // depends on them, before the graph runs.
  enum class Values : uint8_t { kUnknown, kKnown };
  struct Counts {
    OwnerCount instantiations, nodes_made, regions, region_nodes, launches, sets, switches, refreshes, instantiating_ns;
  };

  SlotGraphs(Slot& slot, const Parts& parts);
  absl::Status Make(Upload upload);
  absl::StatusOr<bool> CaptureEntry(EntryId entry);
  absl::Status InstantiateStale();
  absl::Status MakeGraph(GraphId graph, Values values);
  absl::Status AddNodes(GraphId graph, driver::Graph to, Values values);
  absl::StatusOr<NodeNumbers> AddEntry(EntryId entry, driver::Graph to, std::vector<int32_t>& after,
                                       driver::NodePlace place, Values values);
  absl::StatusOr<int32_t> AddNode(EntryId entry, driver::Graph to, const std::vector<int32_t>& after,
                                  driver::NodePlace place, Values values);
  absl::Status SwitchOff(GraphId graph, Values values);
  absl::Status UploadAll();
  void Mark(EntryId entry);
  void ChangeIndirection();
  void EnableIndirection(EntryId entry);
  void DisableIndirection(EntryId entry);
  void RequireInstantiation(EntryId entry, std::string why);
  absl::Status UpdateEntries(const std::vector<EntryId>& entries);
  absl::Status UpdateEntry(EntryId entry);
  absl::Status Enable(Node& node, bool enabled);
  absl::Status EnableHeads(GraphId graph);

  Slot& slot_;
  const GraphProgram& replay_;
  driver::Driver& driver_;
  const int device_;  // of the lane, an index in the driver
  NodeOperations operations_;
  CapturedCalls captured_;
  GraphHeads heads_;
  const GraphConstructs& constructs_;
  std::unique_ptr<SwitchedPart> part_;  // null: it is none
  std::unique_ptr<NodeTimestamps> timestamps_;
  Table<EntryId, Node> nodes_;
  Table<EntryId, NodeNumbers> last_;  // the nodes that later ones come after, its own or its timestamp
  Table<GraphId, Made> made_;
  std::vector<EntryId> differing_;  // each at most once; has capacity for all
  bool all_differ_ = true;
  bool any_stale_ = true;  // some graph may have to be instantiated
  ParameterIndirection indirection_;

  Counts counts_;
  mutable base::Mutex mu_;
  std::string reinstantiated_ ABSL_GUARDED_BY(mu_);  // why the last reinstantiated graph was
};

}  // namespace penstock::runtime
