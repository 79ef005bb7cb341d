// The parts of a Reduce's declaration that need no template.
#include "graph/common/message.h"
#include "penstock/detail/declare_reduce.h"

namespace penstock {
namespace detail {

Accessed FindAccessed(const Model& model, uint32_t graph, int32_t buffer, const Box& box, const StateRecord* state) {
  if (!box.whole) return {box.size, box.size.rank == 1};
  if (state != nullptr) return {state->extent, true};
  const bool known = graph == model.serial && buffer >= 0 && buffer < model.buffers.count();
  if (!known) return {Extent(1), true};
  const BufferDecl& decl = model.buffers[buffer];
  return {decl.extent, decl.extent.rank == 1 || (decl.pitch == 0 && !decl.is_alias)};
}

int64_t MostElements(const Model& model, const Extent& extent) {
  int64_t most = 1;
  for (int i = 0; i < extent.rank && i < kMaxRank; ++i) {
    const Dim& dim = extent.dims[static_cast<size_t>(i)];
    int64_t value = dim.value;
    if (!dim.is_constant()) {
      const bool known = dim.graph == model.serial && dim.param >= 0 && dim.param < model.params.count();
      value = known ? model.params[dim.param].max : 1;
    }
    if (value < 0 || __builtin_mul_overflow(most, value, &most)) return 1;
  }
  return most;
}

void CheckResult(const DeclarationSink& sink, const Name& node, const Extent& extent) {
  bool one = true;
  for (int i = 0; i < extent.rank && i < kMaxRank; ++i) one = one && extent.dims[static_cast<size_t>(i)] == Dim(1);
  if (one) return;
  sink.Visit([&](auto& to) {
    to.Refuse([&] {
      return graph::Prefix(sink.model(), "node", node) +
             ": where its result goes is not one element; a Reduce makes one value of all; name a buffer of one "
             "element, or "
             "one element of a larger buffer, as in ps::Write(sums, ps::Slice({i}, {1}))";
    });
  });
}

}  // namespace detail

}  // namespace penstock
