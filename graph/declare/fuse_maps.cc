#include "graph/declare/fuse_maps.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "graph/declare/map.h"
#include "penstock/detail/declare_reduce.h"

namespace penstock::graph {
namespace {

using detail::Formula;
using detail::FormulaStep;
using detail::Operation;
using detail::Table;

// What a kernel may become: it should not run out of registers, and its arguments take at most 4 KiB.
constexpr size_t kMostMaps = 64, kMostSteps = 256, kMostAccesses = 64;
constexpr int kMostRounds = 16;

// A use of memory by a node. Those of one node are as declared, but reads come first: a Map reads before it writes.
struct Use {
  DeclId node{};
  BufferId buffer{};  // as named, which may be an alias
  AccessMode mode{};
  bool whole = false;
};

// What a Buffer holds from a Map that writes all of it on, and the Maps that read it.
struct Between {
  BufferId buffer{};
  DeclId writer{};
  std::vector<DeclId> readers;
  bool fused = false;
};

bool IsMap(const NodeDecl& node) { return node.code.formula != nullptr; }

// Groups of Maps that become one node each.
class Groups {
 public:
  explicit Groups(const Model& model)
      : model_(model),
        uses_(model.buffers.size()),
        may_(model.nodes.size()),
        named_by_(model.nodes.size(), model.nodes.next()),
        group_(model.nodes.size()) {
    FindMaps();
    FindUses();
    FindBetween();
    for (int round = 0; round < kMostRounds && Round(); ++round) any_ = true;
  }

  bool any() const { return any_; }

  // The Maps of the group of a Map, in their order; one if it stays alone.
  const std::vector<DeclId>& Of(DeclId map) const { return groups_[group_[map]]; }
  bool IsFused(DeclId node) const { return may_[node] && Of(node).size() > 1; }
  // Whether the Map reads a value that a Map of its group writes and no other node needs.
  bool ReadsDropped(DeclId reader, BufferId buffer) const {
    return std::any_of(of_buffer_[buffer].begin(), of_buffer_[buffer].end(), [&](size_t i) {
      const std::vector<DeclId>& readers = between_[i].readers;
      return between_[i].fused && std::binary_search(readers.begin(), readers.end(), reader);
    });
  }
  // Whether what the Map writes goes to Maps of its group only.
  bool IsDropped(DeclId writer, BufferId buffer) const {
    return std::any_of(of_buffer_[buffer].begin(), of_buffer_[buffer].end(),
                       [&](size_t i) { return between_[i].fused && between_[i].writer == writer; });
  }

 private:
  void FindMaps() {
    for (const DeclId n : model_.nodes.ids()) {
      const NodeDecl& node = model_.nodes[n];
      may_[n] = IsMap(node) && node.after.empty() && node.in_place.empty() && !node.decides &&
                std::none_of(node.accesses.begin(), node.accesses.end(),
                             [](const AccessDecl& access) { return access.unordered || access.uncopied; });
    }
    for (const DeclId n : model_.nodes.ids()) {
      for (const DeclId other : model_.nodes[n].after) named_by_[other] = std::min(named_by_[other], n);
    }
    for (const DeclId n : model_.nodes.ids()) {
      group_[n] = static_cast<int32_t>(groups_.size());
      if (may_[n]) groups_.push_back({n});
    }
  }

  void FindUses() {
    for (const DeclId n : model_.nodes.ids()) {
      const std::vector<AccessDecl>& accesses = model_.nodes[n].accesses;
      for (const bool reads : {true, false}) {
        for (const AccessDecl& access : accesses) {
          if ((access.mode == AccessMode::kRead) != reads) continue;
          const BufferId base = BaseOf(model_, access.buffer);
          uses_[base].push_back({n, access.buffer, access.mode, access.box.whole() && access.buffer == base});
        }
      }
    }
  }

  // In the order of the writers.
  void FindBetween() {
    for (const BufferId b : model_.buffers.ids()) {
      const BufferDecl& buffer = model_.buffers[b];
      if (buffer.is_alias || buffer.role != BufferRole::kInternal || buffer.where != Where::kDevice) continue;
      Between now;
      bool good = false;
      const auto end = [&] {
        if (good && !now.readers.empty()) between_.push_back(now);
      };
      for (const Use& use : uses_[b]) {
        const bool writes = use.mode == AccessMode::kWrite || use.mode == AccessMode::kReadWrite;
        if (use.mode != AccessMode::kWrite || !use.whole) {
          good = good && may_[use.node] && use.whole;
          now.readers.push_back(use.node);
        }
        if (!use.whole || !writes) continue;
        end();
        now = {.buffer = b, .writer = use.node, .readers = {}};
        good = may_[use.node];
      }
      end();
    }
    std::sort(between_.begin(), between_.end(), [](const Between& a, const Between& b) {
      return a.writer != b.writer ? a.writer < b.writer : a.buffer < b.buffer;
    });
    of_buffer_.resize(model_.buffers.size());
    for (size_t i = 0; i < between_.size(); ++i) of_buffer_[between_[i].buffer].push_back(i);
  }

  // Tries what stands between Maps of several groups. Groups that are made may make others possible: of a diamond, the
  // Maps in its middle must be together before what all of it begins with can join. Returns whether any was made.
  bool Round() {
    bool any = false;
    for (Between& between : between_) {
      if (between.fused) continue;
      between.fused = TryFuse(between);
      any = any || between.fused;
    }
    return any;
  }
  bool TryFuse(Between& between) {
    std::vector<DeclId> all = Of(between.writer);
    for (const DeclId reader : between.readers) {
      const std::vector<DeclId>& more = Of(reader);
      all.insert(all.end(), more.begin(), more.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    between.fused = true;  // its accesses then do not count
    if (!AreAlike(all) || !IsSmall(all) || !MeetElementByElement(all) || !MayMove(all)) return false;
    const int32_t into = group_[between.writer];
    for (const DeclId map : all) {
      if (group_[map] != into) groups_[group_[map]].clear();
      group_[map] = into;
    }
    groups_[into] = std::move(all);
    return true;
  }

  // Their shape is that of the Buffers between them.
  bool AreAlike(const std::vector<DeclId>& maps) const {
    const NodeDecl& first = model_.nodes[maps[0]];
    return std::all_of(maps.begin(), maps.end(), [&](DeclId map) {
      const NodeDecl& node = model_.nodes[map];
      return node.device == first.device && node.priority == first.priority && node.concurrency == first.concurrency &&
             node.body == first.body;
    });
  }
  bool IsSmall(const std::vector<DeclId>& maps) const {
    size_t steps = 0, accesses = 0;
    for (const DeclId map : maps) {
      const NodeDecl& node = model_.nodes[map];
      steps += node.code.formula->steps.size();
      accesses += node.accesses.size() + node.code.formula->params.size();
    }
    return maps.size() <= kMostMaps && steps <= kMostSteps && accesses <= kMostAccesses;
  }

  // Whether the access is only to what Maps of its group write and read.
  bool IsInside(DeclId map, const AccessDecl& access) const {
    const bool reads = Reads(access.mode), writes = access.mode != AccessMode::kRead;
    return (!reads || ReadsDropped(map, access.buffer)) && (!writes || IsDropped(map, access.buffer));
  }

  // Whether all accesses to memory that one of them writes are to the same elements by the same index.
  bool MeetElementByElement(const std::vector<DeclId>& maps) const {
    std::vector<std::pair<BufferId, const AccessDecl*>> all;
    std::vector<BufferId> written;
    for (const DeclId map : maps) {
      for (const AccessDecl& access : model_.nodes[map].accesses) {
        if (IsInside(map, access)) continue;
        const BufferId base = BaseOf(model_, access.buffer);
        all.emplace_back(base, &access);
        if (access.mode != AccessMode::kRead) written.push_back(base);
      }
    }
    for (const auto& [base, access] : all) {
      if (std::find(written.begin(), written.end(), base) == written.end()) continue;
      for (const auto& [other_base, other] : all) {
        if (other_base == base && (other->buffer != access->buffer || other->box.get() != access->box.get()))
          return false;
      }
    }
    return true;
  }

  // Whether each can run where the last one stands.
  bool MayMove(const std::vector<DeclId>& maps) const {
    for (const DeclId map : maps) {
      if (named_by_[map] < maps.back()) return false;
      for (const AccessDecl& access : model_.nodes[map].accesses) {
        if (!IsInside(map, access) && MeetsBetween(maps, map, access)) return false;
      }
    }
    return true;
  }
  bool MeetsBetween(const std::vector<DeclId>& maps, DeclId map, const AccessDecl& access) const {
    const std::vector<Use>& uses = uses_[BaseOf(model_, access.buffer)];
    auto use = std::upper_bound(uses.begin(), uses.end(), map, [](DeclId n, const Use& u) { return n < u.node; });
    for (; use != uses.end() && use->node < maps.back(); ++use) {
      if (use->mode == AccessMode::kRead && access.mode == AccessMode::kRead) continue;
      if (!std::binary_search(maps.begin(), maps.end(), use->node)) return true;
    }
    return false;
  }

  const Model& model_;
  Table<BufferId, std::vector<Use>> uses_;  // of each buffer that has memory
  Table<DeclId, bool> may_;  // it is a Map that nothing keeps alone
  Table<DeclId, DeclId> named_by_;  // the first node that comes After it
  Table<DeclId, int32_t> group_;  // of those that may
  std::vector<std::vector<DeclId>> groups_;
  std::vector<Between> between_;
  Table<BufferId, std::vector<size_t>> of_buffer_;  // indices of between_
  bool any_ = false;
};

// The formula of a group.
class Composer {
 public:
  Composer(const Model& model, const Groups& groups) : model_(model), groups_(groups) {}

  NodeDecl Compose(const std::vector<DeclId>& maps) {
    for (const DeclId map : maps) Add(map);
    const NodeDecl &first = model_.nodes[maps.front()], &last = model_.nodes[maps.back()];
    auto formula = std::make_shared<Formula>(std::move(formula_));
    formula->rank = first.extent.rank;
    std::vector<AccessDecl> accesses;
    std::vector<TypeInfo> types;
    for (const Kept& kept : written_) {
      formula->written.push_back(kept.step);
      AddTo(*formula, accesses, types, kept);
    }
    AddReads(*formula, accesses, types);
    for (size_t a = 0; a < accesses.size(); ++a) accesses[a].mode = formula->ModeOf(a);
    NodeDecl node(NameOf(maps, *formula), NodeKind::kParallelFor);
    static_cast<NodeOptions&>(node) = first;
    for (const DeclId map : maps) node.flops += map == maps.front() ? 0 : model_.nodes[map].flops;
    node.body = last.body;
    SetFormula(node, std::move(formula), first.extent, std::move(accesses), types, params_);
    return node;
  }

 private:
  // An access, and the step that has the value of its elements.
  struct Kept {
    AccessDecl access;
    TypeInfo type;
    int32_t step;
    bool dropped = false;  // it is a value that has no memory
  };
  // Of what is written as well there is one access.
  void AddReads(Formula& formula, std::vector<AccessDecl>& accesses, std::vector<TypeInfo>& types) {
    for (const Kept& kept : read_) {
      const Kept* const written = Find(written_, kept.access);
      const auto index = written != nullptr ? written - written_.data() : static_cast<std::ptrdiff_t>(accesses.size());
      formula.steps[static_cast<size_t>(kept.step)].a = static_cast<int32_t>(index);
      if (written == nullptr) AddTo(formula, accesses, types, kept);
    }
  }
  static Kept* Find(std::vector<Kept>& in, const AccessDecl& access) {
    const auto at = std::find_if(in.begin(), in.end(), [&](const Kept& kept) {
      return kept.access.buffer == access.buffer && kept.access.box.get() == access.box.get();
    });
    return at == in.end() ? nullptr : &*at;
  }

  void Add(DeclId map) {
    const NodeDecl& node = model_.nodes[map];
    const Formula& of = *node.code.formula;
    std::vector<int32_t> steps;  // where each of its steps is now
    for (const FormulaStep& step : of.steps) steps.push_back(StepOf(map, step, steps));
    for (int w = 0; w < of.outputs(); ++w) {
      const auto i = static_cast<size_t>(w);
      const Kept kept{node.accesses[i], TypeOf(node, i), steps[static_cast<size_t>(of.written[i])],
                      groups_.IsDropped(map, node.accesses[i].buffer)};
      Put(values_, kept);
      if (!kept.dropped) Put(written_, kept);
    }
  }
  static void Put(std::vector<Kept>& in, const Kept& kept) {
    if (Kept* const before = Find(in, kept.access)) *before = kept;
    else in.push_back(kept);
  }
  // The first arguments are the Range and the address of the formula.
  static const TypeInfo& TypeOf(const NodeDecl& node, size_t access) { return node.args[access + 2].type; }

  int32_t StepOf(DeclId map, FormulaStep step, const std::vector<int32_t>& steps) {
    const NodeDecl& node = model_.nodes[map];
    const auto index = static_cast<size_t>(std::max(step.a, 0));
    if (step.operation == Operation::kRead) return Read(map, node.accesses[index], TypeOf(node, index), step);
    if (step.operation == Operation::kParam) {
      step.a = IndexOfParam(node.args[2 + node.accesses.size() + index], node.code.formula->params[index]);
    } else {
      for (int32_t* const operand : {&step.a, &step.b, &step.c}) {
        if (*operand >= 0) *operand = steps[static_cast<size_t>(*operand)];
      }
    }
    return AddStep(formula_.steps, step);
  }
  // Of what an earlier one has written, its value: unless that was dropped, and a node between the two, which is no
  // Map of the group, has written the Buffer since.
  int32_t Read(DeclId map, const AccessDecl& access, const TypeInfo& type, FormulaStep step) {
    const Kept* const value = Find(values_, access);
    if (value != nullptr && (!value->dropped || groups_.ReadsDropped(map, access.buffer))) return value->step;
    if (const Kept* const known = Find(read_, access)) return known->step;
    step.a = static_cast<int32_t>(read_.size());  // until all that is written is known
    const int32_t at = AddStep(formula_.steps, step);
    read_.push_back({access, type, at});
    return at;
  }
  int32_t IndexOfParam(const ArgDecl& arg, detail::ScalarType type) {
    const auto at = std::find_if(params_.begin(), params_.end(), [&](const auto& p) { return p.index == arg.index; });
    const auto index = static_cast<int32_t>(at - params_.begin());
    if (at != params_.end()) return index;
    params_.push_back({arg.index, arg.graph, arg.type});
    formula_.params.push_back(type);
    return index;
  }

  static void AddTo(Formula& formula, std::vector<AccessDecl>& accesses, std::vector<TypeInfo>& types,
                    const Kept& kept) {
    formula.accesses.push_back(formula.steps[static_cast<size_t>(kept.step)].type);
    accesses.push_back(kept.access);
    types.push_back(kept.type);
  }

  // "t + e + c", declared at "a.cc:1, a.cc:2, a.cc:3". The formula keeps the text of the lines.
  Name NameOf(const std::vector<DeclId>& maps, Formula& formula) const {
    std::string name;
    for (const DeclId map : maps) {
      const Name& of = model_.nodes[map].name;
      name += (map == maps.front() ? "" : " + ") + std::string(of.view());
      if (map != maps.back()) formula.where += Where(of.source()) + ", ";
    }
    const SourceLine& last = model_.nodes[maps.back()].name.source();
    const char* const slash = std::strrchr(last.file, '/');
    formula.where += slash != nullptr ? slash + 1 : last.file;
    return Name(std::move(name), formula.where.c_str(), last.line);
  }

  const Model& model_;
  const Groups& groups_;
  Formula formula_;
  std::vector<Kept> values_, written_, read_;
  std::vector<detail::FlatMap::Param> params_;
};

int64_t BytesOf(const Model& model, const NodeDecl& node) {
  int64_t bytes = 0;
  for (const AccessDecl& access : node.accesses) {
    const int times = access.mode == AccessMode::kReadWrite ? 2 : 1;
    bytes += times * int64_t{model.buffers[access.buffer].type.size};
  }
  return bytes * detail::MostElements(model, node.extent);
}

void FindUnused(const Model& before, FusedModel& after) {
  Table<BufferId, bool> used(before.buffers.size());
  for (const NodeDecl& node : after.model.nodes) {
    for (const AccessDecl& access : node.accesses) used[BaseOf(before, access.buffer)] = true;
  }
  for (FusedMap& fused : after.fused) {
    for (const DeclId map : fused.maps) {
      for (const AccessDecl& access : before.nodes[map].accesses) {
        const BufferId base = BaseOf(before, access.buffer);
        if (access.mode == AccessMode::kRead || used[base]) continue;
        used[base] = true;
        fused.unused.push_back(access.buffer);
        const BufferDecl& buffer = before.buffers[access.buffer];
        fused.memory_bytes += detail::MostElements(before, buffer.extent) * buffer.type.size;
      }
    }
  }
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  for (; number >= 1024 && unit + 1 < std::size(kUnits); ++unit) number /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", number >= 100 || unit == 0 ? 0 : 1, number);
  return text + std::string(kUnits[unit]);
}

}  // namespace

bool HasMaps(const Model& model) { return std::count_if(model.nodes.begin(), model.nodes.end(), IsMap) > 1; }

std::optional<FusedModel> FuseMaps(const Model& model) {
  const Groups groups(model);
  if (!groups.any()) return std::nullopt;
  FusedModel out{.model = model, .declared = {}, .fused = {}};
  out.model.nodes.clear();
  Table<DeclId, DeclId> moved(model.nodes.size());
  for (const DeclId n : model.nodes.ids()) {
    const bool fused = groups.IsFused(n);
    if (fused && groups.Of(n).back() != n) continue;
    moved[n] = DeclId(static_cast<int32_t>(out.model.nodes.size()));
    out.declared.push_back(n);
    out.model.nodes.push_back(fused ? Composer(model, groups).Compose(groups.Of(n)) : model.nodes[n]);
    if (!fused) continue;
    FusedMap& map = out.fused.emplace_back(FusedMap{.node = moved[n], .maps = groups.Of(n), .unused = {}});
    for (const DeclId of : map.maps) map.traffic_bytes += BytesOf(model, model.nodes[of]);
    map.traffic_bytes -= BytesOf(model, out.model.nodes[moved[n]]);
  }
  for (NodeDecl& node : out.model.nodes) {
    for (DeclId& other : node.after) other = moved[groups.IsFused(other) ? groups.Of(other).back() : other];
    std::sort(node.after.begin(), node.after.end());
    node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  }
  FindUnused(model, out);
  return out;
}

std::string TextOf(const FusedMap& fused, const Model& declared) {
  const auto list = [](const auto& ids, const auto& of) {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) {
      text += (i == 0 ? "" : i + 1 < ids.size() ? ", " : " and ") + Quoted(of[ids[i]].name);
    }
    return text;
  };
  std::string text = "one kernel for Maps " + list(fused.maps, declared.nodes);
  if (!fused.unused.empty()) text += ", without " + list(fused.unused, declared.buffers);
  text += ": a run reads and writes " + BytesText(fused.traffic_bytes) + " less";
  if (fused.memory_bytes > 0) text += ", and " + BytesText(fused.memory_bytes) + " of memory are not needed";
  return text;
}

}  // namespace penstock::graph
