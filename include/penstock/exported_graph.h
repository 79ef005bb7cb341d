// ExportedGraph: what one launch of an executable would do, as a graph of the platform's own: for the application to
// launch, to add to a graph or a capture of its own (AddToCapture in cuda.h), or to print:
//
//   PS_ASSIGN_OR_RETURN(ps::ExportedGraph step, exec.Export(io));
//   cudaGraphDebugDotPrint(ps::CudaGraphOf(step), "step.dot", cudaGraphDebugDotFlagsVerbose);
//
// It has the parameters and memory that the bindings named; other ones are another export. Of a slot's memory there is
// one, so what is made of the graph runs once at a time; and nothing orders it with runs that touch the same bound
// memory but what the application does.
//
// Some edges between kernels are programmatic: cudaGraphGetEdges and its like want room for edge data, or refuse.
//
// Host nodes, asked for or not, are called by a thread of CUDA's, which other such calls of the device wait for: they
// call nothing of CUDA's and launch nothing, and each takes about 20 us. What a run would do beside them comes behind.
// One execution of a callable at a time, as always: so Host nodes of runs must not wait for work that has this graph in
// it.
//
// Ownership: owns the graph, and keeps alive what its nodes name: a slot, the executable, callables, and bound memory
//            with a keep-alive. It must outlive the work of whatever was made of the graph: execs, graphs it is a child
//            in. Copies share it. When the last one goes, so does the graph.
// Threads:   thread-safe. The graph itself is used as CUDA has it.
// Errors:    those of Host nodes by status(); what else fails while the application runs it is the application's.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "penstock/export.h"

namespace penstock {

namespace runtime {
class GraphExport;
}

class PENSTOCK_EXPORT ExportedGraph {
 public:
  ExportedGraph() = default;  // of nothing

  // The first failure of a Host node, which keeps later Host nodes from being called; other nodes go on. OK till then.
  absl::Status status() const;

  // A cudaGraph_t; <penstock/cuda.h> has it typed. Null where this was default-constructed.
  // A temporary gives none away, since the graph goes with it.
  void* native_graph() const& { return native_; }
  void* native_graph() const&& = delete;

 private:
  friend class Executable;
  ExportedGraph(std::shared_ptr<const runtime::GraphExport> owner, void* native)
      : owner_(std::move(owner)), native_(native) {}

  std::shared_ptr<const runtime::GraphExport> owner_;
  void* native_ = nullptr;
};

}  // namespace penstock
