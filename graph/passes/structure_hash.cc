// StructureHash: 64 bits of everything that determines a plan, the same in every process and build.
//
// Each record is hashed with its name and refers to others by theirs, never by index or address; the sum over the
// records does not depend on their order. Of the declaration order only the declared edges count. It leaves out what no
// plan depends on: constants in argument blocks, callables, source lines, and device memory and slots (which can refuse
// plans, but not change them).
//
// Validate hashes buffers and nodes while it reads their records; this pass adds the order of the nodes.
#include <bit>
#include <cstring>

#include "graph/common/hash.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// kName: names.h
enum Kind : uint64_t {
  kParam = 1,
  kBuffer,
  kNode,
  kName,
  kEdge,
  kOptions,
  kInPlace,
  kProgrammatic,
  kPlaced,
  kSource,
  kByOccupancy
};

class Structure {
 public:
  explicit Structure(const Records& records)
      : records_(records),
        m_(records.model),
        params_(records.param_names),
        buffers_(records.buffer_names),
        nodes_(records.node_names) {}

  uint64_t Find(const Checked& checked) const {
    uint64_t sum = OfOptions();
    for (const ParamId i : m_.params.ids()) sum += OfParam(i);
    for (const uint64_t record : records_.buffer_hash) sum += record;
    for (const DeclId i : records_.node_hash.ids()) sum += OfOrder(checked, i);
    return Hash(sum).Text(m_.name.view()).value();
  }

  uint64_t OfBuffer(BufferId i) const {
    const BufferDecl& b = m_.buffers[i];
    Hash hash(kBuffer);
    hash(buffers_.hash(i), b.type.size)(b.pitch, static_cast<int>(b.role) << 4 | static_cast<int>(b.where));
    Add(hash, b.extent);
    if (b.state != nullptr) hash(b.state->device);
    if (b.state != nullptr && b.state->adopted) hash(4);
    if (b.keys != 0) hash(1, b.keys);
    if (b.device >= 0) hash(2, b.device);
    if (b.param >= 0) hash(params_.hash(b.param));
    if (b.count.buffer >= 0) hash(3);
    if (!b.is_alias) return hash.value();
    hash(buffers_.hash(b.alias_of), b.box.whole());
    if (!b.box.whole()) Add(hash, b.box);
    return hash.value();
  }

  uint64_t OfNode(DeclId i) const {
    const NodeDecl& n = m_.nodes[i];
    const std::span<const BoxRef> accesses = records_.boxes[i];
    Hash hash(kNode);
    hash(nodes_.hash(i), n.kind)(n.device, n.priority)(n.arg_block.size(), n.pattern.size())(accesses.size());
    if (n.host_way != HostWay::kWorker) hash(n.host_way);
    if (n.runs != 1) hash(3, std::bit_cast<uint64_t>(n.runs));
    for (size_t a = 0; a < accesses.size(); ++a) {
      const int how = static_cast<int>(accesses[a].mode) << 2 | accesses[a].unordered << 1 | accesses[a].part |
                      accesses[a].uncopied << 8;
      hash(buffers_.hash(accesses[a].buffer), how);
      if (accesses[a].part) Add(hash, n.accesses[a].box);
    }
    for (const ArgDecl& a : n.args) {
      const bool is_param = a.form == ArgDecl::Form::kParam;
      hash(is_param ? params_.hash(a.index) : static_cast<uint64_t>(a.index),
           static_cast<uint64_t>(a.form) << 32 | a.type.size);
      hash(a.offset, a.size);
    }
    for (const InPlaceDecl& pair : n.in_place) {
      hash(kInPlace)(buffers_.hash(pair.in), buffers_.hash(pair.out));
    }
    if (n.kind == NodeKind::kParallelFor) Add(hash, n.extent);
    if (n.kind == NodeKind::kKernel || n.is_task) AddShape(hash, n.shape);
    if (n.code.source != nullptr) Add(hash, *n.code.source);
    return hash.value();
  }

 private:
  void Add(Hash& hash, const Dim& dim) const { hash(dim.value, dim.is_constant() ? 0 : params_.hash(dim.param)); }
  void Add(Hash& hash, const Extent& extent) const {
    hash(extent.rank);
    for (int i = 0; i < extent.rank; ++i) Add(hash, extent.dims[i]);
  }
  void Add(Hash& hash, const Box& box) const {
    Add(hash, box.offset);
    Add(hash, box.size);
  }

  static void Add(Hash& hash, const Source::Parts& source) {
    hash(kSource, source.options.headers.size()).Text(source.text).Text(source.kernel).Text(source.options.file);
    for (const std::string& option : source.options.options) hash.Text(option);
    for (const SourceHeader& header : source.options.headers) hash.Text(header.name).Text(header.text);
  }

  uint64_t OfOptions() const {
    const PlanOptions& o = records_.options;
    Hash hash(kOptions);
    const uint64_t once = (o.events_once ? uint64_t{1} << 32 : 0) | (o.in_construct ? uint64_t{1} << 33 : 0);
    hash(o.default_device, o.max_lanes)(o.devices.size(),
                                        o.ring_from_bytes)(static_cast<uint32_t>(o.batch_from) | once);
    for (const PlanDevice& device : o.devices) {
      hash.Text(device.name)(device.is_cuda | (!device.no_hostcalls.empty() << 1), device.driver);
      for (size_t d = 0; d < device.reaches.size(); ++d) hash(device.reaches[d] ? d + 1 : 0);
    }
    return hash.value();
  }

  uint64_t OfParam(ParamId i) const {
    const ParamDecl& p = m_.params[i];
    return Hash(kParam)(params_.hash(i), p.max)(p.type.size)(p.is_integer << 2 | p.is_signed << 1 | p.has_max).value();
  }

  // Hashes a node, its cost and its predecessors.
  uint64_t OfOrder(const Checked& checked, DeclId i) const {
    const Table<DeclId, double>& costs = records_.options.costs;
    uint64_t cost = 0, edges = 0;
    if (i < costs.count() && costs[i] >= 0) std::memcpy(&cost, &costs[i], sizeof cost);
    for (const DeclId p : checked.declared[i]) {
      edges += Fold(kEdge, nodes_.hash(p));
    }
    Hash hash(records_.node_hash[i]);
    hash(i < costs.count() && costs[i] >= 0, cost)(edges);
    if (const DeviceId placed = records_.PlacedOn(i); placed >= 0) hash(kPlaced, placed);
    return hash.value();
  }

  void AddShape(Hash& hash, const KernelShape& shape) const {
    hash(shape.per_thread, shape.shared_bytes);
    Add(hash, shape.threads);
    for (const Dim& dim : shape.grid) Add(hash, dim);
    for (const uint32_t size : shape.block) hash(size);
    if (shape.programmatic) hash(kProgrammatic);
    if (shape.by_occupancy) hash(kByOccupancy);
  }

  const Records& records_;
  const Model& m_;
  const Names &params_, &buffers_, &nodes_;
};

}  // namespace

uint64_t HashOfBuffer(const Records& records, BufferId buffer) { return Structure(records).OfBuffer(buffer); }
uint64_t HashOfNode(const Records& records, DeclId node) { return Structure(records).OfNode(node); }

void StructureHash(const Records& records, Checked& checked) {
  checked.structure_hash = Structure(records).Find(checked);
}

}  // namespace penstock::graph
