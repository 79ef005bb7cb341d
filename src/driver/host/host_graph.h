// HostGraphs: the graphs and execs of a host driver.
//
// A graph is a list of nodes, each with a copy of its operation; an exec has such a list of its own. Operations
// are kept as given, and checked when added and again at each launch, which makes their tasks. So later changes do
// not affect earlier launches, batch tables are read at the launch, and memory freed in the meantime is refused
// instead of touched.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/driver/host/graph_nodes.h"
#include "src/driver/host/handle_table.h"
#include "src/driver/host/scheduler.h"
#include "src/driver/host/work_maker.h"

namespace penstock::driver::host {

class HostGraphs {
 public:
  HostGraphs(const WorkMaker& maker, Scheduler& scheduler) : maker_(maker), scheduler_(scheduler) {}

  // As in driver.h.
  absl::StatusOr<Graph> CreateGraph(int device);
  absl::StatusOr<Graph> Adopt(GraphNodes nodes);
  void DestroyGraph(Graph graph);
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op, int priority);
  absl::StatusOr<GraphExec> Instantiate(Graph graph);
  void DestroyExec(GraphExec exec);
  absl::Status Upload(GraphExec exec, Stream stream);
  absl::Status LaunchGraph(GraphExec exec, Stream stream);
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op);
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled);
  absl::StatusOr<int32_t> CountNodes(Graph graph);
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child);
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child);

 private:
  struct Exec {
    GraphNodes nodes;
    Scheduler::Turn turn{};
  };

  absl::StatusOr<std::shared_ptr<GraphNodes>> Find(Graph graph);
  absl::StatusOr<std::shared_ptr<Exec>> Find(GraphExec exec);
  absl::StatusOr<std::shared_ptr<Exec>> FindFor(GraphExec exec, Stream stream);

  const WorkMaker& maker_;
  Scheduler& scheduler_;

  base::Mutex mu_;
  HandleTable<std::shared_ptr<GraphNodes>> graphs_ ABSL_GUARDED_BY(mu_);
  HandleTable<std::shared_ptr<Exec>> execs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::driver::host
