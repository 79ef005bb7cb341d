#include "tests/graph/oracle/graph_changes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/graph/oracle/oracle.h"

namespace penstock::graph {
namespace {

using Random = std::mt19937_64;
using Params = std::vector<ParamDecl>;
using Buffers = std::vector<BufferDecl>;
using Nodes = std::vector<NodeDecl>;

size_t Below(Random& random, size_t n) { return static_cast<size_t>(random() % n); }

Params& RecordsOf(RandomGraph& g, ParamDecl*) { return g.builder.model.params; }
Buffers& RecordsOf(RandomGraph& g, BufferDecl*) { return g.builder.model.buffers; }
Nodes& RecordsOf(RandomGraph& g, NodeDecl*) { return g.builder.model.nodes; }

// Any of the records that `fits`, null when none does.
template <class Record, class Fits>
Record* Any(RandomGraph& g, Random& random, Fits fits) {
  std::vector<Record*> found;
  for (Record& record : RecordsOf(g, static_cast<Record*>(nullptr))) {
    if (fits(record)) found.push_back(&record);
  }
  return found.empty() ? nullptr : found[Below(random, found.size())];
}
// Changes any record that `fits`.
template <class Record, class Fits, class Change>
bool ChangeAny(RandomGraph& g, Random& random, Fits fits, Change change) {
  Record* record = Any<Record>(g, random, fits);
  if (record != nullptr) change(*record);
  return record != nullptr;
}
constexpr auto kEvery = [](const auto&) { return true; };

// Changes any access that `fits`, of a node that may have any.
template <class Fits, class Change>
bool ChangeAccess(RandomGraph& g, Random& random, Fits fits, Change change) {
  const auto has = [&](const NodeDecl& node) {
    return node.kind != NodeKind::kCopy && node.kind != NodeKind::kFill &&
           std::any_of(node.accesses.begin(), node.accesses.end(), fits);
  };
  return ChangeAny<NodeDecl>(
      g, random, has, [&](NodeDecl& node) { change(*std::find_if(node.accesses.begin(), node.accesses.end(), fits)); });
}

bool IsOf(const NodeDecl& node, NodeKind kind) { return node.kind == kind; }
bool IsNamed(const std::vector<ArgDecl>& args, ArgDecl::Form form) {
  return std::any_of(args.begin(), args.end(), [&](const ArgDecl& arg) { return arg.form == form; });
}
template <class Record>
void Rename(Record& record) {
  record.name = Name(std::string(record.name.view()) + "'");
}

bool Conflict(const Footprints& footprints, size_t i, size_t j, bool ordered_only) {
  return std::any_of(footprints[i].begin(), footprints[i].end(), [&](const Footprint& a) {
    return std::any_of(footprints[j].begin(), footprints[j].end(), [&](const Footprint& b) {
      return a.Conflicts(b) && !(ordered_only && (a.unordered || b.unordered));
    });
  });
}

bool AddAfter(RandomGraph& g, Random& random) {
  const Model& model = g.builder.model;
  const std::vector<DeclaredPair> pairs = DeclaredPairs(model);
  const Paths paths = PathsOf(model, pairs);
  std::vector<DeclaredPair> free;
  for (int32_t b = 0; b < static_cast<int32_t>(model.nodes.size()); ++b) {
    for (int32_t a = 0; a < static_cast<int32_t>(model.nodes.size()); ++a) {
      const bool joined = paths[b][a] || paths[a][b];
      if (a != b && !joined) free.push_back({a, b});
    }
  }
  if (free.empty()) return false;
  const DeclaredPair pair = free[Below(random, free.size())];
  g.builder.After(pair.after, pair.before);
  return true;
}

// One that no access says too.
bool RemoveAfter(RandomGraph& g, Random& random) {
  Nodes& nodes = g.builder.model.nodes;
  const Footprints footprints = FootprintsOf(g.builder.model);
  std::vector<DeclaredPair> removable;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const int32_t other : nodes[n].after) {
      if (!Conflict(footprints, n, static_cast<size_t>(other), true)) {
        removable.push_back({other, static_cast<int32_t>(n)});
      }
    }
  }
  if (removable.empty()) return false;
  const DeclaredPair pair = removable[Below(random, removable.size())];
  std::erase(nodes[pair.after].after, pair.before);
  return true;
}

// Two neighbours that conflict, the other way round.
bool SwapConflictingNodes(RandomGraph& g, Random& random) {
  Nodes& nodes = g.builder.model.nodes;
  const Footprints footprints = FootprintsOf(g.builder.model);
  std::vector<size_t> found;
  for (size_t n = 1; n < nodes.size(); ++n) {
    if (Conflict(footprints, n - 1, n, true)) found.push_back(n);
  }
  if (found.empty()) return false;
  const size_t n = found[Below(random, found.size())];
  std::swap(nodes[n - 1], nodes[n]);
  if (n < g.options.costs.size()) std::swap(g.options.costs[n - 1], g.options.costs[n]);
  if (n < g.options.placement.size()) std::swap(g.options.placement[n - 1], g.options.placement[n]);
  const auto a = static_cast<int32_t>(n) - 1, b = static_cast<int32_t>(n);
  for (NodeDecl& node : nodes) {
    for (DeclId& other : node.after) other = other == a ? b : other == b ? a : int32_t{other};
  }
  return true;
}

bool RemoveLastNode(RandomGraph& g, Random&) {
  Nodes& nodes = g.builder.model.nodes;
  if (nodes.empty()) return false;
  const auto last = static_cast<int32_t>(nodes.size()) - 1;
  for (const NodeDecl& node : nodes) {
    if (std::find(node.after.begin(), node.after.end(), last) != node.after.end()) return false;
  }
  nodes.pop_back();
  if (!g.options.costs.empty()) g.options.costs.pop_back();
  if (!g.options.placement.empty()) g.options.placement.pop_back();
  return true;
}

// A node that has no pin, on another device than the one where it is.
bool PlaceElsewhere(RandomGraph& g, Random& random) {
  const Nodes& nodes = g.builder.model.nodes;
  std::vector<size_t> found;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].device < 0 && nodes[n].kind < NodeKind::kHost) found.push_back(n);
  }
  const auto devices = static_cast<int32_t>(g.options.devices.size());
  if (devices == 1 || found.empty()) return false;
  g.options.placement.resize(nodes.size());
  DeviceId& device = g.options.placement[found[Below(random, found.size())]];
  device = ((device < 0 ? g.options.default_device : device) + 1) % devices;
  return true;
}

bool SwapAccesses(RandomGraph& g, Random& random) {
  const auto same = [](const AccessDecl& a, const AccessDecl& b) {
    return a.buffer == b.buffer && a.mode == b.mode && Box(a.box) == Box(b.box) && a.unordered == b.unordered;
  };
  const auto two = [&](const NodeDecl& n) { return n.accesses.size() > 1 && !same(n.accesses[0], n.accesses[1]); };
  return ChangeAny<NodeDecl>(g, random, two, [](NodeDecl& n) { std::swap(n.accesses[0], n.accesses[1]); });
}

bool MoveState(RandomGraph& g, Random& random) {
  const size_t devices = g.options.devices.size();
  const auto is_state = [&](const BufferDecl& b) { return b.role == BufferRole::kState && devices > 1; };
  return ChangeAny<BufferDecl>(g, random, is_state, [&](BufferDecl& b) {
    StateRecord record = *b.state;
    record.device = (record.device + 1) % static_cast<int32_t>(devices);
    b.state = std::make_shared<const StateRecord>(record);
  });
}

// An InOut buffer is what a State is to a graph that runs once.
bool StateToInOut(RandomGraph& g, Random& random) {
  const auto is_state = [](const BufferDecl& b) { return b.role == BufferRole::kState; };
  return ChangeAny<BufferDecl>(g, random, is_state, [](BufferDecl& b) {
    b.role = BufferRole::kInOut;
    b.where = kPinned;
    b.state = nullptr;
  });
}

// One element less in the slowest dimension; one element further to the front.
Box Shrunk(Box box) {
  --box.size.dims[0].value;
  return box;
}
Box Moved(Box box) {
  --box.offset.dims[0].value;
  return box;
}
bool CanShrink(const Box& box) { return !box.whole && box.size.dims[0].is_constant() && box.size.dims[0].value > 1; }
bool CanMove(const Box& box) { return !box.whole && box.offset.dims[0].is_constant() && box.offset.dims[0].value > 0; }

bool ShrinkAlias(RandomGraph& g, Random& random) {
  const auto fits = [](const BufferDecl& b) { return b.is_alias && CanShrink(b.box); };
  return ChangeAny<BufferDecl>(g, random, fits, [](BufferDecl& b) {
    const Box box = Shrunk(b.box);
    b.box = box;
    b.extent = box.size;
  });
}
bool MoveAlias(RandomGraph& g, Random& random) {
  const auto fits = [](const BufferDecl& b) { return b.is_alias && CanMove(b.box); };
  return ChangeAny<BufferDecl>(g, random, fits, [](BufferDecl& b) { b.box = Moved(b.box); });
}
// Of another buffer with as many elements of the same type.
bool RebaseAlias(RandomGraph& g, Random& random) {
  const Buffers& buffers = g.builder.model.buffers;
  const auto other = [&](const BufferDecl& alias) {
    for (int32_t b = 0; alias.is_alias && b < static_cast<int32_t>(buffers.size()); ++b) {
      const BufferDecl &decl = buffers[b], &of = buffers[alias.alias_of];
      if (!decl.is_alias && b != alias.alias_of && decl.extent == of.extent && decl.type == of.type) return b;
    }
    return -1;
  };
  return ChangeAny<BufferDecl>(
      g, random, [&](const BufferDecl& b) { return other(b) >= 0; }, [&](BufferDecl& b) { b.alias_of = other(b); });
}

bool NameAnotherBuffer(RandomGraph& g, Random& random) {
  const size_t count = g.builder.model.buffers.size();
  return count > 1 && ChangeAccess(g, random, kEvery, [&](AccessDecl& a) {
           a.buffer = (a.buffer + 1 + static_cast<int32_t>(Below(random, count - 1))) % static_cast<int32_t>(count);
         });
}

bool SliceAccess(RandomGraph& g, Random& random) {
  const auto extent = [&](const AccessDecl& a) { return g.builder.model.buffers[a.buffer].extent; };
  const auto whole = [&](const AccessDecl& a) {
    return Box(a.box).whole && extent(a).dims[0].is_constant() && extent(a).dims[0].value > 1;
  };
  return ChangeAccess(g, random, whole, [&](AccessDecl& a) {
    Extent offset = extent(a);
    for (Dim& dim : offset.dims) dim = 0;
    a.box = Shrunk(Slice(offset, extent(a)));
  });
}
bool ShrinkAccess(RandomGraph& g, Random& random) {
  return ChangeAccess(
      g, random, [](const AccessDecl& a) { return CanShrink(a.box); }, [](AccessDecl& a) { a.box = Shrunk(a.box); });
}
bool MoveAccess(RandomGraph& g, Random& random) {
  return ChangeAccess(
      g, random, [](const AccessDecl& a) { return CanMove(a.box); }, [](AccessDecl& a) { a.box = Moved(a.box); });
}

bool AddAccess(RandomGraph& g, Random& random) {
  const auto any = [](const NodeDecl& n) { return n.kind != NodeKind::kCopy && n.kind != NodeKind::kFill; };
  const size_t buffers = g.builder.model.buffers.size();
  return ChangeAny<NodeDecl>(g, random, any, [&](NodeDecl& node) {
    node.accesses.push_back({static_cast<int32_t>(Below(random, buffers)), ModelBuilder::kSerial, AccessMode::kRead});
  });
}

bool AddInPlace(RandomGraph& g, Random& random) {
  std::vector<std::pair<NodeDecl*, InPlaceDecl>> free;
  for (NodeDecl& node : g.builder.model.nodes) {
    for (const InPlaceDecl& pair : InPlacePairsOf(node)) free.push_back({&node, pair});
  }
  if (free.empty()) return false;
  const auto& [node, pair] = free[Below(random, free.size())];
  node->in_place.push_back(pair);
  return true;
}

ArgDecl* ParamArg(NodeDecl& node) {
  const auto is_param = [](const ArgDecl& arg) { return arg.form == ArgDecl::Form::kParam; };
  const auto it = std::find_if(node.args.begin(), node.args.end(), is_param);
  return it == node.args.end() ? nullptr : &*it;
}
template <class Change>
bool ChangeParamArg(RandomGraph& g, Random& random, Change change) {
  const auto has = [](const NodeDecl& n) { return IsNamed(n.args, ArgDecl::Form::kParam); };
  return ChangeAny<NodeDecl>(g, random, has, [&](NodeDecl& n) { change(*ParamArg(n)); });
}
template <class Change>
bool ChangeNode(RandomGraph& g, Random& random, NodeKind kind, Change change) {
  return ChangeAny<NodeDecl>(g, random, [&](const NodeDecl& n) { return IsOf(n, kind); }, change);
}

constexpr GraphChange kChanges[] = {
    {"graph name", [](RandomGraph& g, Random&) { return g.builder.model.name = Name("g'"), true; }},
    {"param name", [](RandomGraph& g, Random& r) { return ChangeAny<ParamDecl>(g, r, kEvery, Rename<ParamDecl>); }},
    {"param maximum",
     [](RandomGraph& g, Random& r) { return ChangeAny<ParamDecl>(g, r, kEvery, [](ParamDecl& p) { ++p.max; }); }},
    {"param sign",
     [](RandomGraph& g, Random& r) {
       return ChangeAny<ParamDecl>(g, r, kEvery, [](ParamDecl& p) { p.is_signed = !p.is_signed; });
     }},
    {"param added", [](RandomGraph& g, Random&) { return g.builder.Param("new", 1), true; }},
    {"buffer name", [](RandomGraph& g, Random& r) { return ChangeAny<BufferDecl>(g, r, kEvery, Rename<BufferDecl>); }},
    {"buffer added", [](RandomGraph& g, Random&) { return g.builder.Input("new", 4), true; }},
    {"buffer size",
     [](RandomGraph& g, Random& r) {
       const auto fits = [](const BufferDecl& b) { return !b.is_alias && b.extent.dims[0].is_constant(); };
       return ChangeAny<BufferDecl>(g, r, fits, [](BufferDecl& b) { ++b.extent.dims[0].value; });
     }},
    {"element size",
     [](RandomGraph& g, Random& r) {
       const auto fits = [](const BufferDecl& b) { return !b.is_alias; };
       return ChangeAny<BufferDecl>(g, r, fits, [](BufferDecl& b) { b.type = ModelBuilder::TypeOf(b.type.size + 1); });
     }},
    {"role",
     [](RandomGraph& g, Random& r) {
       const auto fits = [](const BufferDecl& b) { return b.role == BufferRole::kInput; };
       return ChangeAny<BufferDecl>(g, r, fits, [](BufferDecl& b) { b.role = BufferRole::kInOut; });
     }},
    {"where",
     [](RandomGraph& g, Random& r) {
       const auto fits = [](const BufferDecl& b) {
         return !b.is_alias && b.role != BufferRole::kState && b.where != kPinned;
       };
       return ChangeAny<BufferDecl>(g, r, fits, [](BufferDecl& b) { b.where = kPinned; });
     }},
    {"device of a State", MoveState},
    {"State to InOut", StateToInOut},
    {"alias size", ShrinkAlias},
    {"alias offset", MoveAlias},
    {"alias of another", RebaseAlias},
    {"node name", [](RandomGraph& g, Random& r) { return ChangeAny<NodeDecl>(g, r, kEvery, Rename<NodeDecl>); }},
    {"node added", [](RandomGraph& g, Random&) { return g.builder.For("new"), true; }},
    {"node removed", RemoveLastNode},
    {"kernel to launch",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { n.kind = NodeKind::kLaunch; });
     }},
    {"parallel for to host",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kParallelFor, [](NodeDecl& n) { n.kind = NodeKind::kHost; });
     }},
    {"pin",
     [](RandomGraph& g, Random& r) {
       const auto devices = static_cast<int32_t>(g.options.devices.size());
       return ChangeAny<NodeDecl>(g, r, kEvery, [&](NodeDecl& n) { n.device = n.device < 0 ? devices - 1 : -1; });
     }},
    {"priority",
     [](RandomGraph& g, Random& r) { return ChangeAny<NodeDecl>(g, r, kEvery, [](NodeDecl& n) { ++n.priority; }); }},
    {"access mode: read to change",
     [](RandomGraph& g, Random& r) {
       return ChangeAccess(
           g, r, [](const AccessDecl& a) { return a.mode == AccessMode::kRead; },
           [](AccessDecl& a) { a.mode = AccessMode::kReadWrite; });
     }},
    {"access mode: change to write",
     [](RandomGraph& g, Random& r) {
       return ChangeAccess(
           g, r, [](const AccessDecl& a) { return a.mode == AccessMode::kReadWrite; },
           [](AccessDecl& a) { a.mode = AccessMode::kWrite; });
     }},
    {"accessed buffer", NameAnotherBuffer},
    {"access of a part", SliceAccess},
    {"box size", ShrinkAccess},
    {"box offset", MoveAccess},
    {"unordered",
     [](RandomGraph& g, Random& r) {
       return ChangeAccess(g, r, kEvery, [](AccessDecl& a) { a.unordered = !a.unordered; });
     }},
    {"access added", AddAccess},
    {"accesses swapped", SwapAccesses},
    {"in place added", AddInPlace},
    {"in place removed",
     [](RandomGraph& g, Random& r) {
       const auto has = [](const NodeDecl& n) { return !n.in_place.empty(); };
       return ChangeAny<NodeDecl>(g, r, has, [](NodeDecl& n) { n.in_place.pop_back(); });
     }},
    {"after added", AddAfter},
    {"after removed", RemoveAfter},
    {"order of a conflict", SwapConflictingNodes},
    {"argument added",
     [](RandomGraph& g, Random& r) {
       return ChangeAny<NodeDecl>(g, r, kEvery, [](NodeDecl& n) { n.args.push_back({}); });
     }},
    {"argument's parameter",
     [](RandomGraph& g, Random& r) {
       const size_t count = g.builder.model.params.size();
       return count > 1 &&
              ChangeParamArg(g, r, [&](ArgDecl& arg) { arg.index = (arg.index + 1) % static_cast<int32_t>(count); });
     }},
    {"argument's offset",
     [](RandomGraph& g, Random& r) { return ChangeParamArg(g, r, [](ArgDecl& arg) { arg.offset += 4; }); }},
    {"argument's form",
     [](RandomGraph& g, Random& r) {
       return ChangeParamArg(g, r, [](ArgDecl& arg) { arg.form = ArgDecl::Form::kValue; });
     }},
    {"argument block",
     [](RandomGraph& g, Random& r) {
       return ChangeAny<NodeDecl>(g, r, kEvery, [](NodeDecl& n) { n.arg_block.resize(n.arg_block.size() + 4); });
     }},
    {"parallel extent",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kParallelFor, [](NodeDecl& n) { n.extent = Extent(123); });
     }},
    {"task",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kParallelFor, [](NodeDecl& n) { n.is_task = !n.is_task; });
     }},
    {"kernel block",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { ++n.shape.block[1]; });
     }},
    {"kernel threads",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { n.shape.threads = Dim(123); });
     }},
    {"kernel programmatic",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { n.shape.programmatic = !n.shape.programmatic; });
     }},
    {"kernel by occupancy",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { n.shape.by_occupancy = !n.shape.by_occupancy; });
     }},
    {"kernel's shared bytes",
     [](RandomGraph& g, Random& r) {
       return ChangeNode(g, r, NodeKind::kKernel, [](NodeDecl& n) { ++n.shape.shared_bytes; });
     }},
    {"cost",
     [](RandomGraph& g, Random& r) {
       if (g.options.costs.empty()) return false;
       g.options.costs[Below(r, g.options.costs.size())] = 123;
       return true;
     }},
    {"placement", PlaceElsewhere},
    {"lanes", [](RandomGraph& g, Random&) { return ++g.options.max_lanes, true; }},
    {"default device",
     [](RandomGraph& g, Random&) {
       const auto devices = static_cast<int32_t>(g.options.devices.size());
       g.options.default_device = (g.options.default_device + 1) % devices;
       return devices > 1;
     }},
    {"device added",
     [](RandomGraph& g, Random&) { return g.options.devices.push_back({"host:9", false, 0, 0}), true; }},
    {"device name", [](RandomGraph& g, Random&) { return g.options.devices[0].name += "'", true; }},
    {"kind of device", [](RandomGraph& g, Random&) { return g.options.devices[0].is_cuda = true; }},
};

}  // namespace

std::span<const GraphChange> GraphChanges() { return kChanges; }

void AddArguments(RandomGraph& graph, Random& random) {
  ModelBuilder& g = graph.builder;
  const int32_t first = g.Param("first", 50), second = g.Param("second", 60);
  for (NodeDecl& node : g.model.nodes) {
    if (Below(random, 2) == 0) {
      node.args.push_back({ArgDecl::Form::kParam, 0, 4, Below(random, 2) == 0 ? first : second, ModelBuilder::kSerial,
                           0, ModelBuilder::TypeOf(4)});
      node.arg_block.resize(16);
    }
    if (node.kind == NodeKind::kParallelFor && Below(random, 2) == 0) node.extent = Extent(g.ParamDim(first));
    if (node.kind == NodeKind::kKernel && Below(random, 2) == 0) node.shape.threads = g.ParamDim(second);
  }
}

}  // namespace penstock::graph
