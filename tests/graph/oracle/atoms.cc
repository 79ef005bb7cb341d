#include "tests/graph/oracle/atoms.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <random>
#include <utility>

namespace penstock::graph {
namespace {

int64_t Most(const Model& model, const Dim& dim) { return dim.is_constant() ? dim.value : model.params[dim.param].max; }

// A buffer, alias or not, or a box of one: its elements one after the other, each some atoms of the root.
struct Elements {
  int rank = 1;
  std::array<int64_t, kMaxRank> size{1, 1, 1};
  std::vector<int32_t> atoms;
  bool anywhere = false;  // an offset on the way is a parameter without a value
  bool always = true;     // no parameter on the way

  int64_t count() const { return std::accumulate(size.begin(), size.begin() + rank, int64_t{1}, std::multiplies<>()); }
};

// Parameters have these values; null: their maximum, where that is a size, and any other value.
class Walk {
 public:
  Walk(const Model& model, const std::vector<int64_t>* values) : model_(model), values_(values) {}

  Elements Buffer(int32_t buffer) const {
    const BufferDecl& decl = model_.buffers[buffer];
    Elements elements;
    if (decl.is_alias) {
      elements = Part(decl.alias_of, decl.box);
    } else {
      elements.atoms.resize(static_cast<size_t>(AtomCount(model_, buffer)));
      std::iota(elements.atoms.begin(), elements.atoms.end(), 0);
    }
    elements.rank = decl.extent.rank;  // of another element type, perhaps: the same bytes in other portions
    for (int i = 0; i < elements.rank; ++i) {
      elements.size[i] = Value(decl.extent.dims[i]);
    }
    return elements;
  }

  Elements Part(int32_t buffer, const Box& box) const {
    const Elements all = Buffer(buffer);
    if (box.whole) return all;
    Elements part;
    part.rank = box.size.rank;
    part.anywhere = all.anywhere;
    part.always = all.always;
    std::array<int64_t, kMaxRank> offset{};
    for (size_t i = 0; i < static_cast<size_t>(part.rank); ++i) {
      const Dim &from = box.offset.dims[i], &size = box.size.dims[i];
      part.anywhere = part.anywhere || (!from.is_constant() && values_ == nullptr);
      part.always = part.always && from.is_constant() && size.is_constant();
      offset[i] = from.is_constant() || values_ != nullptr ? Value(from) : 0;
      part.size[i] = std::min(Value(size), all.size[i] - offset[i]);
    }
    const size_t portion = all.count() > 0 ? all.atoms.size() / static_cast<size_t>(all.count()) : 0;
    std::array<int64_t, kMaxRank> at{};
    for (int64_t left = part.count(); left > 0; --left) {
      int64_t index = 0;
      for (size_t i = 0; i < static_cast<size_t>(part.rank); ++i) index = index * all.size[i] + offset[i] + at[i];
      const auto first = all.atoms.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(index) * portion);
      part.atoms.insert(part.atoms.end(), first, first + static_cast<std::ptrdiff_t>(portion));
      for (int i = part.rank - 1; i >= 0 && ++at[i] == part.size[i]; --i) {
        at[i] = 0;
      }
    }
    return part;
  }

 private:
  int64_t Value(const Dim& dim) const {
    return dim.is_constant() || values_ == nullptr ? Most(model_, dim) : (*values_)[dim.param];
  }

  const Model& model_;
  const std::vector<int64_t>* values_;
};

// Calls f on every box and the extent of the buffer it is in.
template <class F>
void ForBoxes(const Model& model, F f) {
  for (const BufferDecl& decl : model.buffers) {
    if (decl.is_alias && !decl.box.whole()) f(decl.box, model.buffers[decl.alias_of].extent);
  }
  for (const NodeDecl& node : model.nodes) {
    for (const AccessDecl& a : node.accesses) {
      if (!a.box.whole()) f(a.box, model.buffers[a.buffer].extent);
    }
  }
}

}  // namespace

int64_t MaxBytes(const Model& model, int32_t buffer) {
  const BufferDecl& decl = model.buffers[buffer];
  int64_t bytes = decl.type.size;
  for (int i = 0; i < decl.extent.rank; ++i) bytes *= Most(model, decl.extent.dims[i]);
  return bytes;
}

int64_t MaxSpan(const Model& model, int32_t buffer) {
  const BufferDecl& decl = model.buffers[buffer];
  const int64_t bytes = MaxBytes(model, buffer);
  if (decl.pitch == 0 || bytes == 0) return bytes;
  const int64_t width = Most(model, decl.extent.dims[static_cast<size_t>(decl.extent.rank) - 1]);
  const int64_t gaps = bytes / (width * int64_t{decl.type.size}) - 1;  // between rows
  return bytes + gaps * (decl.pitch - width) * int64_t{decl.type.size};
}

int64_t AtomCount(const Model& model, int32_t buffer) {
  return (MaxBytes(model, buffer) + kAtomBytes - 1) / kAtomBytes;
}

int32_t RootOf(const Model& model, int32_t buffer) {
  while (model.buffers[buffer].is_alias) {
    buffer = model.buffers[buffer].alias_of;
  }
  return buffer;
}

std::vector<int64_t> ParamValues(const Model& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> most;
  for (const ParamDecl& param : model.params) most.push_back(param.has_max ? param.max : INT64_MAX);
  ForBoxes(model, [&](const Box& box, const Extent& in) {
    for (size_t i = 0; i < static_cast<size_t>(box.size.rank); ++i) {
      const Dim &offset = box.offset.dims[i], &size = box.size.dims[i];
      const int64_t taken = offset.is_constant() ? offset.value : Most(model, size);
      const int64_t room = std::max<int64_t>(Most(model, in.dims[i]) - taken, 0);
      for (const Dim& dim : {offset, size}) {
        if (!dim.is_constant()) most[dim.param] = std::min(most[dim.param], room);
      }
    }
  });
  std::vector<int64_t> values;
  for (const int64_t m : most) values.push_back(static_cast<int64_t>(random() % (static_cast<uint64_t>(m) + 1)));
  for (const BufferDecl& decl : model.buffers) {
    for (int i = 0; i < decl.extent.rank; ++i) {
      const Dim& dim = decl.extent.dims[i];
      if (!dim.is_constant()) values[dim.param] = Most(model, dim);
    }
  }
  return values;
}

std::vector<int32_t> AtomsAt(const Model& model, const AccessDecl& access, const std::vector<int64_t>& values) {
  return Walk(model, &values).Part(access.buffer, access.box).atoms;
}

std::vector<int32_t> AtomsOfPart(const Model& model, int32_t buffer, const Region& part) {
  const BufferDecl& decl = model.buffers[buffer];
  std::array<int64_t, kMaxRank> size{1, 1, 1};
  for (int i = 0; i < decl.extent.rank; ++i) size[kMaxRank - decl.extent.rank + i] = Most(model, decl.extent.dims[i]);
  size[kMaxRank - 1] *= decl.type.size;
  std::vector<int32_t> atoms;
  for (int64_t atom = 0; atom < AtomCount(model, buffer); ++atom) {
    int64_t left = atom * kAtomBytes;
    bool inside = true;
    for (size_t d = kMaxRank; d > 0; --d) {
      const int64_t at = left % size[d - 1];
      inside = inside && part.lo[d - 1] <= at && at < part.hi[d - 1];
      left /= size[d - 1];
    }
    if (inside) atoms.push_back(static_cast<int32_t>(atom));
  }
  return atoms;
}

Footprint FootprintOf(const Model& model, const AccessDecl& access) {
  Footprint footprint{RootOf(model, access.buffer), access.mode, access.unordered};
  if (footprint.root == access.buffer && access.box.whole()) return footprint;
  const Elements elements = Walk(model, nullptr).Part(access.buffer, access.box);
  footprint.whole = elements.anywhere || elements.atoms.size() == static_cast<size_t>(AtomCount(model, footprint.root));
  footprint.always = elements.always;
  if (footprint.whole) return footprint;
  for (const int32_t atom : elements.atoms) {
    if (static_cast<size_t>(atom) >= Footprint::kMaxAtoms) std::abort();  // a test with too large a buffer
    footprint.atoms.set(static_cast<size_t>(atom));
  }
  return footprint;
}

Footprints FootprintsOf(const Model& model) {
  Footprints table;
  for (const NodeDecl& node : model.nodes) {
    table.emplace_back();
    for (const AccessDecl& access : node.accesses) table.back().push_back(FootprintOf(model, access));
  }
  return table;
}

}  // namespace penstock::graph
