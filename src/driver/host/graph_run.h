// GraphRun: one launch of a graph while it runs: which of its nodes may begin, after each that has ended. A state
// machine without threads, which the Scheduler turns.
//
// The nodes of the graph and of all bodies stand in one list. A part of the list, the graph or a body, has ended when
// all its nodes have. A conditional node begins by reading its value and starting the part that this chooses; a loop
// reads it again at the part's end and starts the part again, so an iteration allocates nothing. A loop ends, whatever
// its value, when a node in it belongs to a run that has failed: its later work is skipped, and so nothing would set
// the value. An iteration that ran no task is followed by a task that does nothing, so that a loop which never ends
// leaves the engines to others as any loop does.
//
// All nodes that kernels may switch are on at the start.
//
// Ownership: owns the tasks; shares the values and switches; borrows the runs' faults.
// Threads:   not thread-safe; the Scheduler locks. Only tasks that run write the values and switches.
// Errors:    none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/driver/driver.h"
#include "src/driver/host/tasks.h"

namespace penstock::driver::host {

struct BranchSteps;

// A graph node as a launch submits it: a task, nothing, or a choice between bodies.
struct GraphStep {
  Work work{};
  std::span<const int32_t> after{};  // numbers of earlier steps
  int priority = 0;
  int device = 0;  // whose engine does the work
  std::unique_ptr<BranchSteps> branch{};
  std::shared_ptr<uint32_t> is_on{};  // what kernels switch the node by; null: it has no switch
};

// What a conditional node chooses between.
struct BranchSteps {
  ConditionalKind kind = ConditionalKind::kIf;
  std::shared_ptr<const uint32_t> value;
  std::vector<std::vector<GraphStep>> bodies;
};

class GraphRun {
 public:
  explicit GraphRun(std::vector<GraphStep> steps);

  int32_t count() const { return static_cast<int32_t>(nodes_.size()); }
  // A node's work, once; afterwards it still counts as one with a task.
  Work TakeWork(int32_t node) { return std::move(nodes_[static_cast<size_t>(node)].work); }
  int priority(int32_t node) const { return nodes_[static_cast<size_t>(node)].priority; }
  int device(int32_t node) const { return nodes_[static_cast<size_t>(node)].device; }

  // Both append to `ready` the nodes whose task shall run now, and return whether the graph has ended. Start is called
  // once; End for each of those nodes, when its task has run.
  bool Start(std::vector<int32_t>& ready);
  bool End(int32_t node, std::vector<int32_t>& ready);

 private:
  struct Node {
    Work work{};
    bool has_task = false;
    int priority = 0;
    int device = 0;
    int32_t part = 0;
    int32_t branch = -1;  // of a conditional node
    int32_t before = 0, awaited = 0;  // predecessors, and those that have not ended
    std::vector<int32_t> next{};
    std::shared_ptr<uint32_t> is_on{};
  };
  struct Part {
    int32_t first = 0, end = 0;  // its nodes
    int32_t branch = -1;  // whose body it is; -1: the graph
    int32_t left = 0;  // nodes that have not ended
    bool ran_a_task = false;  // since it was started
  };
  struct Branch {
    ConditionalKind kind = ConditionalKind::kIf;
    std::shared_ptr<const uint32_t> value;
    int32_t node = 0;
    int32_t pause = -1;  // of a loop: the node whose task does nothing
    std::vector<int32_t> parts{};
    std::vector<const RunFault*> faults{};
  };

  int32_t AddPart(std::vector<GraphStep> steps, int32_t branch);
  void AddBranch(int32_t node, BranchSteps steps);
  void AddFaults(Branch& branch, int32_t first) const;
  int32_t AddPause(int32_t branch);

  void StartPart(int32_t part, std::vector<int32_t>& ready);
  void Begin(int32_t node, std::vector<int32_t>& ready);
  void Choose(int32_t branch, std::vector<int32_t>& ready);
  int32_t Chosen(const Branch& branch) const;
  bool Drain(std::vector<int32_t>& ready);
  void EndPart(int32_t part, std::vector<int32_t>& ready);
  Node& at(int32_t node) { return nodes_[static_cast<size_t>(node)]; }

  std::vector<Node> nodes_;
  std::vector<Part> parts_;  // the first is the graph
  std::vector<Branch> branches_;
  std::vector<int32_t> ended_;  // nodes that have ended, and whose successors do not know yet
  bool done_ = false;
};

}  // namespace penstock::driver::host
