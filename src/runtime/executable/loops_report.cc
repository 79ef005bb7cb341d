#include "src/runtime/executable/loops_report.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace penstock::runtime {
namespace {

void AddLoops(const ExecutableCore& core, std::vector<SubmissionReport::Loop>& loops) {
  std::map<DeclId, std::optional<LoopTotals>> constructs;  // by their nodes; none: it is no loop
  const auto add = [&](const auto& of_slot) {
    for (const auto& construct : of_slot) {
      const std::optional<LoopTotals> here = construct->Totals();
      std::optional<LoopTotals>& sum = constructs[core.graph().plan().nodes[construct->node()].decl];
      if (!here) continue;
      if (!sum) sum.emplace();
      *sum += *here;
    }
  };
  for (int s = 0; s < core.slots(); ++s) {
    add(core.slot(s).constructs);
    add(core.slot(s).controls);
  }
  for (const auto& [node, totals] : constructs) {
    if (totals) {
      const double micros = static_cast<double>(totals->nanos) / 1000;
      loops.push_back(
          {.name = std::string(core.model().nodes[node].name.view()),
           .iterations = totals->iterations,
           .iteration_us = totals->timed > 0 && totals->nanos > 0 ? micros / static_cast<double>(totals->timed) : 0});
    }
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
