// GraphExport: what an ExportedGraph owns: a graph of the driver's, and the slot whose memory its nodes name.
//
// Ownership: see exported_graph.h. When it goes, nothing that was made of the graph is used any more.
// Threads:   made and destroyed by one thread, any; constant between.
#pragma once

#include <memory>
#include <utility>

#include "src/runtime/graph_exec/slot_graphs.h"

namespace penstock::runtime {

class ExecutableCore;
struct Slot;

class GraphExport {
 public:
  // `core`: as an Executable holds it. The slot is leased.
  GraphExport(std::shared_ptr<ExecutableCore> core, Slot* slot) : core_(std::move(core)), slot_(slot) {}
  ~GraphExport();
  GraphExport(const GraphExport&) = delete;
  GraphExport& operator=(const GraphExport&) = delete;

  void Set(std::unique_ptr<SlotGraphs> graph) { graph_ = std::move(graph); }
  // OK, or the first failure of its Host nodes.
  absl::Status status() const;
  void* native() const { return graph_->native_whole(); }

 private:
  const std::shared_ptr<ExecutableCore> core_;
  Slot* const slot_;
  std::unique_ptr<SlotGraphs> graph_;
};

}  // namespace penstock::runtime
