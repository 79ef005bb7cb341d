// Reads the model: copies what passes need repeatedly from its records into flat arrays.
#include "graph/passes/draft.h"

namespace penstock::graph {

Records::Records(const Model& m, const PlanOptions& o) : model(m), options(o) {
  param_names.Reserve(m.params.size());
  for (const ParamDecl& param : m.params) param_names.Add(param.name.view());
  buffer_names.Reserve(m.buffers.size());
  buffers.reserve(m.buffers.size());
  node_names.Reserve(m.nodes.size());
  nodes.reserve(m.nodes.size());
  boxes.Reserve(m.nodes.size());
  after.Reserve(m.nodes.size(), 0);
}

void Records::Read(const BufferDecl& buffer) {
  buffer_names.Add(buffer.name.view());
  buffers.push_back({buffer.type, buffer.role, buffer.where, buffer.is_alias, buffer.count.buffer >= 0});
}

void Records::Read(const NodeDecl& node) {
  node_names.Add(node.name.view());
  nodes.push_back({node.kind, node.host_way, node.device, node.priority});
  boxes.Add(model, node);
  for (const DeclId other : node.after) after.Add(other);
  after.Close();
}

}  // namespace penstock::graph
