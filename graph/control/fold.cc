// Fold, in two walks over the bodies, innermost first: Summaries find what each of them uses, Folder makes the models.
#include "graph/control/fold.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "graph/common/message.h"

namespace penstock::graph {
namespace {

using detail::Table;

// A node or a construct, where it stands among the others of its body.
struct Item {
  DeclId node{};
  ControlId control{};
};

// The index of a body's records; 0 is what is outside of all bodies.
size_t Row(BodyId body) { return static_cast<size_t>(body) + 1; }

// For each body, its nodes and constructs as declared. Conditions belong to their constructs.
std::vector<std::vector<Item>> ItemsOf(const Model& model) {
  std::vector<std::vector<Item>> items(model.bodies.size() + 1);
  Table<DeclId, bool> is_condition(model.nodes.size());
  for (const ControlDecl& control : model.controls) {
    if (control.condition >= 0) is_condition[control.condition] = true;
  }
  ControlId next = 0;
  const auto add_controls = [&](DeclId until) {
    for (; next < model.controls.count() && model.controls[next].begin <= until; ++next) {
      items[Row(model.controls[next].in)].push_back({.control = next});
    }
  };
  for (const DeclId n : model.nodes.ids()) {
    add_controls(n);
    if (!is_condition[n]) items[Row(model.nodes[n].body)].push_back({.node = n});
  }
  add_controls(model.nodes.next());
  return items;
}

// How a body uses a buffer that owns memory.
struct BufferUse {
  BufferId buffer{};
  bool written = false;
  bool exposed = false;  // it may read, or leave, what was there before
  bool whole = false;  // a condition writes all of it, before any body reads
};
using BufferUses = std::vector<BufferUse>;
bool ByBuffer(const BufferUse& a, const BufferUse& b) { return a.buffer < b.buffer; }

class Summaries {
 public:
  Summaries(const Model& model, const std::vector<std::vector<Item>>& items)
      : model_(model), items_(items), uses_(model.bodies.size() + 1), state_(model.buffers.size()) {
    FindHomes();
    for (size_t row = uses_.size(); row > 0; --row) Summarize(row - 1);  // inner bodies have larger numbers
  }

  // What a body uses of the memory around it.
  const BufferUses& Of(BodyId body) const { return uses_[Row(body)]; }
  // What a construct uses, its condition included; sorted by buffer.
  BufferUses OfControl(const ControlDecl& control) const { return OfParts(control, true, control.bodies); }
  // The same of some of its parts.
  BufferUses OfParts(const ControlDecl& control, bool condition, std::span<const BodyId> bodies) const {
    BufferUses all;
    for (const BodyId body : bodies) all.insert(all.end(), Of(body).begin(), Of(body).end());
    Merge(all);
    if (!condition || control.condition < 0) return all;
    BufferUses first = OfCondition(control);
    for (BufferUse& use : all) {
      const auto at = std::lower_bound(first.begin(), first.end(), use, ByBuffer);
      if (at != first.end() && at->buffer == use.buffer && at->whole) use.exposed = false;
    }
    all.insert(all.end(), first.begin(), first.end());
    Merge(all);
    return all;
  }
  // The buffer that owns the memory of `buffer`; none: it is a mistake.
  BufferId Base(BufferId buffer) const {
    while (buffer >= 0 && buffer < model_.buffers.count() && model_.buffers[buffer].is_alias) {
      if (model_.buffers[buffer].alias_graph != model_.serial) return {};
      buffer = model_.buffers[buffer].alias_of;
    }
    return buffer >= 0 && buffer < model_.buffers.count() ? buffer : BufferId();
  }

 private:
  // One use of each buffer, sorted by it.
  static void Merge(BufferUses& all) {
    std::sort(all.begin(), all.end(), ByBuffer);
    size_t kept = 0;
    for (const BufferUse& use : all) {
      if (kept > 0 && all[kept - 1].buffer == use.buffer) {
        all[kept - 1].written |= use.written;
        all[kept - 1].exposed |= use.exposed;
        all[kept - 1].whole |= use.whole;
      } else {
        all[kept++] = use;
      }
    }
    all.resize(kept);
  }

  // It reads before it writes.
  BufferUses OfCondition(const ControlDecl& control) const {
    BufferUses uses;
    for (const AccessDecl& access : model_.nodes[control.condition].accesses) {
      const BufferId base = Base(access.buffer);
      if (base < 0 || base == control.word) continue;
      const bool whole = IsWhole(access);
      uses.push_back({base, access.mode != AccessMode::kRead, !whole, whole});
    }
    Merge(uses);
    return uses;
  }

  // Whether it writes all of a buffer.
  bool IsWhole(const AccessDecl& access) const {
    return access.mode == AccessMode::kWrite && access.box.whole() && Base(access.buffer) == access.buffer;
  }

  int Depth(BodyId body) const { return body < 0 ? 0 : model_.bodies[body].depth; }
  BodyId Around(BodyId body) const { return model_.controls[model_.bodies[body].of].in; }
  BodyId Common(BodyId a, BodyId b) const {
    while (a != b) (Depth(a) >= Depth(b) ? a : b) = Around(Depth(a) >= Depth(b) ? a : b);
    return a;
  }

  // The innermost body around all accesses to each buffer.
  void FindHomes() {
    home_.resize(model_.buffers.size());
    Table<BufferId, bool> used(model_.buffers.size());
    for (const NodeDecl& node : model_.nodes) {
      for (const AccessDecl& access : node.accesses) {
        const BufferId base = Base(access.buffer);
        if (base < 0) continue;
        home_[base] = used[base] ? Common(home_[base], node.body) : node.body;
        used[base] = true;
      }
    }
  }

  struct State {
    int32_t use = -1;  // in the body that is looked at
    bool whole = false;  // all of it has surely been written
  };

  BufferUse& UseOf(size_t row, BufferId base) {
    State& state = state_[base];
    if (state.use < 0) {
      state.use = static_cast<int32_t>(uses_[row].size());
      uses_[row].push_back({.buffer = base});
    }
    return uses_[row][static_cast<size_t>(state.use)];
  }

  void Summarize(size_t row) {
    for (const Item& item : items_[row]) {
      if (item.node >= 0) AddNode(row, model_.nodes[item.node]);
      else AddControl(row, model_.controls[item.control]);
    }
    for (const BufferUse& use : uses_[row]) state_[use.buffer] = {};
    if (row > 0) DropOwn(row);
  }

  void AddNode(size_t row, const NodeDecl& node) {
    for (const AccessDecl& access : node.accesses) {
      const BufferId base = Base(access.buffer);
      if (base < 0) continue;
      BufferUse& use = UseOf(row, base);
      if (Reads(access.mode) && !state_[base].whole) use.exposed = true;
    }
    for (const AccessDecl& access : node.accesses) {
      const BufferId base = Base(access.buffer);
      if (base < 0 || access.mode == AccessMode::kRead) continue;
      UseOf(row, base).written = true;
      if (IsWhole(access)) state_[base].whole = true;
    }
  }

  void AddControl(size_t row, const ControlDecl& control) {
    for (const BufferUse& inner : OfControl(control)) {
      BufferUse& use = UseOf(row, inner.buffer);
      use.written |= inner.written;
      use.exposed |= inner.exposed && !state_[inner.buffer].whole;
      if (inner.whole) state_[inner.buffer].whole = true;
    }
  }

  // What nothing outside accesses and nothing brings along from before is the body's own.
  void DropOwn(size_t row) {
    const auto body = BodyId(static_cast<int32_t>(row) - 1);
    std::erase_if(uses_[row], [&](const BufferUse& use) {
      const BufferDecl& decl = model_.buffers[use.buffer];
      if (decl.role == BufferRole::kParam) return true;
      return decl.role == BufferRole::kInternal && !use.exposed && home_[use.buffer] == body;
    });
  }

  const Model& model_;
  const std::vector<std::vector<Item>>& items_;
  std::vector<BufferUses> uses_;
  Table<BufferId, BodyId> home_;
  Table<BufferId, State> state_;
};

class Folder {
 public:
  Folder(std::shared_ptr<const Model> model, const Lowerings& lowerings)
      : kept_(std::move(model)),
        model_(*kept_),
        lowerings_(lowerings),
        items_(ItemsOf(model_)),
        summaries_(model_, items_) {
    node_.resize(model_.nodes.size());
    seen_.resize(model_.buffers.size());
  }

  // The graph itself keeps all its buffers and parameters, so that bindings of handles fit.
  Folded Outside() {
    Model made(model_.name);
    made.serial = model_.serial;
    made.params = model_.params;
    made.buffers = model_.buffers;
    for (const BufferId b : model_.buffers.ids()) {
      const BufferRole role = model_.buffers[b].role;
      Of(b) = {scope_, b, role != BufferRole::kInternal && role != BufferRole::kOutput};
    }
    for (const ControlDecl& control : model_.controls) {  // the graph itself has no use for it
      if (control.word >= 0) made.buffers[control.word].body = 0;
    }
    for (const DeclId n : model_.nodes.ids()) CheckScopes(n);
    std::vector<std::shared_ptr<const FoldedControl>> controls = AddItems(items_[0], made);
    made.mistakes = model_.mistakes;
    made.mistakes.insert(made.mistakes.end(), mistakes_.begin(), mistakes_.end());
    return {Keep(std::move(made)), std::move(controls), std::move(unrolled_)};
  }

 private:
  // A buffer of the original in the model that is made: its index there, and whether something may be in it already.
  struct Seen {
    int32_t scope = -1;  // of the model to which this applies
    BufferId made{};
    bool has_contents = false;
  };
  struct Undo {
    BufferId buffer;
    Seen was;
  };

  // A model that is made inside another one.
  class Scope {
   public:
    explicit Scope(Folder& folder)
        : folder_(folder),
          outer_(folder.scope_),
          last_loop_(std::exchange(folder.last_loop_, {})),
          undo_(folder.undo_.size()) {
      folder.scope_ = ++folder.scopes_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      for (; folder_.undo_.size() > undo_; folder_.undo_.pop_back()) {
        folder_.seen_[folder_.undo_.back().buffer] = folder_.undo_.back().was;
      }
      folder_.scope_ = outer_;
      folder_.last_loop_ = last_loop_;
    }

   private:
    Folder& folder_;
    const int32_t outer_;
    const DeclId last_loop_;
    const size_t undo_;
  };

  Seen& Of(BufferId b) {
    Seen& seen = seen_[b];
    if (seen.scope == scope_) return seen;
    undo_.push_back({b, seen});
    seen = {.scope = scope_};
    return seen;
  }

  std::shared_ptr<const Model> Keep(Model made) const {
    struct Kept {
      std::shared_ptr<const Model> from;
      Model model;
    };
    auto kept = std::make_shared<Kept>(Kept{kept_, std::move(made)});
    return {kept, &kept->model};
  }

  std::vector<std::shared_ptr<const FoldedControl>> AddItems(std::span<const Item> items, Model& to) {
    std::vector<std::shared_ptr<const FoldedControl>> controls;
    for (const Item& item : items) {
      if (item.control < 0) {
        AddNode(item.node, to);
      } else if (const int64_t nodes = NodesUnrolled(item.control); nodes >= 0) {
        Unroll(item.control, nodes, to);
      } else {
        controls.push_back(std::make_shared<const FoldedControl>(AddControl(item.control, to)));
      }
    }
    return controls;
  }

  // The number of nodes that a construct becomes if it is unrolled; -1: it is not.
  int64_t NodesUnrolled(ControlId c) const {
    const ControlDecl& control = model_.controls[c];
    if (control.kind != ControlKind::kRepeat || control.condition >= 0) return -1;
    if (!control.trips.is_constant() || control.bodies.empty()) return -1;
    int64_t nodes = 0;
    for (const Item& item : items_[Row(control.bodies[0])]) {
      const int64_t more = item.control < 0 ? 1 : NodesUnrolled(item.control);
      if (more < 0) return -1;
      nodes += more;
    }
    const int64_t trips = control.trips.value;
    return trips > 0 && nodes <= kMostUnrolled / trips ? nodes * trips : -1;  // of none the node says what is written
  }

  // The names of nodes have the numbers of their rounds at the end.
  void Unroll(ControlId c, int64_t nodes, Model& to) {
    const ControlDecl& control = model_.controls[c];
    const std::string outer = round_;
    for (int64_t round = 1; round <= control.trips.value; ++round) {
      round_ = " (" + std::to_string(round) + ")" + outer;
      AddItems(items_[Row(control.bodies[0])], to);
    }
    round_ = outer;
    if (!outer.empty()) return;  // told with the one around it
    unrolled_.push_back("construct " + Quoted(control.name) + " is unrolled: " + std::to_string(control.trips.value) +
                        " rounds, " + std::to_string(nodes) + " nodes in all");
  }

  void AddNode(DeclId n, Model& to) {
    NodeDecl& node = to.nodes.emplace_back(model_.nodes[n]);
    if (!round_.empty()) {
      const SourceLine& source = node.name.source();
      node.name = Name(std::string(node.name.view()) + round_, source.file, source.line);
    }
    for (const AccessDecl& access : node.accesses) {
      const BufferId base = summaries_.Base(access.buffer);
      if (base >= 0 && access.mode != AccessMode::kRead) Of(base).has_contents = true;
    }
    for (AccessDecl& access : node.accesses) access.buffer = BufferIn(access.buffer, to);
    for (InPlaceDecl& pair : node.in_place) {
      pair.in = BufferIn(pair.in, to);
      pair.out = BufferIn(pair.out, to);
    }
    std::erase_if(node.after, [&](DeclId other) { return !IsBeside(n, other); });
    for (DeclId& other : node.after) {
      if (other >= 0 && other < model_.nodes.count()) other = node_[other];
    }
    node_[n] = to.nodes.next() - 1;
  }

  bool IsBeside(DeclId n, DeclId other) {
    if (other < 0 || other >= model_.nodes.count() || model_.nodes[other].body == model_.nodes[n].body) return true;
    AddMistake(n, "After names node " + Quoted(model_.nodes[other].name) +
                      ", which is in another body; a construct is one node to what is outside of it; let both access "
                      "one buffer, or declare them in one body");
    return false;
  }

  void AddMistake(DeclId n, const std::string& text) {
    mistakes_.push_back(
        {absl::StatusCode::kInvalidArgument, Prefix(model_, "node", model_.nodes[n].name) + ": " + text});
  }

  // A buffer that is declared in a body is known in it and in the bodies within.
  void CheckScopes(DeclId n) {
    for (const AccessDecl& access : model_.nodes[n].accesses) {
      if (access.buffer < 0 || access.buffer >= model_.buffers.count() || access.graph != model_.serial) continue;
      const BufferDecl& buffer = model_.buffers[access.buffer];
      BodyId around = model_.nodes[n].body;
      while (around >= 0 && around != buffer.body) around = model_.controls[model_.bodies[around].of].in;
      if (around == buffer.body) continue;
      AddMistake(n, "accesses " + Quoted(buffer.name) + ", which is declared in the body of construct " +
                        Quoted(model_.controls[model_.bodies[buffer.body].of].name) +
                        "; a body may not run, so nothing outside knows its buffers; declare it before the construct");
    }
  }

  // The buffer of the model that is made which stands for `b`; it gets one if it has none. Handles of nothing stay so.
  BufferId BufferIn(BufferId b, Model& to) {
    if (b < 0 || b >= model_.buffers.count()) return b;
    if (Of(b).made >= 0) return Of(b).made;
    BufferDecl decl = model_.buffers[b];
    if (decl.is_alias && decl.alias_graph == model_.serial) decl.alias_of = BufferIn(decl.alias_of, to);
    to.buffers.push_back(std::move(decl));
    return Of(b).made = to.buffers.next() - 1;
  }

  FoldedControl AddControl(ControlId c, Model& to) {
    const ControlDecl& control = model_.controls[c];
    const BufferUses uses = summaries_.OfControl(control);
    const bool on_device = lowerings_.OnDevice(c);
    NodeDecl node(control.name, on_device ? NodeKind::kConditional : NodeKind::kControl);
    node.device = DeviceOf(control);
    node.runs = RunsOf(c);
    for (const BufferUse& use : uses) {
      const bool has = Of(use.buffer).has_contents;
      AccessMode mode = has ? AccessMode::kReadWrite : AccessMode::kWriteSome;
      if (!use.written) mode = AccessMode::kRead;
      if (use.whole && !use.exposed) mode = AccessMode::kWrite;
      node.accesses.push_back({BufferIn(use.buffer, to), model_.serial, mode});
      if (use.written) Of(use.buffer).has_contents = true;
    }
    FoldedControl folded;
    folded.id = c;
    folded.name = control.name;
    folded.kind = control.kind;
    folded.on_device = on_device;
    folded.in_region = lowerings_.InRegion(c);
    folded.device = node.device;
    folded.has_loop = HasLoop(c);
    folded.tells = control.tells;
    folded.trips = control.trips;
    folded.max = control.max;
    if (on_device) AddConditional(std::move(node), folded.has_loop && !folded.in_region, to);
    else AddBetweenGates(std::move(node), to);
    if (control.condition >= 0) folded.condition.push_back(PartOf(control, on_device, BodyId(), uses));
    for (const BodyId body : control.bodies) folded.bodies.push_back(PartOf(control, on_device, body, uses));
    return folded;
  }

  static constexpr double kMostRuns = 1e12;  // more make no difference, and are no number at last

  // About how many nodes run in it; of several bodies the longest does.
  double RunsOf(ControlId c) const {
    const ControlDecl& control = model_.controls[c];
    double longest = 0;
    for (const BodyId body : control.bodies) {
      double nodes = 0;
      for (const Item& item : items_[Row(body)]) nodes += item.control < 0 ? 1 : RunsOf(item.control);
      longest = std::max(longest, nodes);
    }
    if (control.kind == ControlKind::kIf || control.kind == ControlKind::kSwitch) return longest;
    int64_t times = control.expected;
    if (control.kind == ControlKind::kWhile) times = std::min(times, control.max);
    else if (control.condition < 0 && control.trips.is_constant()) times = control.trips.value;
    return std::min(longest * static_cast<double>(std::max<int64_t>(times, 0)), kMostRuns);
  }

  bool HasLoop(ControlId c) const {
    const ControlDecl& control = model_.controls[c];
    if (control.kind == ControlKind::kWhile || control.kind == ControlKind::kRepeat) return true;
    for (const BodyId body : control.bodies) {
      for (const Item& item : items_[Row(body)]) {
        if (item.control >= 0 && HasLoop(item.control)) return true;
      }
    }
    return false;
  }

  // `in_turn`: it has a loop of conditional nodes.
  void AddConditional(NodeDecl node, bool in_turn, Model& to) {
    if (in_turn && last_loop_ >= 0) node.after.push_back(last_loop_);
    if (in_turn) last_loop_ = to.nodes.next();
    to.nodes.push_back(std::move(node));
  }

  // Memory that is no slot's own is ordered by lanes, which a construct has none of: gates before and after it have.
  void AddBetweenGates(NodeDecl node, Model& to) const {
    std::vector<AccessDecl> launch;
    for (const AccessDecl& access : node.accesses) {
      const BufferDecl& decl = to.buffers[access.buffer];
      if (decl.role == BufferRole::kState || (IsBound(decl.role) && decl.where == Where::kDevice)) {
        launch.push_back(access);
      }
    }
    const auto gate = [&](const char* what, DeclId after) {
      NodeDecl decl(Name(std::string(node.name.view()) + what, node.name.source().file, node.name.source().line),
                    NodeKind::kGate);
      decl.device = node.device;
      decl.accesses = launch;
      if (after >= 0) decl.after.push_back(after);
      return decl;
    };
    if (launch.empty()) return to.nodes.push_back(std::move(node));
    const DeclId at = to.nodes.next() + 1;
    NodeDecl begin = gate(" (begin)", {}), end = gate(" (end)", at);
    node.after.push_back(at - 1);
    to.nodes.push_back(std::move(begin));
    to.nodes.push_back(std::move(node));
    to.nodes.push_back(std::move(end));
  }

  // The first device that a node in it is pinned to.
  int32_t DeviceOf(const ControlDecl& control) const {
    if (control.condition >= 0 && model_.nodes[control.condition].device >= 0) {
      return model_.nodes[control.condition].device;
    }
    for (const BodyId body : control.bodies) {
      for (const Item& item : items_[Row(body)]) {
        const int32_t device =
            item.node >= 0 ? model_.nodes[item.node].device : DeviceOf(model_.controls[item.control]);
        if (device >= 0) return device;
      }
    }
    return -1;
  }

  // The condition of a construct, or a body of it.
  FoldedPart PartOf(const ControlDecl& control, bool on_device, BodyId body, const BufferUses& uses) {
    const Scope scope(*this);
    const bool condition = body < 0 || control.kind == ControlKind::kWhile;
    const int32_t device = DeviceOf(control);
    Model made(model_.name);
    made.serial = model_.serial;
    made.params = model_.params;
    made.nodes.reserve((body >= 0 ? items_[Row(body)].size() : 0) + (condition ? 1 : 0));
    const BufferUses used = summaries_.OfParts(control, condition, {&body, body >= 0 ? size_t{1} : size_t{0}});
    made.buffers.reserve(used.size() + 1);
    FoldedPart part;
    part.bound.reserve(used.size());
    for (const BufferUse& use : used) {
      const BufferId inner = BufferIn(use.buffer, made);
      Of(use.buffer).has_contents = true;
      BufferDecl& decl = made.buffers[inner];
      decl.role = use.written ? BufferRole::kInOut : BufferRole::kInput;
      decl.count = {};  // what a body leaves unwritten may have been written by another iteration
      decl.where = Where::kDevice;
      decl.device = device;
      decl.state = nullptr;
      decl.keys = 0;
      const auto outer = std::lower_bound(uses.begin(), uses.end(), use, ByBuffer);
      part.bound.push_back({inner, static_cast<int32_t>(outer - uses.begin())});
    }
    if (body >= 0) part.folded.controls = AddItems(items_[Row(body)], made);
    if (condition) {
      part.word = BufferIn(control.word, made);
      if (!on_device) {
        made.buffers[part.word].role = BufferRole::kOutput;
        made.buffers[part.word].where = Where::kSlot;
      }
      AddNode(control.condition, made);
      // CUDA takes longer to see the end of an iteration the more nodes end it.
      std::vector<DeclId>& after = made.nodes.back().after;
      after.clear();
      for (DeclId n = 0; on_device && n + 1 < made.nodes.count(); ++n) after.push_back(n);
    }
    part.folded.model = Keep(std::move(made));
    return part;
  }

  const std::shared_ptr<const Model> kept_;
  const Model& model_;
  const Lowerings& lowerings_;
  const std::vector<std::vector<Item>> items_;
  const Summaries summaries_;
  Table<DeclId, DeclId> node_;  // of the original: that of the model it has come to
  Table<BufferId, Seen> seen_;
  std::vector<Undo> undo_;  // what `seen_` was in the models around
  int32_t scope_ = 0, scopes_ = 0;
  DeclId last_loop_;  // the node of the last loop on a device in the model that is made; none: there is none
  std::vector<Mistake> mistakes_;
  std::string round_;  // of the unrolled constructs around what is added
  std::vector<std::string> unrolled_;
};

}  // namespace

Folded Fold(std::shared_ptr<const Model> model, const Lowerings& lowerings) {
  return Folder(std::move(model), lowerings).Outside();
}

}  // namespace penstock::graph
