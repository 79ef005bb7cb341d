// Reads the model: what passes ask of its records again and again comes into flat arrays, in one go over the nodes.
#include "graph/passes.h"

namespace penstock::graph {

Draft::Draft(const Model& m, const PlanOptions& o) : model(m), options(o) {
  param_names.Reserve(m.params.size());
  for (const ParamDecl& param : m.params) param_names.Add(param.name.view());
  buffer_names.Reserve(m.buffers.size());
  buffers.reserve(m.buffers.size());
  bool any_alias = false;
  for (const BufferDecl& buffer : m.buffers) {
    buffer_names.Add(buffer.name.view());
    buffers.push_back({buffer.type, buffer.role, buffer.where, buffer.is_alias});
    any_alias = any_alias || buffer.is_alias;
  }
  node_names.Reserve(m.nodes.size());
  nodes.reserve(m.nodes.size());
  boxes.Reserve(m.nodes.size());
  for (const NodeDecl& node : m.nodes) {
    for (const int32_t other : node.after) after.push_back({other, static_cast<int32_t>(nodes.size())});
    node_names.Add(node.name.view());
    nodes.push_back({node.kind, node.device, node.priority});
    boxes.Add(m, node);
  }
  if (any_alias || boxes.any_part()) boxes.FindBoxes(m);
}

}  // namespace penstock::graph
