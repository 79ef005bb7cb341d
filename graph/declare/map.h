// The parts of a node that computes a formula.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <vector>

#include "penstock/detail/formula.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// Gives the node its code and its arguments. `accesses` and `params` are those of the formula, in its order; `types`
// are the elements'.
void SetFormula(NodeDecl& node, std::shared_ptr<const detail::Formula> formula, const Extent& extent,
                std::vector<AccessDecl> accesses, const std::vector<TypeInfo>& types,
                const std::vector<detail::FlatMap::Param>& params);

// Appends a step, unless there is an equal one. Returns its index.
int32_t AddStep(std::vector<detail::FormulaStep>& steps, const detail::FormulaStep& step);

}  // namespace penstock::graph
