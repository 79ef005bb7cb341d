// The parts of a sort's declaration that need no template.
#include "penstock/detail/declare_sort.h"

#include <string>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"

namespace penstock::detail {
namespace {

std::string TextOfExtent(const Model& model, const Extent& extent) {
  std::string text = "{";
  for (int i = 0; i < extent.rank && i < kMaxRank; ++i) {
    const Dim& dim = extent.dims[static_cast<size_t>(i)];
    const ParamDecl* const param = graph::ParamOf(model, dim);
    text += i > 0 ? ", " : "";
    text += dim.is_constant() ? std::to_string(dim.value) : param != nullptr ? std::string(param->name.view()) : "?";
  }
  return text + "}";
}

}  // namespace

int64_t SortScratchBytes(int64_t n, int64_t bytes_of_pair) {
  constexpr int64_t kForAll = 20 << 10, kOfPortion = int64_t{1} << 28;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(n, bytes_of_pair, &bytes)) return INT64_MAX / 2;  // Compile refuses the extent itself
  return bytes + n / 2 + kForAll * (1 + n / kOfPortion);
}

int64_t MostInRow(const Model& model, const Extent& extent) {
  if (extent.rank < 1 || extent.rank > kMaxRank) return 1;
  return MostElements(model, Extent(extent.dims[static_cast<size_t>(extent.rank) - 1]));
}

void CheckSameExtents(const DeclarationSink& sink, const Name& node, const Extent& first,
                      std::initializer_list<Extent> others) {
  for (const Extent& other : others) {
    bool same = other.rank == first.rank;
    for (int i = 0; same && i < first.rank && i < kMaxRank; ++i) {
      same = other.dims[static_cast<size_t>(i)] == first.dims[static_cast<size_t>(i)];
    }
    if (same) continue;
    return sink.Visit([&](auto& to) {
      to.Refuse([&] {
        return graph::Prefix(sink.model(), "node", node) + ": its accesses have extents " +
               TextOfExtent(sink.model(), first) + " and " + TextOfExtent(sink.model(), other) +
               "; they must be equal: a sort puts each element in another place";
      });
    });
  }
}

}  // namespace penstock::detail
