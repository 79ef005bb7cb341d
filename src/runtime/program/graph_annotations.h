// GraphAnnotations: what tools show of an executable's launches and runs (src/base/annotate.h). All texts are null
// without a tool.
//
// Threads: constant after Compile.
#pragma once

#include <vector>

#include "graph/plan/plan.h"
#include "src/base/annotate.h"

namespace penstock::runtime {

struct GraphAnnotations {
  GraphAnnotations() = default;
  explicit GraphAnnotations(const graph::Plan& plan);

  // Of the host node's call.
  base::AnnotationText node(graph::NodeId node) const { return nodes_.empty() ? nullptr : nodes_[node]; }

  base::AnnotationText launch = nullptr, run = nullptr, wait = nullptr;

 private:
  detail::Table<graph::NodeId, base::AnnotationText>
      nodes_;  // empty without a tool; null for nodes that do not call the host
};

}  // namespace penstock::runtime
