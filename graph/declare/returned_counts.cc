#include "graph/declare/returned_counts.h"

#include <algorithm>
#include <utility>

namespace penstock::graph {

bool HasCounts(const Model& model) {
  return std::any_of(model.buffers.begin(), model.buffers.end(),
                     [](const BufferDecl& buffer) { return buffer.count.buffer >= 0; });
}

Model WithReturnedCounts(const Model& model) {
  Model with(model);
  for (const BufferId b : model.buffers.ids()) {
    const BufferDecl& output = model.buffers[b];
    if (output.count.buffer < 0) continue;
    const auto named = [&](const char* what) {
      const SourceLine& at = output.name.source();
      return Name(what, at.file, at.line).In(output.name);
    };
    BufferDecl returned{.name = named("count in the slot"),
                        .type = model.buffers[output.count.buffer].type,
                        .role = BufferRole::kCount,
                        .where = Where::kSlot,
                        .extent = 1};
    returned.counted = b;
    NodeDecl copy(named("return of the count"), NodeKind::kCopy);
    copy.accesses.push_back(
        {.buffer = output.count.buffer, .graph = model.serial, .mode = AccessMode::kRead, .box = output.count.box});
    copy.accesses.push_back(
        {.buffer = with.buffers.next(), .graph = model.serial, .mode = AccessMode::kWrite, .box = {}});
    with.buffers.push_back(std::move(returned));
    with.nodes.push_back(std::move(copy));
  }
  return with;
}

}  // namespace penstock::graph
