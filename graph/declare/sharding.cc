// How arrays are cut into shards, and which boxes are copied between them.
#include "penstock/sharding.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "graph/common/message.h"
#include "penstock/graph.h"
#include "penstock/sharded_state.h"

namespace penstock::detail {
namespace {

Dim& At(Extent& extent, int dim) { return extent.dims[static_cast<size_t>(dim)]; }
const Dim& At(const Extent& extent, int dim) { return extent.dims[static_cast<size_t>(dim)]; }

// What is wrong with the way an array is to be cut; empty: nothing.
std::string MistakeIn(const Extent& extent, const Sharding& sharding, const Halo& halo) {
  const std::vector<DeviceShare>& shares = sharding.shares;
  if (shares.empty() || shares.size() > kMaxShards) {
    return "is cut into " + std::to_string(shares.size()) + " shards; name 1 to " + std::to_string(kMaxShards) +
           " devices, such as Runtime::all_devices()";
  }
  double sum = 0;
  for (const DeviceShare& share : shares) {
    if (share.device < 0) {
      return "has a shard on device " + std::to_string(share.device) + "; name one of the runtime's list";
    }
    if (!(share.weight >= 0) || !std::isfinite(share.weight)) {
      return "has a shard of weight " + std::to_string(share.weight) + "; give a number that is not negative";
    }
    sum += share.weight;
  }
  if (!(sum > 0) || !std::isfinite(sum)) return "has shards without any weight; give one of them at least";
  if (sharding.dim < 0 || sharding.dim >= extent.rank) {
    return "is cut in dimension " + std::to_string(sharding.dim) + "; it has dimensions 0 to " +
           std::to_string(extent.rank - 1);
  }
  const Dim& cut = At(extent, sharding.dim);
  if (!cut.is_constant()) {
    return "is cut in dimension " + std::to_string(sharding.dim) +
           ", which is a parameter; cut a constant one, or declare the most and pass the size to the nodes";
  }
  if (cut.value < 1) {
    return "has " + std::to_string(cut.value) + " elements in dimension " + std::to_string(sharding.dim) +
           ", which is cut; give it 1 or more";
  }
  if (sharding.block < 0) return "has blocks of no elements; give Cyclic the elements of a block, 1 or more";
  if (sharding.block > 0 && cut.value / sharding.block > kMaxBlocks) {
    return "has more than " + std::to_string(kMaxBlocks) + " blocks; give Cyclic more elements for each";
  }
  if (halo.width < 0) return "has a halo " + std::to_string(halo.width) + " wide; give 0 or more elements";
  if (halo.width > 0 && sharding.block > 0) {
    return "has a halo, but blocks in turn; a halo needs Blocked, whose shards have one neighbour on each side";
  }
  return {};
}

ShardPart PartOf(const ShardLayout& layout, const Shard& shard, int64_t begin, int64_t end) {
  ShardPart part{shard.index, shard.device, layout.dim, begin, end, layout.extent};
  At(part.extent, layout.dim) = end - begin;
  return part;
}

void CutIntoRanges(const std::vector<DeviceShare>& shares, int64_t elements, ShardLayout& layout) {
  double sum = 0, before = 0;
  for (const DeviceShare& share : shares) sum += share.weight;
  int64_t begin = 0;
  for (Shard& shard : layout.shards) {
    before += shares[static_cast<size_t>(shard.index)].weight;
    const bool is_last = shard.index + 1 == static_cast<int>(shares.size());
    const auto exact = static_cast<int64_t>(static_cast<double>(elements) * before / sum);
    const int64_t end = is_last ? elements : std::clamp(exact, begin, elements);
    if (end > begin) shard.blocks.push_back(PartOf(layout, shard, begin, end));
    begin = end;
  }
}

void DealBlocks(const Sharding& sharding, int64_t elements, ShardLayout& layout) {
  const auto weight = [&](const Shard& shard) { return sharding.shares[static_cast<size_t>(shard.index)].weight; };
  for (int64_t begin = 0; begin < elements; begin += std::min(sharding.block, elements - begin)) {
    Shard* least = nullptr;
    double least_load = 0;
    for (Shard& shard : layout.shards) {
      if (weight(shard) == 0) continue;
      const double load = static_cast<double>(shard.blocks.size()) / weight(shard);
      if (least == nullptr || load < least_load) {
        least = &shard;
        least_load = load;
      }
    }
    least->blocks.push_back(PartOf(layout, *least, begin, std::min(elements, begin + sharding.block)));
  }
}

int64_t ElementsOf(const Shard& shard) {
  int64_t elements = 0;
  for (const ShardPart& block : shard.blocks) elements += block.end - block.begin;
  return elements;
}

// What neighbours need first, and then the rest.
void SplitOffBorders(const ShardLayout& layout, Shard& shard) {
  const ShardPart& all = shard.blocks[0];
  const int64_t width = layout.halo.width, cut = At(layout.extent, layout.dim).value;
  const int64_t before = layout.halo.periodic || all.begin > 0 ? width : 0,
                after = layout.halo.periodic || all.end < cut ? width : 0;
  if (before + after == 0 || all.end - all.begin <= width) return shard.parts.push_back(all);
  const int64_t rest_end = std::max(all.begin + before, all.end - after);
  if (before > 0) shard.parts.push_back(PartOf(layout, shard, all.begin, all.begin + before));
  if (rest_end < all.end) shard.parts.push_back(PartOf(layout, shard, rest_end, all.end));
  if (all.begin + before < rest_end) shard.parts.push_back(PartOf(layout, shard, all.begin + before, rest_end));
}

// Where index `begin` of a part is among the shard's own elements; none: the shard does not have all of the part.
std::optional<int64_t> PlaceOf(const Shard& shard, const ShardPart& part) {
  int64_t before = 0;
  for (const ShardPart& block : shard.blocks) {
    if (block.begin <= part.begin && part.end <= block.end) return before + part.begin - block.begin;
    before += block.end - block.begin;
  }
  return std::nullopt;
}

// Elements [offset, offset + count) of the dimension that is cut.
Box Across(const ShardLayout& layout, int64_t offset, int64_t count) {
  Extent from = layout.extent, size = layout.extent;
  for (int i = 0; i < from.rank; ++i) At(from, i) = 0;
  At(from, layout.dim) = offset;
  At(size, layout.dim) = count;
  return Slice(from, size);
}

// A box that no buffer has, for a part that its shard does not have.
Box Nowhere(const ShardLayout& layout, const ShardPart& part) { return Across(layout, -1, part.end - part.begin); }

}  // namespace

ShardLayout LayOut(const Name& name, const Extent& extent, const Sharding& sharding, const Halo& halo,
                   std::string* mistake) {
  ShardLayout layout{name, extent, sharding.dim, halo};
  *mistake = MistakeIn(extent, sharding, halo);
  if (!mistake->empty()) return layout;
  for (const DeviceShare& share : sharding.shares) {
    layout.shards.push_back({static_cast<int>(layout.shards.size()), share.device, extent});
  }
  const int64_t elements = At(extent, sharding.dim).value;
  if (sharding.block == 0) CutIntoRanges(sharding.shares, elements, layout);
  else DealBlocks(sharding, elements, layout);
  for (Shard& shard : layout.shards) {
    const int64_t own = ElementsOf(shard);
    At(shard.extent, layout.dim) = own;
    if (own < halo.width) {
      *mistake = "has a halo " + std::to_string(halo.width) + " wide, but shard " + std::to_string(shard.index) +
                 " has " + std::to_string(own) + " elements of dimension " + std::to_string(layout.dim) +
                 "; make the halo narrower, or name fewer shards";
      layout.shards.clear();
      return layout;
    }
    if (halo.width > 0) SplitOffBorders(layout, shard);
    else shard.parts = shard.blocks;
  }
  return layout;
}

Extent ExtentWithHalo(const ShardLayout& layout, const Shard& shard) {
  Extent extent = shard.extent;
  At(extent, layout.dim).value += 2 * layout.halo.width;
  return extent;
}

Box BoxOf(const ShardLayout& layout, const ShardPart& part) {
  if (part.shard < 0 || part.shard >= static_cast<int>(layout.shards.size())) return {};
  const std::optional<int64_t> at = PlaceOf(layout.shards[static_cast<size_t>(part.shard)], part);
  if (!at.has_value() || part.dim != layout.dim) return Nowhere(layout, part);
  return Across(layout, layout.halo.width + *at, part.end - part.begin);
}

Box BoxOf(const ShardLayout& layout, const Shard& shard) {
  return Across(layout, layout.halo.width, At(shard.extent, layout.dim).value);
}

Box BoxAround(const ShardLayout& layout, const ShardPart& part, int64_t from_begin, int64_t from_end) {
  Box box = BoxOf(layout, part);
  if (box.whole) return box;
  for (const ShardPart& block : layout.shards[static_cast<size_t>(part.shard)].blocks) {
    if (block.begin > part.begin || part.end > block.end) continue;
    const int64_t width = layout.halo.width;
    if (part.begin + from_begin < block.begin - width || part.end + from_end > block.end + width) break;
    At(box.offset, layout.dim).value += from_begin;
    At(box.size, layout.dim).value += from_end - from_begin;
    return box;
  }
  return Nowhere(layout, part);
}

ShardPart Shifted(const ShardLayout& layout, const ShardPart& part, int64_t by) {
  const auto count = static_cast<int>(layout.shards.size());
  if (part.shard < 0 || part.shard >= count || by == 0 || layout.halo.width == 0) return part;
  int next = part.shard + (by < 0 ? -1 : 1);
  int64_t begin = part.begin + by, end = part.end + by;
  const int64_t all = At(layout.extent, layout.dim).value;
  if (layout.halo.periodic) {
    next = (next + count) % count;
    if (end <= 0 || begin >= all) begin += by < 0 ? all : -all, end += by < 0 ? all : -all;
  }
  if (next < 0 || next >= count) return part;
  const ShardPart moved = PartOf(layout, layout.shards[static_cast<size_t>(next)], begin, end);
  return PlaceOf(layout.shards[static_cast<size_t>(next)], moved).has_value() ? moved : part;
}

const ShardLayout& NoLayout() {
  static const auto* const kNone = new ShardLayout();  // never freed: a handle may be used while the process ends
  return *kNone;
}

bool ShardDeclaration::IsMade(Graph& graph, const Name& name, const ShardLayout& layout) {
  if (&layout == &NoLayout()) {
    Refuse(graph, name, "is none: the handle, or the State, was never set; use what made an array");
  }
  return !layout.shards.empty();
}

void ShardDeclaration::Refuse(Graph& graph, const Name& name, const std::string& text) {
  graph.sink().Visit([&](auto& to) {
    to.Refuse([&] { return graph::Prefix(graph.model(), "sharded array", graph.InScope(name)) + ": " + text; });
  });
}

std::shared_ptr<const ShardLayout> ShardDeclaration::LayOut(Graph& graph, const Name& name, const Extent& extent,
                                                            const Sharding& sharding, const Halo& halo) {
  std::string mistake;
  auto layout = std::make_shared<const ShardLayout>(detail::LayOut(name, extent, sharding, halo, &mistake));
  if (!mistake.empty()) Refuse(graph, name, mistake);
  return layout;
}

std::vector<ShardCopy> ShardDeclaration::Halos(Graph& graph, const Name& name, const ShardLayout& layout) {
  std::vector<ShardCopy> copies;
  if (!IsMade(graph, name, layout)) return copies;
  const int64_t width = layout.halo.width;
  const auto count = static_cast<int>(layout.shards.size());
  if (width == 0) return copies;
  const auto own = [&](int shard) { return At(layout.shards[static_cast<size_t>(shard)].extent, layout.dim).value; };
  for (int below = layout.halo.periodic ? 0 : 1; below < count; ++below) {
    const int above = (below + count - 1) % count;
    copies.push_back({above, below, Across(layout, own(above), width), Across(layout, 0, width)});
    copies.push_back({below, above, Across(layout, width, width), Across(layout, width + own(above), width), true});
  }
  return copies;
}

std::vector<ShardCopy> ShardDeclaration::Whole(Graph& graph, const Name& name, const ShardLayout& layout,
                                               uint32_t whole_graph, int32_t whole, bool is_gather) {
  std::vector<ShardCopy> copies;
  if (!IsMade(graph, name, layout)) return copies;
  const Model& model = graph.model();
  if (whole_graph != model.serial || whole < 0 || whole >= model.buffers.count()) {
    Refuse(graph, name, "names a buffer of another graph, or none; name one of this graph");
    return copies;
  }
  const BufferDecl& buffer = model.buffers[whole];
  Extent with_halo = layout.extent;
  At(with_halo, layout.dim).value += 2 * layout.halo.width;
  const bool has_halo = buffer.extent == with_halo;
  if (!has_halo && buffer.extent != layout.extent) {
    Refuse(graph, name,
           "is between " + graph::Quoted(buffer.name) + " and " + graph::Quoted(layout.name) +
               ", whose extents differ; give both the same" +
               (layout.halo.width > 0 ? ", or the one in one piece the halo's width more at both ends" : ""));
    return copies;
  }
  const int64_t outside = has_halo ? layout.halo.width : 0, cut = At(layout.extent, layout.dim).value;
  for (const Shard& shard : layout.shards) {
    for (const ShardPart& block : shard.blocks) {
      const int64_t before = !is_gather || block.begin == 0 ? outside : 0,
                    after = !is_gather || block.end == cut ? outside : 0;
      Box box = BoxOf(layout, block);
      At(box.offset, layout.dim).value -= before;
      At(box.size, layout.dim).value += before + after;
      const Box in_whole = Across(layout, outside + block.begin - before, before + block.end - block.begin + after);
      if (is_gather) copies.push_back({shard.index, -1, box, in_whole});
      else copies.push_back({-1, shard.index, in_whole, box});
    }
  }
  return copies;
}

namespace {

// The part of `box`, which is that of `block` in its shard's memory, that has indices [begin, end) of dimension `dim`
// of the whole array.
void Narrow(const ShardPart& block, int dim, int64_t begin, int64_t end, Box& box) {
  At(box.offset, dim).value += block.dim == dim ? begin - block.begin : begin;
  At(box.size, dim) = end - begin;
}

}  // namespace

std::vector<ShardCopy> ShardDeclaration::Between(Graph& graph, const Name& name, const ShardLayout& from,
                                                 const ShardLayout& to) {
  std::vector<ShardCopy> copies;
  if (!IsMade(graph, name, from) || !IsMade(graph, name, to)) return copies;
  if (from.extent != to.extent) {
    Refuse(graph, name,
           "is between " + graph::Quoted(from.name) + " and " + graph::Quoted(to.name) +
               ", whose extents differ; give both the same");
    return copies;
  }
  for (const Shard& source : from.shards) {
    for (const ShardPart& a : source.blocks) {
      for (const Shard& target : to.shards) {
        for (const ShardPart& b : target.blocks) {
          const bool is_same = from.dim == to.dim;
          const int64_t begin = is_same ? std::max(a.begin, b.begin) : b.begin,
                        end = is_same ? std::min(a.end, b.end) : b.end;
          if (begin >= end) continue;
          ShardCopy copy{source.index, target.index, BoxOf(from, a), BoxOf(to, b)};
          Narrow(a, to.dim, begin, end, copy.from_box);
          if (is_same) Narrow(b, to.dim, begin, end, copy.to_box);
          else Narrow(b, from.dim, a.begin, a.end, copy.to_box);
          copies.push_back(copy);
        }
      }
    }
  }
  return copies;
}

PartRows RowsOf(const ShardLayout& layout, const ShardPart& part) {
  PartRows rows{1, 1, 0, 1};
  int64_t of_index = 1;  // elements of one index of the dimension that is cut
  for (int i = 0; i < layout.extent.rank; ++i) {
    const int64_t elements = At(layout.extent, i).value;
    if (i < layout.dim) rows.rows *= elements;
    if (i > layout.dim) of_index *= elements;
  }
  rows.length = (part.end - part.begin) * of_index;
  rows.first = part.begin * of_index;
  rows.pitch = At(layout.extent, layout.dim).value * of_index;
  return rows;
}

absl::Status CheckElements(const ShardLayout& layout, size_t elements) {
  int64_t all = 1;
  for (int i = 0; i < layout.extent.rank; ++i) all *= At(layout.extent, i).value;
  if (static_cast<int64_t>(elements) == all) return absl::OkStatus();
  return absl::InvalidArgumentError("sharded state " + graph::Quoted(layout.name) + ": was given " +
                                    std::to_string(elements) + " elements; it has " + std::to_string(all) +
                                    "; give exactly that many");
}

}  // namespace penstock::detail
