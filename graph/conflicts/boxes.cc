#include "graph/conflicts/boxes.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "graph/common/hash.h"

namespace penstock::graph {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

// a + b * c, clamped to 0 and `most`. `a` and `c` are not negative.
int64_t Clamped(int64_t a, int64_t b, int64_t c, int64_t most) {
  int64_t sum = 0;
  if (__builtin_mul_overflow(b, c, &sum) || __builtin_add_overflow(a, sum, &sum)) return b < 0 ? 0 : most;
  return std::clamp<int64_t>(sum, 0, most);
}

// The largest extent, as a region; mistakes count as nothing.
Region WholeRegion(const Model& model, const BufferDecl& decl) {
  Region region{{0, 0, 0}, {1, 1, 1}};
  for (int i = 0; i < decl.extent.rank && decl.extent.rank <= kMaxRank; ++i) {
    const Dim& dim = decl.extent.dims[i];
    const ParamDecl* param = ParamOf(model, dim);
    const int64_t most = dim.is_constant() ? dim.value : param != nullptr ? param->max : 0;
    const bool last = i + 1 == decl.extent.rank;
    region.hi[static_cast<size_t>(kMaxRank - decl.extent.rank) + static_cast<size_t>(i)] =
        Clamped(0, most, last ? decl.type.size : 1, kMost);
  }
  return region;
}

// The location of a buffer, alias or not, in the one that has the memory.
struct Location {
  BufferId base{};
  Region region;
  bool anchored = true;                           // false: an offset on the way is a parameter
  std::array<bool, kMaxRank> exact{true, true, true};
  bool all_exact() const { return anchored && exact[0] && exact[1] && exact[2]; }
};

// The location of `box` of `decl`, which lies at `in`. `whole` is all of the base.
Location Inside(const Model& model, const BufferDecl& decl, const Box& box, const Location& in, const Region& whole) {
  const int rank = decl.extent.rank;
  if (box.whole || !in.anchored) return in;
  Location out = in;
  const auto anywhere = [&] {
    out.region = whole;
    out.anchored = false;
    return out;
  };
  if (rank < 1 || rank > kMaxRank || box.offset.rank != rank || box.size.rank != rank) return anywhere();
  for (int i = 0; i < rank; ++i) {
    const Dim& offset = box.offset.dims[i];
    const Dim& size = box.size.dims[i];
    if (!offset.is_constant()) return anywhere();
    if (offset.value == 0 && size == decl.extent.dims[i]) continue;  // all of this dimension
    const auto d = static_cast<size_t>(kMaxRank - rank) + static_cast<size_t>(i);
    const int64_t unit = i + 1 == rank ? decl.type.size : 1;
    const int64_t end = in.region.hi[d];
    out.region.lo[d] = std::max(in.region.lo[d], Clamped(in.region.lo[d], offset.value, unit, end));
    out.exact[d] = size.is_constant();
    int64_t most = size.value;
    if (!size.is_constant()) {
      const ParamDecl* param = ParamOf(model, size);
      most = param != nullptr && param->has_max ? param->max : kMost;
    }
    out.region.hi[d] = std::max(out.region.lo[d], Clamped(out.region.lo[d], most, unit, end));
  }
  return out;
}

// The location of every buffer. An alias names an earlier buffer; otherwise it has no base.
class Places {
 public:
  explicit Places(const Model& model) : model_(model) {
    for (const BufferDecl& decl : model.buffers) {
      Location place;
      const BufferId own = locations_.next();
      whole_.push_back(WholeRegion(model, decl));
      if (!decl.is_alias) {
        place.base = own;
        place.region = whole_.back();
      } else if (decl.alias_graph == model.serial && decl.alias_of >= 0 && decl.alias_of < own) {
        place = In(decl.alias_of, decl.box);
      }
      locations_.push_back(place);
    }
  }
  Location In(BufferId buffer, const Box& box) const {
    const Location& in = locations_[buffer];
    if (in.base < 0) return in;
    return Inside(model_, model_.buffers[buffer], box, in, whole(in.base));
  }
  const Region& whole(BufferId buffer) const { return whole_[buffer]; }

 private:
  const Model& model_;
  Table<BufferId, Location> locations_;
  Table<BufferId, Region> whole_;
};

struct Part {
  BufferId base;
  Region region;
  auto operator<=>(const Part&) const = default;
};

uint64_t HashOf(const Part& part) {
  Hash hash(static_cast<uint64_t>(static_cast<int32_t>(part.base)));
  for (size_t d = 0; d < kMaxRank; ++d) hash(part.region.lo[d], part.region.hi[d]);
  return hash.value();
}

// Numbers the distinct parts of buffers in the order in which they first come. Graphs access few parts many times, so
// only these are sorted later. An open-addressing hash table.
class DistinctParts {
 public:
  explicit DistinctParts(size_t most) : table_(std::bit_ceil(2 * most + 1), -1) {}
  int32_t NumberOf(const Part& part) {
    size_t slot = HashOf(part) & (table_.size() - 1);
    for (; table_[slot] >= 0; slot = (slot + 1) & (table_.size() - 1)) {
      if (parts_[table_[slot]] == part) return table_[slot];
    }
    table_[slot] = static_cast<int32_t>(parts_.size());
    parts_.push_back(part);
    return table_[slot];
  }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<int32_t> table_;
  std::vector<Part> parts_;
};

// Finds the plane that halves the faces of `boxes` inside `region`, in the dimension with the most faces; false if
// there are none.
bool FindCut(const Region& region, const std::vector<Region>& boxes, size_t* dimension, int64_t* at) {
  std::vector<int64_t> best, faces;
  for (size_t d = 0; d < kMaxRank; ++d) {
    faces.clear();
    for (const Region& b : boxes) {
      if (b.lo[d] > region.lo[d]) faces.push_back(b.lo[d]);
      if (b.hi[d] < region.hi[d]) faces.push_back(b.hi[d]);
    }
    if (faces.size() <= best.size()) continue;
    best.swap(faces);
    *dimension = d;
  }
  if (best.empty()) return false;
  const auto middle = best.begin() + static_cast<std::ptrdiff_t>(best.size() / 2);
  std::nth_element(best.begin(), middle, best.end());
  *at = *middle;
  return true;
}

}  // namespace

Region Uncovered(const Region& region, std::vector<Region> boxes) {
  if (IsEmpty(region)) return {};
  std::erase_if(boxes, [&](const Region& b) { return !Overlap(b, region); });
  for (const Region& b : boxes) {
    if (Covers(b, region)) return {};
  }
  size_t dimension = 0;
  int64_t at = 0;
  if (!FindCut(region, boxes, &dimension, &at)) return region;  // no box left
  Region low = region, high = region;
  low.hi[dimension] = at;
  high.lo[dimension] = at;
  const Region missing = Uncovered(low, boxes);
  return IsEmpty(missing) ? Uncovered(high, std::move(boxes)) : missing;
}

void AppendUncovered(const Region& region, std::vector<Region> boxes, std::vector<Region>& out) {
  if (IsEmpty(region)) return;
  std::erase_if(boxes, [&](const Region& b) { return !Overlap(b, region); });
  if (boxes.size() == 1) return Subtract(region, boxes.front(), out);
  size_t dimension = 0;
  int64_t at = 0;
  if (boxes.empty()) return out.push_back(region);
  if (!FindCut(region, boxes, &dimension, &at)) return;  // all is covered
  Region low = region, high = region;
  low.hi[dimension] = at;
  high.lo[dimension] = at;
  AppendUncovered(low, boxes, out);
  AppendUncovered(high, std::move(boxes), out);
}

BoxTree::BoxTree(std::vector<Region> boxes) : boxes_(std::move(boxes)), leaf_(boxes_.size()) {
  std::vector<int32_t> order(boxes_.size());
  std::iota(order.begin(), order.end(), 0);
  nodes_.reserve(2 * boxes_.size());
  if (!order.empty()) Build(order, 0, order.size(), -1);
}

int32_t BoxTree::Build(std::vector<int32_t>& order, size_t begin, size_t end, int32_t parent) {
  const auto index = static_cast<int32_t>(nodes_.size());
  Node node;
  node.parent = parent;
  node.bound = box(order[begin]);
  Region middle{{INT64_MAX, INT64_MAX, INT64_MAX}, {0, 0, 0}};  // lowest and highest centres of the boxes
  const auto middle_of = [&](int32_t b, size_t d) { return box(b).lo[d] / 2 + box(b).hi[d] / 2; };
  for (size_t i = begin; i < end; ++i) {
    for (size_t d = 0; d < kMaxRank; ++d) {
      node.bound.lo[d] = std::min(node.bound.lo[d], box(order[i]).lo[d]);
      node.bound.hi[d] = std::max(node.bound.hi[d], box(order[i]).hi[d]);
      middle.lo[d] = std::min(middle.lo[d], middle_of(order[i], d));
      middle.hi[d] = std::max(middle.hi[d], middle_of(order[i], d));
    }
  }
  nodes_.push_back(node);
  if (end - begin == 1) {
    nodes_.back().box = order[begin];
    leaf_[order[begin]] = index;
    return index;
  }
  size_t widest = 0;
  for (size_t d = 1; d < kMaxRank; ++d) {
    if (middle.hi[d] - middle.lo[d] > middle.hi[widest] - middle.lo[widest]) widest = d;
  }
  const auto half = static_cast<std::ptrdiff_t>(begin + (end - begin) / 2);
  std::nth_element(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + half,
                   order.begin() + static_cast<std::ptrdiff_t>(end), [&](int32_t a, int32_t b) {
                     const int64_t x = middle_of(a, widest), y = middle_of(b, widest);
                     return x != y ? x < y : a < b;
                   });
  const int32_t left = Build(order, begin, static_cast<size_t>(half), index);
  const int32_t right = Build(order, static_cast<size_t>(half), end, index);
  nodes_[index].left = left;
  nodes_[index].right = right;
  return index;
}

void BoxTree::Find(const Live& live, const Region& region, std::vector<int32_t>& found) const {
  int32_t open[128];  // the tree's depth is logarithmic
  int depth = 0;
  if (!nodes_.empty()) open[depth++] = 0;
  while (depth > 0) {
    const int32_t n = open[--depth];
    const Node& node = nodes_[n];
    if (live[n] == 0 || !Overlap(node.bound, region)) continue;
    if (node.box >= 0) {
      found.push_back(node.box);
      continue;
    }
    open[depth++] = node.right;
    open[depth++] = node.left;
  }
}

void BoxTable::Reserve(size_t nodes) {
  end_.reserve(nodes);
  refs_.reserve(2 * nodes);
}

void BoxTable::Add(const Model& model, const NodeDecl& node) {
  const int32_t buffers = model.buffers.count();
  for (const AccessDecl& access : node.accesses) {
    const bool sound = access.graph == model.serial && access.buffer >= 0 && access.buffer < buffers;
    const BufferId buffer = sound ? access.buffer : BufferId();
    refs_.push_back({buffer, buffer, 0, true, access.mode, access.unordered, !access.box.whole(), access.uncopied});
    any_part_ = any_part_ || refs_.back().part;
    any_unordered_ = any_unordered_ || access.unordered;
  }
  end_.push_back(refs_.size());
}

void BoxTable::FindBoxes(const Model& model) {
  const Places places(model);
  DistinctParts distinct(refs_.size());
  size_t at = 0;
  for (const NodeDecl& node : model.nodes) {
    for (const AccessDecl& access : node.accesses) {
      BoxRef& ref = refs_[at++];
      if (ref.base < 0) continue;
      const Location at_base = places.In(access.buffer, access.box);
      ref.base = at_base.base;
      ref.exact = at_base.all_exact();
      if (ref.base < 0) continue;
      const Region& whole = places.whole(ref.base);
      if (at_base.region == whole || IsEmpty(whole)) continue;  // any part of an empty buffer is all of it
      ref.box = IsEmpty(at_base.region) ? -1 : 1 + distinct.NumberOf({ref.base, at_base.region});
    }
  }
  const std::vector<Part>& parts = distinct.parts();
  std::vector<int32_t> order(parts.size()), box_of(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return parts[a] < parts[b]; });
  tree_of_.assign(model.buffers.size(), -1);
  for (size_t i = 0; i < order.size();) {
    const BufferId base = parts[order[i]].base;
    std::vector<Region> boxes = {places.whole(base)};
    for (; i < order.size() && parts[order[i]].base == base; ++i) {
      box_of[order[i]] = static_cast<int32_t>(boxes.size());
      boxes.push_back(parts[order[i]].region);
    }
    tree_of_[base] = static_cast<int32_t>(trees_.size());
    trees_.emplace_back(std::move(boxes));
  }
  for (BoxRef& ref : refs_) {
    if (ref.box > 0) ref.box = box_of[ref.box - 1];
  }
}

BufferId BaseOf(const Model& model, BufferId buffer) {
  while (buffer >= 0 && model.buffers[buffer].is_alias) {
    const BufferDecl& decl = model.buffers[buffer];
    buffer = decl.alias_graph == model.serial && decl.alias_of < buffer ? decl.alias_of : BufferId();
  }
  return buffer;
}

const ParamDecl* ParamOf(const Model& model, const Dim& dim) {
  const bool known = dim.graph == model.serial && dim.param >= 0 && dim.param < model.params.count();
  return known ? &model.params[dim.param] : nullptr;
}

Extent ReadAs(const BufferDecl& buffer, uint32_t element_bytes) {
  Extent extent = buffer.extent;
  if (extent.rank < 1 || extent.rank > kMaxRank || element_bytes == 0) return extent;
  Dim& row = extent.dims[static_cast<size_t>(extent.rank) - 1];
  int64_t bytes = 0;
  if (!row.is_constant() || __builtin_mul_overflow(row.value, int64_t{buffer.type.size}, &bytes)) return extent;
  row.value = bytes / int64_t{element_bytes};
  return extent;
}

std::string SliceText(const BufferDecl& buffer, const Region& region) {
  const int rank = buffer.extent.rank;
  const int64_t element = std::max<int64_t>(buffer.type.size, 1);
  std::string offset, size;
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(kMaxRank - rank) + static_cast<size_t>(i);
    int64_t lo = region.lo[d], hi = region.hi[d];
    if (i + 1 == rank) {
      lo /= element;
      hi = hi / element + (hi % element != 0);
    }
    offset += (i > 0 ? ", " : "") + std::to_string(lo);
    size += (i > 0 ? ", " : "") + std::to_string(hi - lo);
  }
  return "Slice({" + offset + "}, {" + size + "})";
}

}  // namespace penstock::graph
