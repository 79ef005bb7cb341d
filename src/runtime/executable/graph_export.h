// GraphExport: what an ExportedGraph owns: a driver graph, and the slot whose memory the graph's nodes name.
//
// Ownership: see exported_graph.h. When it is destroyed, nothing made from the graph is in use any more.
// Threads:   made and destroyed by one thread, not necessarily the same; constant in between.
// Errors:    FailedPrecondition for what an exported graph cannot contain; otherwise those of a launch.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

class GraphExport {
 public:
  // Makes a graph of what a launch with these bindings would do. `core`: as an Executable holds it.
  static absl::StatusOr<std::shared_ptr<const GraphExport>> Create(const std::shared_ptr<ExecutableCore>& core,
                                                                   const Bindings& bindings);
  // The slot is leased.
  GraphExport(std::shared_ptr<ExecutableCore> core, RunSlot* slot) : core_(std::move(core)), slot_(slot) {}
  ~GraphExport();
  GraphExport(const GraphExport&) = delete;
  GraphExport& operator=(const GraphExport&) = delete;

  // OK, or the first failure of its Host nodes.
  absl::Status status() const;
  void* native() const { return graph_->native(); }

 private:
  absl::Status Bind(const Bindings& bindings);
  absl::Status Make();

  const std::shared_ptr<ExecutableCore> core_;
  RunSlot* const slot_;
  std::unique_ptr<WholeGraph> graph_;
};

}  // namespace penstock::runtime
