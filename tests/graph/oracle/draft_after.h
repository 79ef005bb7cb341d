// DraftAfter: the planner's draft after some of its passes, for tests of single passes.
#pragma once

#include <string_view>

#include "graph/passes/passes.h"

namespace penstock::graph {

// The draft of a model after the passes up to `last`, or up to those that end planning because of mistakes. The pass
// named `without` is left out.
inline Draft DraftAfter(std::string_view last, const Model& model, const PlanOptions& options,
                        std::string_view without = {}) {
  Draft draft(model, options);
  for (const Pass& pass : Passes()) {
    if (pass.name != without) pass.run(draft);
    if (pass.name == last || (pass.ends_with_mistakes && !draft.findings.mistakes.empty())) break;
  }
  return draft;
}

}  // namespace penstock::graph
