#include "src/runtime/executable/mode_cost.h"

#include "src/runtime/executable/tuning.h"

namespace penstock::runtime {

using graph::Command;

Mode LikelyMode(const graph::Plan& plan, const graph::GraphSchedule& graphs) {
  const auto submitting = [](const auto& commands) {
    double us = 0;
    for (const Command& c : commands) {
      switch (c.op) {
        case Command::Op::kNode: us += tuning::kSubmitNodeUs; break;
        case Command::Op::kGraph: us += tuning::kSubmitGraphUs; break;
        default: us += tuning::kSubmitWaitUs;
      }
    }
    return us;
  };
  double in_graphs = submitting(graphs.commands);
  for (const graph::GraphPart& part : graphs.graphs) {
    in_graphs += tuning::kSubmitGraphNodeUs * static_cast<double>(part.entries.size());
  }
  return in_graphs <= submitting(plan.commands) ? Mode::kGraph : Mode::kStream;
}

}  // namespace penstock::runtime
