#include "src/runtime/executable/loops_report.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace penstock::runtime {
namespace {

void AddLoops(const ExecutableCore& core, std::vector<SubmissionReport::Loop>& loops) {
  std::map<DeclId, std::optional<int64_t>> constructs;  // by their nodes; none: it is no loop
  const auto add = [&](const auto& of_slot) {
    for (const auto& construct : of_slot) {
      const std::optional<int64_t> here = construct->iterations();
      std::optional<int64_t>& sum = constructs[core.graph().plan().nodes[construct->node()].decl];
      if (here) sum = sum.value_or(0) + *here;
    }
  };
  for (int s = 0; s < core.slots(); ++s) {
    add(core.slot(s).constructs);
    add(core.slot(s).controls);
  }
  for (const auto& [node, iterations] : constructs) {
    if (iterations) loops.push_back({std::string(core.model().nodes[node].name.view()), *iterations});
    for (const ControlPart& part : core.parts()) {
      if (part.construct == node) AddLoops(*part.core, loops);
    }
  }
}

}  // namespace

std::vector<SubmissionReport::Loop> LoopsOf(const ExecutableCore& core) {
  std::vector<SubmissionReport::Loop> loops;
  AddLoops(core, loops);
  return loops;
}

}  // namespace penstock::runtime
