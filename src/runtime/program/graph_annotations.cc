#include "src/runtime/program/graph_annotations.h"

namespace penstock::runtime {

GraphAnnotations::GraphAnnotations(const graph::Plan& plan) {
  if (!base::Annotating()) return;
  launch = base::AnnotationOf("launch " + plan.graph);
  run = base::AnnotationOf("run of " + plan.graph);
  wait = base::AnnotationOf("wait for a slot of " + plan.graph);
  nodes_.resize(plan.nodes.size());
  for (const graph::NodeId n : plan.nodes.ids()) {
    const graph::PlanKind kind = plan.nodes[n].kind;
    const bool calls = kind == graph::PlanKind::kHost || kind == graph::PlanKind::kHostcall;
    if (calls) nodes_[n] = base::AnnotationOf(plan.nodes[n].name);
  }
}

}  // namespace penstock::runtime
