// What accesses touch, byte by byte: the oracle for everything the planner decides on boxes. It knows no regions, only
// which bytes of the buffer with the memory each element of a buffer or alias is made of.
//
// Parameters have the values of `params`; constants need none.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph {

using Bytes = std::set<int64_t>;

class BoxOracle {
 public:
  explicit BoxOracle(const Model& model, std::vector<int64_t> params = {})
      : model_(model), params_(std::move(params)) {}

  int32_t Base(int32_t buffer) const {
    while (decl(buffer).is_alias) buffer = decl(buffer).alias_of;
    return buffer;
  }
  // The bytes of the base that an access touches.
  Bytes Touched(const AccessDecl& access) const {
    Bytes bytes;
    for (const int64_t at : Chosen(Elements(access.buffer), decl(access.buffer).extent, access.box)) {
      for (int64_t i = 0; i < decl(access.buffer).type.size; ++i) bytes.insert(at + i);
    }
    return bytes;
  }
  bool Conflict(const AccessDecl& a, const AccessDecl& b) const {
    if (Base(a.buffer) != Base(b.buffer) || (a.mode == AccessMode::kRead && b.mode == AccessMode::kRead)) return false;
    const Bytes x = Touched(a), y = Touched(b);
    return std::any_of(x.begin(), x.end(), [&](int64_t byte) { return y.count(byte) > 0; });
  }
  bool Conflict(const NodeDecl& a, const NodeDecl& b, bool also_unordered = true) const {
    for (const AccessDecl& x : a.accesses) {
      for (const AccessDecl& y : b.accesses) {
        if ((also_unordered || (!x.unordered && !y.unordered)) && Conflict(x, y)) return true;
      }
    }
    return false;
  }

 private:
  const BufferDecl& decl(int32_t b) const { return model_.buffers[b]; }
  int64_t Value(const Dim& dim) const { return dim.is_constant() ? dim.value : params_[dim.param]; }

  // Where each element begins, in C order.
  std::vector<int64_t> Elements(int32_t buffer) const {
    const BufferDecl& own = decl(buffer);
    if (own.is_alias && (!own.box.whole() || own.type.size == decl(own.alias_of).type.size)) {
      return Chosen(Elements(own.alias_of), decl(own.alias_of).extent, own.box);
    }
    int64_t count = 1;  // dense, in the elements of its own type
    for (int i = 0; i < own.extent.rank; ++i) count *= Value(own.extent.dims[i]);
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < count; ++i) elements.push_back(i * own.type.size);
    return elements;
  }
  std::vector<int64_t> Chosen(const std::vector<int64_t>& elements, const Extent& extent, const Box& box) const {
    if (box.whole) return elements;
    std::vector<int64_t> chosen;
    for (size_t e = 0; e < elements.size(); ++e) {
      auto rest = static_cast<int64_t>(e);
      bool inside = true;
      for (int i = extent.rank - 1; i >= 0; --i) {
        const auto d = static_cast<size_t>(i);
        const int64_t n = Value(extent.dims[d]), at = rest % n, from = Value(box.offset.dims[d]);
        inside = inside && at >= from && at < from + Value(box.size.dims[d]);
        rest /= n;
      }
      if (inside) chosen.push_back(elements[e]);
    }
    return chosen;
  }

  const Model& model_;
  const std::vector<int64_t> params_;
};

// reach[a][b]: whether a path leads from a to b, given the predecessors of each node, in any order.
inline std::vector<std::vector<bool>> Reachable(const std::vector<std::vector<int32_t>>& preds) {
  std::vector<std::vector<bool>> reach(preds.size(), std::vector<bool>(preds.size()));
  for (size_t v = 0; v < preds.size(); ++v) {
    for (const int32_t p : preds[v]) reach[p][v] = true;
  }
  for (size_t k = 0; k < preds.size(); ++k) {
    for (size_t a = 0; a < preds.size(); ++a) {
      for (size_t b = 0; b < preds.size(); ++b) {
        if (reach[a][k] && reach[k][b]) reach[a][b] = true;
      }
    }
  }
  return reach;
}

// A box inside an extent of constants, empty now and then.
template <class Random>
Box RandomBox(Random& random, const Extent& extent) {
  Extent offset = extent, size = extent;
  for (int i = 0; i < extent.rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const auto n = static_cast<uint64_t>(extent.dims[d].value);
    offset.dims[d].value = static_cast<int64_t>(random() % n);
    size.dims[d].value = static_cast<int64_t>((random() % 12 == 0 ? 0 : 1) + random() % (n - offset.dims[d].value));
  }
  return Slice(offset, size);
}

}  // namespace penstock::graph
