// What plan nodes do to instances, and how messages of the oracle name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace penstock::graph {

inline bool IsStage(const PlanNode& node) {
  return node.kind == PlanKind::kStageIn || node.kind == PlanKind::kStageOut;
}

// Which access of its Copy node gives the box of a copy's use: the one that reads, or the one that writes.
inline size_t AccessOfCopy(const Model& model, const PlanNode& node, AccessMode mode) {
  return model.nodes[node.copy].accesses[0].mode == mode ? 0 : 1;
}

// The bound memory that decides whether a node is made at all; -1: it always is.
inline int32_t DecidingBuffer(const Plan& plan, const PlanNode& node) {
  if (node.when == When::kAlways) return -1;
  const Instance& src = plan.instances[node.src];
  return src.space == Space::kBound ? src.buffer : plan.instances[node.dst].buffer;
}

// The uses of a node, copies included.
inline std::vector<Use> UsesOf(const PlanNode& node) {
  if (node.decl >= 0) return {node.uses.begin(), node.uses.end()};
  return {{node.src, AccessMode::kRead}, {node.dst, AccessMode::kWrite}};
}

inline bool Conflict(AccessMode a, AccessMode b) { return a != AccessMode::kRead || b != AccessMode::kRead; }

// "3 'axpy'"
inline std::string Label(const Plan& plan, int32_t node) {
  return std::to_string(node) + " '" + plan.nodes[node].name + "'";
}

}  // namespace penstock::graph
