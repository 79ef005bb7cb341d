#include "tests/graph/oracle/random_graph.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/graph/oracle/atoms.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, int nodes)
      : random_(seed),
        in_place_(seed),
        pitches_(seed),
        leased_(static_cast<uint32_t>(seed * 0x9e3779b97f4a7c15 >> 32)),
        on_device_(static_cast<uint32_t>(seed * 0xd1342543de82ef95 >> 32)),
        asked_(static_cast<uint32_t>(seed * 0xaf251af3b0f025b5 >> 32)),
        placed_(static_cast<uint32_t>(seed * 0x2545f4914f6cdd1d >> 32)),
        partial_(static_cast<uint32_t>(seed * 0x9fb21c651e98df25 >> 32)),
        batch_from_(seed % 3 < 2 ? 2 + 3 * static_cast<int32_t>(seed % 3) : INT32_MAX),
        nodes_(nodes) {}

  RandomGraph Make() {
    const int devices = 1 + Below(3);
    out_.options = Devices(devices);
    out_.options.batch_from = batch_from_;
    for (PlanDevice& device : out_.options.devices) device.no_hostcalls = asked_() % 8 != 0 ? "" : "none here";
    ways_ = asked_() % 2 == 0 ? 1 : 3;
    out_.options.default_device = Below(devices);
    out_.options.max_lanes = 1 + Below(Chance(2) ? 2 : 6);
    out_.options.ring_from_bytes = Chance(3) ? int64_t{1} << 16 : Chance(2) ? 0 : 500;
    host_share_ = Below(5);
    pins_ = Chance(2);
    priorities_ = Chance(4);
    slices_ = Chance(2);
    loose_ = Chance(3);
    params_ = Chance(3);
    const int buffers = 2 + Below(8);
    for (int b = 0; b < buffers; ++b) AddBuffer(b);
    if (Chance(2)) AddAliases();
    const int nodes = 1 + Below(nodes_);
    for (int n = 0; n < nodes; ++n) AddNode(n);
    for (int b = 0; b < buffers; ++b) {
      if (role(b) == BufferRole::kOutput && !contents_[Index(b)].touched) {
        Finish(g().For("finish" + std::to_string(b), Out{b}));
      }
    }
    AddAfters();
    if (Chance(3)) {
      for (size_t n = 0; n < g().model.nodes.size(); ++n) out_.options.costs.push_back(Below(100) - 10);
    }
    if (placed_() % 4 == 0) Place(static_cast<uint32_t>(devices));
    return std::move(out_);
  }

 private:
  // Somewhere, or nowhere: of nodes with a pin and on the host too, which must not mind.
  void Place(uint32_t devices) {
    for (size_t n = 0; n < g().model.nodes.size(); ++n) {
      out_.options.placement.push_back(static_cast<int32_t>(placed_() % (devices + 1)) - 1);
    }
  }

  // What has been written of a buffer that has memory.
  struct Contents {
    std::vector<bool> written;  // atoms
    bool touched = false;       // some of it, perhaps
    bool initial = false;       // comes with contents
  };

  static size_t Index(int i) { return static_cast<size_t>(i); }
  static int Int(size_t i) { return static_cast<int>(i); }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int one_in) { return Below(one_in) == 0; }
  ModelBuilder& g() { return out_.builder; }
  const BufferDecl& buffer(int b) { return out_.builder.model.buffers[Index(b)]; }
  BufferRole role(int b) { return buffer(b).role; }
  int64_t Most(const Dim& dim) { return dim.is_constant() ? dim.value : g().model.params[Index(dim.param)].max; }

  // Param of a name of its own, at most `most`.
  Dim NewParam(int64_t most) { return g().ParamDim(g().Param("p" + std::to_string(g().model.params.size()), most)); }

  void AddBuffer(int b) {
    static const Extent kExtents[] = {{6}, {6}, {16}, {24}, {4, 4}, {4, 4}, {2, 2, 3}, {0}};
    static constexpr uint32_t kElementBytes[] = {32, 32, 64, 128};
    static constexpr BufferRole kRoles[] = {BufferRole::kInput,    BufferRole::kOutput,   BufferRole::kInOut,
                                            BufferRole::kInternal, BufferRole::kInternal, BufferRole::kState};
    Extent extent = kExtents[Below(8)];
    const BufferRole role = kRoles[Below(6)];
    if (params_ && Chance(3) && role != BufferRole::kState) {
      Dim& dim = extent.dims[Index(Below(extent.rank))];
      dim = NewParam(dim.value);
    }
    const bool bound = IsBound(role), pinned = bound ? Chance(3) : role == BufferRole::kInternal && Chance(4);
    const bool leased = bound && pinned && (leased_ >> (b % 32) & 1) != 0;
    const bool on_device = bound && !pinned && (on_device_ >> (b % 32) & 7) == 7;
    const Where where = leased ? kSlot : pinned ? kPinned : bound && !on_device ? kHost : kDevice;
    g().Buffer("b" + std::to_string(b), extent, role, where, kElementBytes[Below(4)]);
    if (extent.rank > 1 && role != BufferRole::kState && pitches_() % 3 == 0) {
      g().Pitched(b, 4 * static_cast<int64_t>(1 + pitches_() % 2));  // rows are no longer; any element fits
    }
    if (role == BufferRole::kState) MakeState(g().model.buffers.back());
    const bool initial = role != BufferRole::kOutput && role != BufferRole::kInternal;
    contents_.push_back({std::vector<bool>(static_cast<size_t>(AtomCount(g().model, b)), initial), initial, initial});
  }
  void MakeState(BufferDecl& decl) {
    const int device = Below(Int(out_.options.devices.size()));
    decl.state = std::make_shared<const StateRecord>(StateRecord{decl.name, decl.type, decl.extent, device, &kRuntime});
  }

  // Aliases of buffers and of each other: parts, and other element types.
  void AddAliases() {
    for (int count = 1 + Below(4); count > 0; --count) {
      const int of = Below(Int(g().model.buffers.size()));
      const std::string name = "a" + std::to_string(g().model.buffers.size());
      if (Chance(3)) {
        AddRetyped(name, of);
      } else if (MaxBytes(g().model, of) > 0) {
        g().Alias(name, of, RandomBox(buffer(of).extent));
      }
    }
  }
  void AddRetyped(const std::string& name, int of) {
    if (buffer(of).is_alias) return;  // a part cannot be read in other portions
    const uint32_t bytes = uint32_t{32} << Below(3);
    Extent extent = buffer(of).extent;
    Dim& row = extent.dims[Index(extent.rank - 1)];
    const int64_t row_bytes = row.value * buffer(of).type.size;
    if (!row.is_constant() || row_bytes % bytes != 0) return;
    row = row_bytes / bytes;
    g().Alias(name, of, bytes, extent);
  }

  // Where parameters have a say, the box stays inside for some of their values.
  Box RandomBox(const Extent& extent) {
    Extent offset = extent, size = extent;
    for (size_t i = 0; i < Index(extent.rank); ++i) {
      const auto most = static_cast<int>(Most(extent.dims[i]));
      offset.dims[i] = 0;
      if (Chance(3)) continue;  // all of this dimension
      const int length = Chance(12) ? 0 : 1 + Below(std::max(1, most / (1 + Below(3))));
      size.dims[i] = params_ && Chance(6) ? NewParam(length) : Dim(length);
      offset.dims[i] = params_ && Chance(6) ? NewParam(most) : Dim(Below(most - length + 1));
    }
    return Slice(offset, size);
  }

  void AddNode(int n) {
    const std::string name = "n" + std::to_string(n);
    if (Chance(5) && AddCopy(name)) return;
    if (Chance(8) && AddFill(name)) return;
    std::vector<AccessDecl> accesses;
    const int count = Below(4);
    for (int i = 0; i < count; ++i) AddAccess(accesses);
    const bool host = Below(8) < host_share_;
    const int32_t node = host        ? g().Host(name)
                         : Chance(3) ? g().Kernel(name)
                         : Chance(3) ? g().Launch(name)
                                     : g().For(name);
    g().node(node).accesses = std::move(accesses);
    if (host) g().node(node).host_way = static_cast<HostWay>(asked_() % ways_);
    AddInPlace(g().node(node));
    Finish(node);
  }

  void AddInPlace(NodeDecl& node) {
    if (in_place_() % 2 == 0) return;
    for (auto pairs = InPlacePairsOf(node); !pairs.empty(); pairs = InPlacePairsOf(node)) {
      node.in_place.push_back(pairs[in_place_() % pairs.size()]);
    }
  }

  void AddAccess(std::vector<AccessDecl>& accesses) {
    AccessDecl access{Below(Int(g().model.buffers.size())), ModelBuilder::kSerial, AccessMode::kRead};
    if (slices_ && Chance(2) && MaxBytes(g().model, access.buffer) > 0)
      access.box = RandomBox(buffer(access.buffer).extent);
    const Footprint footprint = FootprintOf(g().model, access);
    const bool readable = IsWritten(footprint);
    for (const AccessDecl& a : accesses) {
      // The same elements twice in one node: only to read and write, or to read twice, what has been written before.
      if (FootprintOf(g().model, a).Meets(footprint) && (!readable || a.mode != AccessMode::kRead)) return;
    }
    access.mode = static_cast<AccessMode>(1 + Below(3));
    if (!readable) access.mode = AccessMode::kWrite;
    if (role(footprint.root) == BufferRole::kInput) access.mode = AccessMode::kRead;
    const bool alone = std::none_of(accesses.begin(), accesses.end(),
                                    [&](const AccessDecl& a) { return FootprintOf(g().model, a).Meets(footprint); });
    if (access.mode != AccessMode::kRead && alone) access.mode = SomeMode(access.mode, role(footprint.root));
    access.unordered = loose_ && Chance(3);
    accesses.push_back(access);
  }

  // Instead of a mode that writes.
  AccessMode SomeMode(AccessMode mode, BufferRole role) {
    const uint32_t turn = partial_() % 8;
    if (turn == 0) return AccessMode::kWriteSome;
    return turn == 1 && role == BufferRole::kInternal ? AccessMode::kScratch : mode;
  }

  bool IsWritten(const Footprint& footprint) const {
    const Contents& contents = contents_[Index(footprint.root)];
    bool all = contents.touched;
    for (size_t a = 0; a < contents.written.size(); ++a) {
      all = all && (contents.written[a] || !(footprint.whole || footprint.atoms[a]));
    }
    return all;
  }

  bool AddCopy(const std::string& name) {
    if (slices_ && Chance(2)) return AddPartCopy(name);
    const int from = Below(Int(contents_.size())), to = Below(Int(contents_.size()));
    const auto &x = buffer(from), &y = buffer(to);
    if (from == to || y.role == BufferRole::kInput || !IsWritten({from, AccessMode::kRead})) return false;
    if (!(x.extent == y.extent && x.type == y.type)) return false;
    Finish(g().Copy(name, from, to));
    return true;
  }

  // From a box to one of the same size somewhere else, through aliases or not.
  bool AddPartCopy(const std::string& name) {
    AccessDecl from{Below(Int(g().model.buffers.size())), ModelBuilder::kSerial, AccessMode::kRead};
    AccessDecl to{Below(Int(g().model.buffers.size())), ModelBuilder::kSerial, AccessMode::kWrite};
    const BufferDecl &x = buffer(from.buffer), &y = buffer(to.buffer);
    if (!(x.type == y.type) || x.extent.rank != y.extent.rank || MaxBytes(g().model, from.buffer) == 0) return false;
    const Box taken = RandomBox(x.extent);
    Extent offset = taken.offset;
    for (size_t i = 0; i < Index(x.extent.rank); ++i) {
      const int64_t room = Most(y.extent.dims[i]) - Most(taken.size.dims[i]);
      if (room < 0) return false;
      if (!(taken.offset.dims[i].is_constant() && Chance(2))) offset.dims[i] = Below(static_cast<int>(room) + 1);
      if (offset.dims[i].value > room) return false;
    }
    from.box = taken;
    to.box = Slice(offset, taken.size);
    const Footprint reads = FootprintOf(g().model, from), writes = FootprintOf(g().model, to);
    if (role(writes.root) == BufferRole::kInput || !IsWritten(reads) || reads.Meets(writes)) return false;
    const int32_t node = g().Copy(name, from.buffer, to.buffer);
    g().node(node).accesses = {from, to};
    Finish(node);
    return true;
  }

  // Of a buffer, or of a part of one, through an alias or not.
  bool AddFill(const std::string& name) {
    AccessDecl to{Below(Int(g().model.buffers.size())), ModelBuilder::kSerial, AccessMode::kWrite};
    if (slices_ && Chance(2) && MaxBytes(g().model, to.buffer) > 0) to.box = RandomBox(buffer(to.buffer).extent);
    if (role(FootprintOf(g().model, to).root) == BufferRole::kInput) return false;
    const int32_t node = g().Fill(name, to.buffer);
    g().node(node).accesses = {to};
    Finish(node);
    return true;
  }

  // The node just added: its place in the order, and what it writes.
  void Finish(int32_t node) {
    NodeDecl& decl = g().node(node);
    if (pins_ && !Chance(3)) decl.device = Below(Int(out_.options.devices.size()));
    if (priorities_) decl.priority = Below(3) - 1;
    std::vector<Footprint> footprints;
    for (const AccessDecl& access : decl.accesses) footprints.push_back(FootprintOf(g().model, access));
    preds_.emplace_back();
    for (int i = 0; i < node; ++i) {
      for (const Footprint& a : footprints_[Index(i)]) {
        for (const Footprint& b : footprints) {
          if (a.Conflicts(b) && !a.unordered && !b.unordered) preds_.back().push_back(i);
        }
      }
    }
    footprints_.push_back(footprints);
    for (int i = 0; i < node; ++i) JoinLoose(i, node, false);
    for (int i = 0; i < node; ++i) JoinLoose(i, node, true);
    for (const Footprint& footprint : footprints) {
      Contents& contents = contents_[Index(footprint.root)];
      if (footprint.mode == AccessMode::kRead || !(footprint.whole || footprint.atoms.any())) continue;
      contents.touched = footprint.mode != AccessMode::kScratch || (contents.touched && !footprint.whole);
      const bool sure = footprint.always || footprint.mode == AccessMode::kScratch;
      for (size_t a = 0; a < contents.written.size() && sure; ++a) {
        if (footprint.whole || footprint.atoms[a]) contents.written[a] = footprint.mode != AccessMode::kScratch;
      }
    }
  }

  // Unordered accesses that conflict get an After: where what they read was there from the beginning either way, which
  // comes last; else in the order of declaration.
  void JoinLoose(int i, int j, bool reversible) {
    bool conflict = false, initial = true;
    for (const Footprint& a : footprints_[Index(i)]) {
      for (const Footprint& b : footprints_[Index(j)]) {
        if (!a.Conflicts(b)) continue;
        conflict = true;
        initial = initial && contents_[Index(a.root)].initial;
      }
    }
    if (!conflict || initial != reversible || ComesBefore(i, j) || ComesBefore(j, i)) return;
    if (reversible && Chance(3)) {
      After(i, j);
    } else {
      After(j, i);
    }
  }

  void After(int later, int earlier) {
    g().After(later, earlier);
    preds_[Index(later)].push_back(earlier);
  }

  // After in both directions, but only where the later node does not come before the earlier one already.
  void AddAfters() {
    const int count = Int(g().model.nodes.size());
    for (int tries = Below(4); tries > 0 && count > 1; --tries) {
      const int a = Below(count), b = Below(count);
      if (a != b && !ComesBefore(a, b)) After(a, b);
    }
  }
  bool ComesBefore(int a, int b) const {
    std::vector<int> open = {b};
    std::vector<bool> seen(preds_.size());
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (v == a) return true;
      if (seen[Index(v)]) continue;
      seen[Index(v)] = true;
      open.insert(open.end(), preds_[Index(v)].begin(), preds_[Index(v)].end());
    }
    return false;
  }

  std::mt19937_64 random_, in_place_, pitches_;  // the latter: what InPlace says, and how far rows lie apart
  const uint32_t leased_;  // bits: which pinned buffers are the slot's own
  const uint32_t on_device_;  // three bits each: which other bound ones have device memory
  std::mt19937 asked_;  // how Host nodes are called
  std::mt19937 placed_;  // which nodes are placed where
  std::mt19937 partial_;  // which accesses write some elements, or are scratch
  unsigned ways_ = 1;
  const int32_t batch_from_;
  const int nodes_;
  RandomGraph out_;
  std::vector<Contents> contents_;  // of buffers that have memory; aliases come behind them
  Footprints footprints_;  // of each node
  std::vector<std::vector<int32_t>> preds_;  // of each node
  int host_share_ = 0;  // in eighths
  bool pins_ = false, priorities_ = false, slices_ = false, loose_ = false, params_ = false;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, int nodes) { return Generator(seed, nodes).Make(); }

std::vector<InPlaceDecl> InPlacePairsOf(const NodeDecl& node) {
  const auto named = [&](int32_t buffer) {
    return std::any_of(node.in_place.begin(), node.in_place.end(),
                       [&](const InPlaceDecl& pair) { return pair.in == buffer || pair.out == buffer; });
  };
  const auto written = [&](int32_t buffer) {
    return std::any_of(node.accesses.begin(), node.accesses.end(),
                       [&](const AccessDecl& a) { return a.buffer == buffer && a.mode != AccessMode::kRead; });
  };
  std::vector<InPlaceDecl> pairs;
  for (const AccessDecl& in : node.accesses) {
    for (const AccessDecl& out : node.accesses) {
      if (node.kind == NodeKind::kCopy || written(in.buffer) || !written(out.buffer)) continue;
      if (!named(in.buffer) && !named(out.buffer)) pairs.push_back({in.buffer, out.buffer, in.graph, out.graph});
    }
  }
  return pairs;
}

namespace {

RandomPlan Planned(RandomGraph graph, uint64_t seed) {
  RandomPlan random{std::move(graph), {}};
  absl::StatusOr<Plan> plan = MakePlan(random.model(), random.graph.options);
  EXPECT_TRUE(plan.ok()) << Rerun(seed) << ModelText(random.model()) << plan.status();
  if (plan.ok()) random.plan = *std::move(plan);
  return random;
}

void MoveToFirstDevice(RandomGraph& graph) {
  graph.options.devices.resize(1);
  graph.options.default_device = 0;
  graph.options.placement.clear();
  for (NodeDecl& node : graph.builder.model.nodes) node.device = std::min(node.device, 0);  // -1: no pin
  for (BufferDecl& buffer : graph.builder.model.buffers) {
    if (buffer.state == nullptr) continue;
    StateRecord record = *buffer.state;
    record.device = 0;
    buffer.state = std::make_shared<const StateRecord>(std::move(record));
  }
}

}  // namespace

RandomPlan PlanRandom(uint64_t seed, int nodes) { return Planned(MakeRandomGraph(seed, nodes), seed); }

RandomPlan PlanRandomOnOneDevice(uint64_t seed, int nodes) {
  RandomGraph graph = MakeRandomGraph(seed, nodes);
  MoveToFirstDevice(graph);
  return Planned(std::move(graph), seed);
}

}  // namespace penstock::graph
