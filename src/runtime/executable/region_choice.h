// RegionChoice: which nodes of a plan may be in resident regions, and the code that they have there.
//
// On a CUDA device a region runs in one kernel of a translation unit, which can call the functors of that unit only. So
// the nodes of a unit are a group; fills and copies, which any such kernel can do, belong to the unit with the most
// nodes.
//
// Ownership: borrows the graph.
// Threads:   used by one thread, while it compiles the graph.
// Errors:    the driver's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/graph_schedule.h"
#include "penstock/compile_options.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"

namespace penstock::runtime {

class RegionChoice {
 public:
  RegionChoice(const CompiledGraph& graph, RuntimeCore& runtime) : graph_(graph), runtime_(runtime) {}

  // What the options or the environment ask for. InvalidArgument if that is no such word.
  static absl::StatusOr<Resident> Wanted(const Model& model, const CompileOptions& options);
  // Whether a node of a construct's body may be in a region, as far as the model tells.
  static bool MayBeResident(const Model& model, const NodeDecl& node, Resident wanted);
  // Decides for the plan of the graph, which is on one device. Adds why nodes are in none to `notes` if all regions are
  // wanted.
  void Choose(Resident wanted, std::vector<std::string>& notes);
  // Decides for a part of a construct that is to be in a region as a whole, its condition too.
  void ChooseWhole(Resident wanted);
  // Says that the graph is part of a construct, in which one region may run at a time.
  void ChooseOneAtATime() {
    if (rules_.most_at_once < INT32_MAX) rules_.most_at_once = 1;
  }
  const graph::RegionRules& rules() const { return rules_; }
  int32_t most_workers() const { return most_workers_; }
  // Loads the code of the nodes that may be in a region. If it was not compiled for the device, none may.
  absl::Status Load(LoadedKernels& kernels, std::vector<std::string>& notes);

 private:
  void Decide(std::vector<std::string>& notes);
  bool IsSmall(NodeId n) const;
  std::string WhyNotResident(NodeId n, bool cuda) const;
  void SetLimits(const driver::DeviceInfo& device);
  int32_t Group(bool cuda);
  class CodeLoads;
  // Calls `f` with each ParallelFor that may be in a region.
  template <class F>
  absl::Status ForEachFunctor(F f) const;
  absl::Status FindAddresses(const driver::DeviceRef& device, const CodeLoads& loads,
                             std::map<const void*, uint64_t>& addresses) const;

  const CompiledGraph& graph_;
  RuntimeCore& runtime_;
  graph::RegionRules rules_;
  Resident wanted_ = Resident::kOff;
  bool whole_ = false;
  int32_t most_workers_ = 1;
};

}  // namespace penstock::runtime
