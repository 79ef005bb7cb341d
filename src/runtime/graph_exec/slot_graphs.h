// SlotGraphs: the CUDA graphs of one slot. They are made once, launched by each run, and given only what has changed
// since the launch before.
//
// A node that cannot be known before the first launch (bound memory) is made with a placeholder, and the first launch
// sets it, or switches it off, before it runs; one that never has anything to do is switched off from the start.
//
// Where many nodes have new parameters launch after launch, they read these from device memory instead, and the graph
// is made again once for that (parameter_indirection.h); the copy is the first node of the graph, its head. A head that
// copies nothing is switched off, and still worth having: a graph that begins with one kernel is launched faster than
// one that begins with many (bench/replay). Copies by the copy engines do not wait for it.
//
// Where the executable has a trace, timestamps stand among the nodes (node_timestamps.h). What a node does is
// NodeOperations, what a Launch node has submitted CapturedCalls.
//
// Ownership: owns its graphs and the timestamps; borrows the slot.
// Threads:   belongs to whoever owns the slot. Counts may be read by anybody.
// Ordering:  what is set counts for the launches after. The slot's last run has ended before.
// Locks:     mu_, for the words of the submission report, a leaf.
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
#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/graph_exec/node_timestamps.h"
#include "src/runtime/graph_exec/owner_count.h"
#include "src/runtime/graph_exec/parameter_indirection.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class SlotGraphs {
 public:
  // Instantiates the graphs and, where `upload`, uploads them; returns when that is done. Graphs with a Launch node
  // whose arguments are decided by launches are instantiated by the first. `launch`: a lane each. `hostcalls`: null
  // where no node asks the host. Where it fails since a Launch node could not be captured, the Status names that
  // (base::TakeNode).
  static absl::StatusOr<std::unique_ptr<SlotGraphs>> Create(Slot& slot, std::vector<LaunchObjects>& launch,
                                                            const Hostcalls* hostcalls, bool upload);
  ~SlotGraphs();
  SlotGraphs(const SlotGraphs&) = delete;
  SlotGraphs& operator=(const SlotGraphs&) = delete;

  // Says that a parameter differs from that of the slot's run before. True: all who take it read it by reference, and
  // none of their arguments need be written.
  bool ReadsByRef(size_t param);
  // The same of a call (Program::calls) that takes it. False: its arguments need not be written.
  bool TakesParam(int32_t call);
  // The same of a value among a call's arguments, of a fill's pattern, and of a callable (its memory stays where it
  // is).
  void ValueDiffers(int32_t call);
  void FillDiffers(int32_t fill);
  void CallableDiffers(int32_t call);
  // Says that anything that varies may be another.
  void AllMayDiffer() { all_differ_ = true; }

  // Before Update: calls the Launch nodes whose arguments are not those they were captured with. False: one is being
  // called elsewhere; another try goes on there. A failure names the node.
  absl::StatusOr<bool> Capture();
  // Once a run, before its first graph: gives the graphs what the slot's operations have that they have not; nothing
  // where nothing may differ. A failure names the node of the plan. The device is current, as for Launch.
  absl::Status Update();
  absl::Status Launch(int32_t graph, driver::Stream stream);

  // From now on only graphs use the slot's arguments, so that some of them need not be kept.
  void OnlyGraphs() { indirection_.Allow(); }

  // Gives back the graphs, but not the memory: freeing it would wait for the device.
  void Drop();

  void AddTo(SubmissionReport& submission_report) const;

  // Null where nodes are not stamped.
  NodeTimestamps* timestamps() const { return timestamps_.get(); }
  // Whether the node of an entry did anything in the graphs' last launch.
  bool IsOn(int32_t entry) const { return nodes_[static_cast<size_t>(entry)].enabled; }

 private:
  // What an entry of the program is in its graph now.
  struct Node {
    int32_t graph = -1;
    int32_t number = -1;  // in its graph
    bool enabled = true;
    bool known = false;  // it has been given an operation
    bool marked = false;  // it is in `differing_`
  };
  struct Made {
    driver::GraphExec exec;
    bool anew = true;  // it is to be made, or made again, since a child has another structure
    int32_t head = -1;  // the node it begins with, if it has one
    bool head_enabled = true;
  };
  struct Counts {
    OwnerCount instantiations, nodes_made, launches, sets, switches, refreshes, instantiating_ns;
  };

  SlotGraphs(Slot& slot, std::vector<LaunchObjects>& launch, const Hostcalls* hostcalls);
  absl::Status Make(bool upload);
  absl::Status CaptureWhatIsKnown();
  absl::StatusOr<bool> CaptureEntry(int32_t entry);
  absl::Status MakeAnew();
  absl::Status MakeGraph(int32_t graph, bool bound);
  absl::Status AddNodes(int32_t graph, driver::Graph to, bool bound);
  absl::Status AddHead(int32_t graph, driver::Graph to);
  bool WantsHead(int32_t graph, int32_t entry) const;
  absl::StatusOr<int32_t> AddEntry(int32_t entry, driver::Graph to, std::vector<int32_t>& after, int priority,
                                   bool bound);
  absl::StatusOr<int32_t> AddNode(int32_t entry, driver::Graph to, const std::vector<int32_t>& after, int priority,
                                  bool bound);
  absl::Status SwitchOff(int32_t graph, bool bound);
  absl::Status UploadAll();
  void Mark(int32_t entry);
  void ChangeIndirection();
  bool MayReadParams(const GraphNodeEntry& entry) const;
  void EnableIndirection(int32_t entry);
  void DisableIndirection(int32_t entry);
  void MakeAnewFor(int32_t entry, std::string why);
  absl::Status UpdateEntries(const std::vector<int32_t>& entries);
  absl::Status UpdateEntry(int32_t entry);
  absl::Status Enable(Node& node, bool enabled);
  absl::Status EnableHead(int32_t graph, bool enabled);
  Node& NodeAt(int32_t entry) { return nodes_[static_cast<size_t>(entry)]; }
  const GraphNodeEntry& EntryAt(int32_t entry) const { return replay_.entries[static_cast<size_t>(entry)]; }
  Made& MadeOf(const Node& node) { return made_[static_cast<size_t>(node.graph)]; }

  Slot& slot_;
  const GraphProgram& replay_;
  driver::Driver& driver_;
  const int device_;  // its index in the driver
  NodeOperations operations_;
  CapturedCalls captured_;
  std::unique_ptr<NodeTimestamps> timestamps_;
  std::vector<Node> nodes_;  // an entry each
  std::vector<int32_t> last_;  // of each entry: the node that later ones come after, itself or its timestamp
  std::vector<Made> made_;  // a graph each
  std::vector<int32_t> differing_;  // entries, each once; room for all
  bool all_differ_ = true;
  bool any_anew_ = true;  // some graph may be to be made
  ParameterIndirection indirection_;
  int32_t refreshed_by_ = -1;  // the graph whose head brings the parameters to the device

  Counts counts_;
  mutable base::Mutex mu_;
  std::string remade_ ABSL_GUARDED_BY(mu_);  // why the last graph was that had been made before
};

}  // namespace penstock::runtime
