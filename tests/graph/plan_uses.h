// What plan nodes do to instances, and how messages of the oracle name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan.h"

namespace penstock::graph {

inline bool IsStage(const PlanNode& node) {
  return node.kind == PlanKind::kStageIn || node.kind == PlanKind::kStageOut;
}

// The uses of a node, copies included.
inline std::vector<Use> UsesOf(const PlanNode& node) {
  if (node.decl >= 0) return {node.uses.begin(), node.uses.end()};
  return {{node.src, AccessMode::kRead}, {node.dst, AccessMode::kWrite}};
}

inline bool Conflict(AccessMode a, AccessMode b) { return a != AccessMode::kRead || b != AccessMode::kRead; }

// "3 'axpy'"
inline std::string Label(const Plan& plan, int32_t node) {
  return std::to_string(node) + " '" + plan.nodes[static_cast<size_t>(node)].name + "'";
}

}  // namespace penstock::graph
