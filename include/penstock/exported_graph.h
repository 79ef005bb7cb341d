// ExportedGraph: what one launch of an executable would do, as a platform graph. The application may launch it, add it
// to a graph or capture of its own (AddToCapture in cuda.h), or print it:
//
//   PS_ASSIGN_OR_RETURN(ps::ExportedGraph step, exec.Export(io));
//   cudaGraphDebugDotPrint(ps::CudaGraphOf(step), "step.dot", cudaGraphDebugDotFlagsVerbose);
//
// It has the parameters and memory that the bindings named; other bindings need another export. It uses the memory of
// one slot, so anything made of the graph must run once at a time, and only the application orders it with runs that
// touch the same bound memory.
//
// Some edges between kernels are programmatic, so cudaGraphGetEdges and similar calls fail unless they take edge data.
//
// A CUDA thread calls its host nodes, whether a run would call them by hostcall or not, and other such calls on the
// device wait for that thread. They must not call CUDA or launch anything, and each takes about 20 us. Work that a run
// would do beside them comes after them. As always, a callable executes once at a time, so Host nodes of runs must not
// wait for work that contains this graph.
//
// Ownership: owns the graph, and keeps alive what its nodes name: a slot, the executable, callables, and bound memory
//            with a keep-alive. It must outlive the work of everything made of the graph: execs, and graphs that
//            contain it as a child. Copies share it; the graph goes with the last one.
// Threads:   thread-safe. CUDA's own rules apply to the graph itself.
// Errors:    status() returns those of Host nodes; all others that occur while the application runs it are the
//            application's.
#pragma once

#include "penstock/detail/cplusplus20.h"

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
  ExportedGraph() = default;  // has no graph

  // The first failure of a Host node, or OK. After a failure no further Host nodes are called; other nodes go on.
  absl::Status status() const;

  // A cudaGraph_t; <penstock/cuda.h> has a typed version. Null if default-constructed. Not available on a temporary,
  // since the graph goes with it.
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
