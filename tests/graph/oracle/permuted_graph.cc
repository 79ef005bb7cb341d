#include "tests/graph/oracle/permuted_graph.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/graph/oracle/oracle.h"

namespace penstock::graph {
namespace {

constexpr uint32_t kOtherSerial = ModelBuilder::kSerial + 1;

using Order = std::vector<int32_t>;  // of new records: the old ones

Order Inverse(const Order& order) {
  Order inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int32_t>(i);
  return inverse;
}

template <class Record>
std::vector<Record> Reordered(const std::vector<Record>& records, const Order& order) {
  std::vector<Record> reordered;
  for (const int32_t i : order) reordered.push_back(records[i]);
  return reordered;
}

class Permutation {
 public:
  Permutation(const RandomGraph& graph, uint64_t seed)
      : random_(seed), old_(graph.builder.model), options_(graph.options) {}

  DeclaredAgain Make() {
    const Order params = AnyOrder(old_.params.size()), buffers = BufferOrder(), nodes = NodeOrder();
    new_param_ = Inverse(params), new_buffer_ = Inverse(buffers), new_node_ = Inverse(nodes);
    DeclaredAgain again{Model(Renamed(old_.name)), options_};
    Model& model = again.model;
    model.serial = kOtherSerial;
    model.params = Reordered(old_.params, params);
    model.buffers = Reordered(old_.buffers, buffers);
    model.nodes = Reordered(old_.nodes, nodes);
    for (ParamDecl& param : model.params) param.name = Renamed(param.name);
    for (BufferDecl& buffer : model.buffers) Refer(buffer);
    for (NodeDecl& node : model.nodes) Refer(node);
    if (!options_.costs.empty()) again.options.costs = Reordered(options_.costs, nodes);
    if (!options_.placement.empty()) again.options.placement = Reordered(options_.placement, nodes);
    return again;
  }

 private:
  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }
  static int32_t At(const Order& order, int32_t i) { return order[i]; }

  Order AnyOrder(size_t count) {
    Order order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  // Any order that respects the pairs: each time one of those whose predecessors are placed.
  Order AnyOrder(size_t count, const std::vector<DeclaredPair>& pairs) {
    std::vector<int32_t> missing(count);
    for (const DeclaredPair& pair : pairs) ++missing[pair.after];
    Order ready, order;
    for (size_t v = 0; v < count; ++v) {
      if (missing[v] == 0) ready.push_back(static_cast<int32_t>(v));
    }
    while (!ready.empty()) {
      std::swap(ready[Below(ready.size())], ready.back());
      const int32_t v = ready.back();
      ready.pop_back();
      order.push_back(v);
      for (const DeclaredPair& pair : pairs) {
        if (pair.before == v && --missing[pair.after] == 0) ready.push_back(pair.after);
      }
    }
    return order;
  }

  Order BufferOrder() {
    std::vector<DeclaredPair> pairs;
    for (size_t b = 0; b < old_.buffers.size(); ++b) {
      if (old_.buffers[b].is_alias) pairs.push_back({old_.buffers[b].alias_of, static_cast<int32_t>(b)});
    }
    return AnyOrder(old_.buffers.size(), pairs);
  }

  // Unordered accesses and After say nothing about the order of the calls.
  Order NodeOrder() {
    const Footprints footprints = FootprintsOf(old_);
    std::vector<DeclaredPair> pairs;
    for (size_t j = 0; j < footprints.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        const bool ordered = std::any_of(footprints[i].begin(), footprints[i].end(), [&](const Footprint& a) {
          return std::any_of(footprints[j].begin(), footprints[j].end(),
                             [&](const Footprint& b) { return a.Conflicts(b) && !a.unordered && !b.unordered; });
        });
        if (ordered) pairs.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j)});
      }
    }
    return AnyOrder(footprints.size(), pairs);
  }

  Name Renamed(const Name& name) { return Name(std::string(name.view()), "other/b.cc", ++line_); }
  void Refer(Dim& dim) const {
    if (dim.is_constant()) return;
    dim.param = At(new_param_, dim.param);
    dim.graph = kOtherSerial;
  }
  void Refer(Extent& extent) const {
    for (int i = 0; i < extent.rank; ++i) Refer(extent.dims[i]);
  }
  Box Referring(Box box) const {
    if (box.whole) return box;
    Refer(box.offset);
    Refer(box.size);
    return box;
  }
  void Refer(BufferDecl& buffer) {
    buffer.name = Renamed(buffer.name);
    Refer(buffer.extent);
    if (!buffer.is_alias) return;
    buffer.alias_of = At(new_buffer_, buffer.alias_of);
    buffer.alias_graph = kOtherSerial;
    buffer.box = Referring(buffer.box);
  }
  void Refer(NodeDecl& node) {
    node.name = Renamed(node.name);
    Refer(node.extent);
    Refer(node.shape.threads);
    for (Dim& dim : node.shape.grid) Refer(dim);
    for (AccessDecl& access : node.accesses) {
      access.buffer = At(new_buffer_, access.buffer);
      access.graph = kOtherSerial;
      access.box = Referring(access.box);
    }
    for (InPlaceDecl& pair : node.in_place) {
      pair = {At(new_buffer_, pair.in), At(new_buffer_, pair.out), kOtherSerial, kOtherSerial};
    }
    for (ArgDecl& arg : node.args) {
      if (arg.form != ArgDecl::Form::kParam) continue;
      arg.index = At(new_param_, arg.index);
      arg.graph = kOtherSerial;
    }
    for (DeclId& other : node.after) other = At(new_node_, other);
    std::shuffle(node.after.begin(), node.after.end(), random_);
    if (!node.after.empty()) node.after.push_back(node.after.front());
    for (std::byte& constant : node.arg_block) constant = std::byte{7};
    for (std::byte& constant : node.pattern) constant = std::byte{7};
  }

  std::mt19937_64 random_;
  const Model& old_;
  const PlanOptions& options_;
  Order new_param_, new_buffer_, new_node_;
  int line_ = 0;
};

}  // namespace

DeclaredAgain DeclareAgain(const RandomGraph& graph, uint64_t seed) { return Permutation(graph, seed).Make(); }

}  // namespace penstock::graph
