// SourceKernels: the kernels of a plan that are made from sources (penstock/source.h).
//
// Ownership: borrows the graph and the runtime; holds the images until they are taken.
// Threads:   used by one thread, while it compiles the graph.
// Errors:    the compiler's (src/jit/compiler.h) and the driver's; InvalidArgument for a kernel that takes other
//            arguments than its node gives.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/jit/compiler.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class SourceKernels {
 public:
  SourceKernels(const CompiledGraph& graph, const RuntimeCore& runtime) : graph_(graph), runtime_(runtime) {}

  // Compiles the sources of all nodes on devices that run device code, each once for each architecture. `tell` may end
  // it. A failure names its first node.
  absl::Status Compile(const std::function<absl::Status(size_t done, size_t total)>& tell);
  // Whether the node has such a kernel.
  bool Has(NodeId node) const { return of_node_[node] >= 0; }
  // Loads it, once for each device, and compares its parameters with the node's arguments.
  absl::StatusOr<driver::KernelCode> Load(NodeId node);
  // What keeps the images loaded.
  std::vector<std::shared_ptr<const void>> TakeImages();

 private:
  using LoadKey = std::tuple<const jit::KernelImage*, driver::Driver*, int, bool>;

  void Collect();
  int32_t IndexOf(const Source::Parts& source, const std::string& architecture) const;

  const CompiledGraph& graph_;
  const RuntimeCore& runtime_;
  std::vector<jit::WantedKernel> wanted_;
  std::vector<NodeId> first_;  // the first node of each
  Table<NodeId, int32_t> of_node_;  // the index in `wanted_`; -1: none
  std::vector<jit::SharedImage> compiled_;  // as in `wanted_`
  std::map<LoadKey, driver::ImageKernel> loaded_;
};

}  // namespace penstock::runtime
