// StructureHash: all that decides a plan in 64 bits, the same in every process and build.
//
// Each record is hashed with its name and refers to others by theirs, never by index or address; the sum over the
// records does not depend on their order. Of the declaration order only the declared edges count. Left out is what no
// plan depends on: constants in argument blocks, callables, source lines, device memory and slots (which refuse plans,
// but change none).
#include <cstring>
#include <string_view>

#include "graph/passes.h"

namespace penstock::graph {
namespace {

__extension__ typedef unsigned __int128 Wide;

// Multiply and fold (Yi, wyhash): 128 bits in, 64 bits out.
uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd1b54a32d192ed03u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class Hash {
 public:
  explicit Hash(uint64_t kind) : value_(kind) {}
  template <class... T>
  Hash& operator()(T... values) {
    ((value_ = Fold(value_, static_cast<uint64_t>(values))), ...);
    return *this;
  }
  Hash& Text(std::string_view text) {
    (*this)(text.size());
    for (; text.size() >= 8; text.remove_prefix(8)) (*this)(Word(text, 8));
    return (*this)(Word(text, text.size()));
  }
  uint64_t value() const { return value_; }

 private:
  static uint64_t Word(std::string_view text, size_t bytes) {
    uint64_t word = 0;
    if (bytes > 0) std::memcpy(&word, text.data(), bytes);
    return word;
  }
  uint64_t value_;
};

enum Kind : uint64_t { kParam = 1, kBuffer, kNode, kName, kEdge, kOptions, kDevice };

class Structure {
 public:
  explicit Structure(const Draft& draft) : d_(draft), m_(draft.model) {}

  uint64_t Find() {
    NamesOf(m_.params, params_);
    NamesOf(m_.buffers, buffers_);
    NamesOf(m_.nodes, nodes_);
    uint64_t sum = OfOptions();
    for (size_t i = 0; i < m_.params.size(); ++i) sum += OfParam(i);
    for (size_t i = 0; i < m_.buffers.size(); ++i) sum += OfBuffer(i);
    for (size_t i = 0; i < m_.nodes.size(); ++i) sum += OfNode(i);
    return Hash(sum).Text(m_.name.view()).value();
  }

 private:
  template <class Record>
  static void NamesOf(const std::vector<Record>& records, std::vector<uint64_t>& names) {
    names.reserve(records.size());
    for (const Record& record : records) names.push_back(Hash(kName).Text(record.name.view()).value());
  }

  void Add(Hash& hash, const Dim& dim) const {
    hash(dim.is_constant() ? 0 : params_[static_cast<size_t>(dim.param)], dim.value);
  }
  void Add(Hash& hash, const Extent& extent) const {
    hash(extent.rank);
    for (int i = 0; i < extent.rank; ++i) Add(hash, extent.dims[static_cast<size_t>(i)]);
  }
  void Add(Hash& hash, const Box& box) const {
    hash(box.whole);
    if (box.whole) return;
    Add(hash, box.offset);
    Add(hash, box.size);
  }

  uint64_t OfOptions() const {
    const PlanOptions& o = d_.options;
    Hash hash(kOptions);
    hash(o.default_device, o.max_lanes, o.devices.size());
    for (const PlanDevice& device : o.devices) hash.Text(device.name)(device.is_cuda, device.driver);
    return hash.value();
  }

  uint64_t OfParam(size_t i) const {
    const ParamDecl& p = m_.params[i];
    return Hash(kParam)(params_[i], p.type.size, p.is_integer, p.is_signed, p.has_max, p.max).value();
  }

  uint64_t OfBuffer(size_t i) const {
    const BufferDecl& b = m_.buffers[i];
    Hash hash(kBuffer);
    hash(buffers_[i], b.type.size, b.role, b.where, b.pitch, b.is_alias, b.state ? b.state->device : -1);
    Add(hash, b.extent);
    if (b.is_alias) {
      hash(buffers_[static_cast<size_t>(b.alias_of)]);
      Add(hash, b.box);
    }
    return hash.value();
  }

  uint64_t OfNode(size_t i) const {
    const NodeDecl& n = m_.nodes[i];
    Hash hash(kNode);
    hash(nodes_[i], n.kind, n.device, n.priority, n.arg_block.size(), n.pattern.size(), n.accesses.size());
    for (const AccessDecl& a : n.accesses) {
      hash(buffers_[static_cast<size_t>(a.buffer)], static_cast<uint64_t>(a.mode) << 1 | (a.unordered ? 1u : 0u));
      Add(hash, a.box);
    }
    for (const ArgDecl& a : n.args) {
      const uint64_t what =
          a.form == ArgDecl::Form::kParam ? params_[static_cast<size_t>(a.index)] : static_cast<uint64_t>(a.index);
      hash(what, static_cast<uint64_t>(a.form) << 32 | a.type.size, static_cast<uint64_t>(a.offset) << 32 | a.size);
    }
    if (n.kind == NodeKind::kParallelFor) Add(hash, n.extent);
    if (n.kind == NodeKind::kKernel) AddShape(hash, n.shape);
    if (i < d_.options.costs.size() && d_.options.costs[i] >= 0) {
      uint64_t bits = 0;
      std::memcpy(&bits, &d_.options.costs[i], sizeof bits);
      hash(bits);
    }
    uint64_t edges = 0;
    for (const int32_t p : d_.declared[static_cast<int32_t>(i)]) {
      edges += Fold(kEdge, nodes_[static_cast<size_t>(p)]);
    }
    return hash(edges).value();
  }

  void AddShape(Hash& hash, const KernelShape& shape) const {
    hash(shape.per_thread, shape.shared_bytes);
    Add(hash, shape.threads);
    for (const Dim& dim : shape.grid) Add(hash, dim);
    for (const uint32_t size : shape.block) hash(size);
  }

  const Draft& d_;
  const Model& m_;
  std::vector<uint64_t> params_, buffers_, nodes_;  // hashes of names
};

}  // namespace

void StructureHash(Draft& draft) { draft.structure_hash = Structure(draft).Find(); }

}  // namespace penstock::graph
