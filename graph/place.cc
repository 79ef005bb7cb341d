// Place: the device a node is pinned to, or else the default one. Host nodes run on workers and have none.
#include "graph/passes.h"

namespace penstock::graph {

void Place(Draft& draft) {
  draft.device.reserve(draft.nodes.size());
  for (const NodeFacts& node : draft.nodes) {
    const int32_t device = node.device >= 0 ? node.device : draft.options.default_device;
    draft.device.push_back(node.kind == NodeKind::kHost ? -1 : device);
  }
}

}  // namespace penstock::graph
