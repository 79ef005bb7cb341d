// HostGraphs: the graphs and execs of a host driver.
//
// A graph is a list of nodes, each with a copy of its operation; an exec has such a list of its own. Operations
// are kept as given, and checked when added and again at each launch, which makes their tasks. So later changes do
// not affect earlier launches, batch tables are read at the launch, and memory freed in the meantime is refused
// instead of touched.
//
// A body of a conditional node is a graph that its graph owns: its handle goes with that of the graph. Of an exec's
// bodies BodyOf gives handles to the exec's own lists of nodes.
//
// Ownership: as graph_nodes.h; memory, callables, gates and faults are borrowed until the launches that use them have
//            ended. Borrows the driver's WorkMaker and Scheduler.
// Threads:   thread-safe, but one thread at a time uses a graph or an exec. One mutex, for the handles, with no other
//            lock taken inside.
// Ordering:  edges and the launching stream, by Scheduler::SubmitGraph.
// Errors:    InvalidArgument for handles that are not alive, for what a WorkMaker refuses, and for operations that
//            streams accept but CUDA's graphs do not. LaunchGraph names the node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/driver/host/graph_nodes.h"
#include "src/driver/host/handle_table.h"
#include "src/driver/host/scheduler.h"
#include "src/driver/host/work_maker.h"

namespace penstock::driver::host {

// An operation that may be a node: it obeys the rules of every graph, and those of this driver's streams.
absl::StatusOr<std::shared_ptr<const KeptOp>> Keep(const WorkMaker& maker, int device, const NodeOp& op);

class HostGraphs {
 public:
  HostGraphs(const WorkMaker& maker, Scheduler& scheduler) : maker_(maker), scheduler_(scheduler) {}

  // As in driver.h.
  absl::StatusOr<Graph> CreateGraph(int device);
  absl::StatusOr<Graph> Adopt(GraphNodes nodes);
  void DestroyGraph(Graph graph);
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op, NodePlace place);
  absl::StatusOr<int32_t> AddHost(Graph graph, std::span<const int32_t> after, const NodeOp& call);
  absl::StatusOr<GraphExec> Instantiate(Graph graph);
  void DestroyExec(GraphExec exec);
  absl::Status Upload(GraphExec exec, Stream stream);
  absl::Status LaunchGraph(GraphExec exec, Stream stream);
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op);
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled);
  absl::StatusOr<int32_t> CountNodes(Graph graph);
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child);
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child);
  absl::StatusOr<ConditionalHandle> CreateConditional(Graph graph);
  absl::StatusOr<ConditionalNode> AddConditional(Graph graph, std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies);
  absl::StatusOr<GraphExec> BodyOf(GraphExec exec, Graph body);
  absl::StatusOr<NodeSwitch> AddSwitch(Graph graph, int32_t node);

 private:
  struct Body {
    const GraphNodes* of = nullptr;  // the body that was instantiated; only compared
    std::shared_ptr<GraphNodes> nodes;
  };
  struct Exec {
    std::shared_ptr<GraphNodes> nodes;
    std::vector<Body> bodies{};  // nested ones too
    Scheduler::Turn turn{};
  };
  struct Entry {
    std::shared_ptr<GraphNodes> nodes;
    std::vector<Graph> bodies{};
    bool instantiated = false;
  };

  absl::StatusOr<GraphExec> Add(std::shared_ptr<Exec> exec);
  void Remove(Graph graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::vector<GraphStep>> StepsOf(const GraphNodes& nodes) const;
  absl::StatusOr<GraphStep> StepOf(const GraphNode& node) const;
  absl::StatusOr<std::shared_ptr<GraphNodes>> Find(Graph graph);
  absl::StatusOr<std::shared_ptr<Exec>> Find(GraphExec exec);
  absl::StatusOr<std::shared_ptr<Exec>> FindFor(GraphExec exec, Stream stream);

  const WorkMaker& maker_;
  Scheduler& scheduler_;

  base::Mutex mu_;
  HandleTable<Entry> graphs_ ABSL_GUARDED_BY(mu_);
  HandleTable<std::shared_ptr<Exec>> execs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::driver::host
