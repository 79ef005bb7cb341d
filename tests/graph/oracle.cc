#include "tests/graph/oracle.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace penstock::graph {
namespace {

std::string Label(const Plan& plan, int32_t n) {
  return std::to_string(n) + " '" + plan.nodes[static_cast<size_t>(n)].name + "'";
}

bool IsStage(const PlanNode& node) { return node.kind == PlanKind::kStageIn || node.kind == PlanKind::kStageOut; }

// What a node does to instances, copies included.
std::vector<Use> UsesOf(const PlanNode& node) {
  if (node.decl >= 0) return node.uses;
  return {{node.src, AccessMode::kRead}, {node.dst, AccessMode::kWrite}};
}

bool Conflict(AccessMode a, AccessMode b) { return a != AccessMode::kRead || b != AccessMode::kRead; }

}  // namespace

int32_t Execution::Add(int32_t node) {
  preds_.emplace_back();
  node_of_.push_back(node);
  const int32_t op = operations() - 1;
  if (node >= 0) op_of_node_[static_cast<size_t>(node)] = op;
  return op;
}

void Execution::AddCommand(const Command& c) {
  const int32_t op = Add(c.op == Command::Op::kNode ? c.arg : -1);
  auto& preds = preds_[static_cast<size_t>(op)];
  int32_t& tail = lane_tail_[static_cast<size_t>(c.lane)];
  if (tail >= 0) preds.push_back(tail);
  tail = op;
  if (c.op == Command::Op::kWait) {
    const int32_t record = record_of_[static_cast<size_t>(c.arg)];
    if (record < 0) problem_ = "event " + std::to_string(c.arg) + " is waited for before it is recorded";
    if (record >= 0) preds.push_back(record);
  }
  if (c.op == Command::Op::kRecord) record_of_[static_cast<size_t>(c.arg)] = op;
}

Execution::Execution(const Plan& plan, int32_t commands, int32_t finish)
    : plan_(plan),
      op_of_node_(plan.nodes.size(), -1),
      record_of_(plan.events.size(), -1),
      lane_tail_(plan.lanes.size(), -1) {
  for (const HostStep& step : plan.host_steps) host_op_.push_back(Add(step.node));
  std::vector<int32_t> recorded_in(plan.events.size(), -1);
  int32_t last_segment = -1;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    const int32_t submit = Add(-1);
    for (const int32_t h : segment.after_hosts)
      preds_[static_cast<size_t>(submit)].push_back(host_op_[static_cast<size_t>(h)]);
    if (last_segment >= 0) preds_[static_cast<size_t>(submit)].push_back(last_segment);
    last_segment = submit;
    for (int32_t c = segment.begin; c < segment.end && (commands < 0 || c < commands); ++c) {
      const Command& command = plan.commands[static_cast<size_t>(c)];
      AddCommand(command);
      preds_.back().push_back(submit);
      if (command.op == Command::Op::kRecord) recorded_in[static_cast<size_t>(command.arg)] = static_cast<int32_t>(s);
    }
  }
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    const HostStep& step = plan.host_steps[h];
    auto& preds = preds_[static_cast<size_t>(host_op_[h])];
    for (const int32_t other : step.after_hosts) preds.push_back(host_op_[static_cast<size_t>(other)]);
    for (const int32_t e : step.after_events) {
      const int32_t record = record_of_[static_cast<size_t>(e)];
      if (commands >= 0 && record < 0) continue;
      if (record < 0 || recorded_in[static_cast<size_t>(e)] > step.after_segment) {
        problem_ = "host step " + std::to_string(h) + " asks for event " + std::to_string(e) + " before it is recorded";
        return;
      }
      preds.push_back(record);
    }
  }
  if (finish >= 0) {
    for (int32_t c = finish; c < plan.finish_end; ++c) AddCommand(plan.commands[static_cast<size_t>(c)]);
  }
  if (problem_.empty()) FindReach();
}

void Execution::FindReach() {
  const auto count = static_cast<size_t>(operations());
  reach_.assign(count, std::vector<uint64_t>(count / 64 + 1));
  std::vector<char> state(count);  // 0 new, 1 open, 2 done
  std::vector<std::pair<int32_t, size_t>> stack;
  for (int32_t root = 0; root < operations(); ++root) {
    if (state[static_cast<size_t>(root)] == 0) stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      const auto v = static_cast<size_t>(op);
      state[v] = 1;
      if (next < preds_[v].size()) {
        const int32_t p = preds_[v][next++];
        if (state[static_cast<size_t>(p)] == 1) {
          problem_ = "the run waits for itself";
          return;
        }
        if (state[static_cast<size_t>(p)] == 0) stack.push_back({p, 0});
        continue;
      }
      for (const int32_t p : preds_[v]) {
        for (size_t w = 0; w < reach_[v].size(); ++w) reach_[v][w] |= reach_[static_cast<size_t>(p)][w];
        reach_[v][static_cast<size_t>(p) / 64] |= uint64_t{1} << (static_cast<size_t>(p) % 64);
      }
      state[v] = 2;
      stack.pop_back();
    }
  }
}

bool Execution::Before(int32_t a, int32_t b) const {
  return Reaches(op_of_node_[static_cast<size_t>(a)], op_of_node_[static_cast<size_t>(b)]);
}

bool Execution::BeforeEvent(int32_t a, int32_t event) const {
  const int32_t op = op_of_node_[static_cast<size_t>(a)];
  return op < 0 || (record_of_[static_cast<size_t>(event)] >= 0 && Reaches(op, record_of_[static_cast<size_t>(event)]));
}

namespace {

// Declared nodes that must run in order.
std::vector<std::pair<int32_t, int32_t>> DeclaredPairs(const Model& model) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const auto count = static_cast<int32_t>(model.nodes.size());
  for (int32_t j = 0; j < count; ++j) {
    for (const int32_t other : model.nodes[static_cast<size_t>(j)].after) pairs.push_back({other, j});
    for (int32_t i = 0; i < j; ++i) {
      bool conflict = false;
      for (const AccessDecl& a : model.nodes[static_cast<size_t>(i)].accesses) {
        for (const AccessDecl& b : model.nodes[static_cast<size_t>(j)].accesses) {
          conflict = conflict || (a.buffer == b.buffer && Conflict(a.mode, b.mode));
        }
      }
      if (conflict) pairs.push_back({i, j});
    }
  }
  return pairs;
}

bool MayShareBytes(const Instance& a, const Instance& b) {
  if (&a == &b) return true;
  if (a.buffer == b.buffer && ((a.stages && b.space == Space::kBound) || (b.stages && a.space == Space::kBound))) {
    return true;
  }
  return a.space == b.space && a.space != Space::kBound && a.device == b.device && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes && a.bytes > 0 && b.bytes > 0;
}

}  // namespace

std::string CheckOrder(const Model& model, const Plan& plan) {
  const Execution run(plan);
  if (!run.problem().empty()) return run.problem();
  std::vector<int32_t> node_of(model.nodes.size(), -1);
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    if (plan.nodes[n].decl >= 0) node_of[static_cast<size_t>(plan.nodes[n].decl)] = static_cast<int32_t>(n);
  }
  for (const auto& [i, j] : DeclaredPairs(model)) {
    const int32_t a = node_of[static_cast<size_t>(i)], b = node_of[static_cast<size_t>(j)];
    if (!run.Before(a, b)) return "node " + Label(plan, a) + " is not before " + Label(plan, b) + " as declared";
  }
  for (int32_t b = 0; b < static_cast<int32_t>(plan.nodes.size()); ++b) {
    for (int32_t a = 0; a < b; ++a) {
      const PlanNode &x = plan.nodes[static_cast<size_t>(a)], &y = plan.nodes[static_cast<size_t>(b)];
      for (const Use& u : UsesOf(x)) {
        for (const Use& v : UsesOf(y)) {
          const Instance& p = plan.instances[static_cast<size_t>(u.instance)];
          const Instance& q = plan.instances[static_cast<size_t>(v.instance)];
          const bool twins = &p != &q && p.buffer == q.buffer && p.space != q.space;
          if (!MayShareBytes(p, q) || (twins && (IsStage(x) || IsStage(y)))) continue;
          // Different tenants of the same bytes conflict even when both read.
          const bool tenants = &p != &q && !twins;
          if (!tenants && !Conflict(u.mode, v.mode)) continue;
          if (!run.Before(a, b) && !run.Before(b, a)) {
            return "nodes " + Label(plan, a) + " and " + Label(plan, b) + " touch the same bytes in no order";
          }
        }
      }
    }
  }
  return "";
}

namespace {

constexpr int64_t kCell = 256;
using Cells = std::vector<uint64_t>;

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

uint64_t Digest(const uint64_t* begin, int64_t count) {
  uint64_t h = 17;
  for (int64_t i = 0; i < count; ++i) h = Mix(h, begin[i]);
  return h;
}

int64_t MaxBytes(const Model& model, int32_t buffer) {
  const BufferDecl& decl = model.buffers[static_cast<size_t>(buffer)];
  int64_t bytes = decl.type.size;
  for (int i = 0; i < decl.extent.rank; ++i) {
    const Dim& dim = decl.extent.dims[static_cast<size_t>(i)];
    bytes *= dim.is_constant() ? dim.value : model.params[static_cast<size_t>(dim.param)].max;
  }
  return bytes;
}

int64_t CellsOf(const Model& model, int32_t buffer) { return (MaxBytes(model, buffer) + kCell - 1) / kCell; }

// What a declared node makes of what it reads.
uint64_t Result(const NodeDecl& node, int32_t index, const std::vector<uint64_t>& read) {
  if (node.kind == NodeKind::kCopy) return read[0];
  uint64_t h = Mix(1000, static_cast<uint64_t>(index));
  for (const uint64_t r : read) h = Mix(h, r);
  return h;
}

// Contents of buffers, each as one number a cell; cell c of a written buffer gets Mix(result, c), so copies between
// buffers must move cells.
struct Reference {
  std::vector<std::vector<uint64_t>> read;   // (node, access): digest of what it reads; 0 for kWrite
  std::vector<Cells> contents;               // buffers at the end
};

void Write(const NodeDecl& node, int32_t index, const std::vector<uint64_t>& read, const uint64_t* source, uint64_t* to,
           int64_t cells, size_t access) {
  const uint64_t result = Mix(Result(node, index, read), access);
  for (int64_t c = 0; c < cells; ++c) {
    to[c] = node.kind == NodeKind::kCopy ? source[c] : Mix(result, static_cast<uint64_t>(c));
  }
}

uint64_t Initial(int32_t buffer, int64_t cell) {
  return Mix(Mix(5, static_cast<uint64_t>(buffer)), static_cast<uint64_t>(cell));
}

Reference RunInSequence(const Model& model) {
  Reference ref;
  for (int32_t b = 0; b < static_cast<int32_t>(model.buffers.size()); ++b) {
    ref.contents.emplace_back(CellsOf(model, b));
    for (size_t c = 0; c < ref.contents.back().size(); ++c)
      ref.contents.back()[c] = Initial(b, static_cast<int64_t>(c));
  }
  for (int32_t n = 0; n < static_cast<int32_t>(model.nodes.size()); ++n) {
    const NodeDecl& node = model.nodes[static_cast<size_t>(n)];
    std::vector<uint64_t> read;
    const uint64_t* source = nullptr;
    for (const AccessDecl& a : node.accesses) {
      const Cells& cells = ref.contents[static_cast<size_t>(a.buffer)];
      read.push_back(a.mode == AccessMode::kWrite ? 0 : Digest(cells.data(), static_cast<int64_t>(cells.size())));
      if (a.mode == AccessMode::kRead) source = cells.data();
    }
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      if (node.accesses[i].mode == AccessMode::kRead) continue;
      Cells& cells = ref.contents[static_cast<size_t>(node.accesses[i].buffer)];
      Write(node, n, read, source, cells.data(), static_cast<int64_t>(cells.size()), i);
    }
    ref.read.push_back(std::move(read));
  }
  return ref;
}

// One run in simulated memory. An operation that is a node starts and ends at different times: at its start it reads,
// and spoils what it will write; at its end it checks that what it only reads has not changed, and writes.
class Interpreter {
 public:
  Interpreter(const Model& model, const Plan& plan, uint64_t seed)
      : model_(model), plan_(plan), run_(plan), ref_(RunInSequence(model)), random_(seed) {}

  std::string Run() {
    if (!run_.problem().empty()) return run_.problem();
    LayOut();
    const auto count = static_cast<size_t>(run_.operations());
    std::vector<int32_t> missing(count);
    std::vector<std::vector<int32_t>> succs(count);
    std::vector<int32_t> ready, running;
    for (int32_t op = 0; op < run_.operations(); ++op) {
      missing[static_cast<size_t>(op)] = static_cast<int32_t>(run_.preds(op).size());
      for (const int32_t p : run_.preds(op)) succs[static_cast<size_t>(p)].push_back(op);
      if (run_.preds(op).empty()) ready.push_back(op);
    }
    while ((!ready.empty() || !running.empty()) && problem_.empty()) {
      const size_t choice = random_() % (ready.size() + running.size());
      if (choice < ready.size()) {
        running.push_back(Take(ready, choice));
        Start(run_.node_of(running.back()));
      } else {
        const int32_t op = Take(running, choice - ready.size());
        End(run_.node_of(op));
        for (const int32_t s : succs[static_cast<size_t>(op)]) {
          if (--missing[static_cast<size_t>(s)] == 0) ready.push_back(s);
        }
      }
    }
    if (problem_.empty()) CheckOutputs();
    return problem_;
  }

 private:
  struct Memory {
    Cells* cells = nullptr;
    int64_t first = 0, count = 0;
    uint64_t* data() const { return cells->data() + first; }
  };

  static int32_t Take(std::vector<int32_t>& from, size_t index) {
    std::swap(from[index], from.back());
    const int32_t value = from.back();
    from.pop_back();
    return value;
  }

  void LayOut() {
    bound_.resize(model_.buffers.size());
    for (int32_t b = 0; b < static_cast<int32_t>(model_.buffers.size()); ++b) {
      Cells& cells = bound_[static_cast<size_t>(b)];
      cells.resize(static_cast<size_t>(CellsOf(model_, b)));
      for (size_t c = 0; c < cells.size(); ++c) cells[c] = Initial(b, static_cast<int64_t>(c));
      if (model_.buffers[static_cast<size_t>(b)].role == BufferRole::kOutput) {
        std::fill(cells.begin(), cells.end(), 0xbad);
      }
    }
    for (const Arena& arena : plan_.arenas)
      arenas_[arena.device].assign(static_cast<size_t>(arena.bytes / kCell), 0xdead);
    for (size_t b = 0; b < model_.buffers.size(); ++b) pinned_by_user_.push_back(random_() % 2 == 0);
    for (const Instance& i : plan_.instances) {
      const bool in_place = i.space == Space::kBound || (i.stages && pinned_by_user_[static_cast<size_t>(i.buffer)]);
      Memory memory;
      memory.cells = in_place ? &bound_[static_cast<size_t>(i.buffer)] : &arenas_[i.device];
      memory.first = in_place ? 0 : i.offset / kCell;
      memory.count = CellsOf(model_, i.buffer);
      memory_.push_back(memory);
      if (memory.first + memory.count > static_cast<int64_t>(memory.cells->size()))
        problem_ = "an instance lies outside its arena";
    }
  }

  bool Skipped(const PlanNode& node) const {
    return IsStage(node) && pinned_by_user_[static_cast<size_t>(plan_.instances[static_cast<size_t>(node.src)].buffer)];
  }
  const Memory& At(int32_t instance) const { return memory_[static_cast<size_t>(instance)]; }

  void Start(int32_t n) {
    if (n < 0) return;
    const PlanNode& node = plan_.nodes[static_cast<size_t>(n)];
    if (Skipped(node)) return;
    const std::vector<Use> uses = UsesOf(node);
    std::vector<uint64_t>& read = read_[n];
    for (size_t i = 0; i < uses.size(); ++i) {
      const Memory& m = At(uses[i].instance);
      read.push_back(uses[i].mode == AccessMode::kWrite ? 0 : Digest(m.data(), m.count));
      if (uses[i].mode == AccessMode::kRead) source_[n].assign(m.data(), m.data() + m.count);
      if (node.decl >= 0 && read[i] != ref_.read[static_cast<size_t>(node.decl)][i]) {
        problem_ = "node " + Label(plan_, n) + " reads something else in access " + std::to_string(i);
      }
    }
    for (const Use& use : uses) {
      if (use.mode == AccessMode::kRead) continue;
      const Memory& m = At(use.instance);
      for (int64_t c = 0; c < m.count; ++c) m.data()[c] = Mix(0xfeed, static_cast<uint64_t>(n));
    }
  }

  void End(int32_t n) {
    if (n < 0) return;
    const PlanNode& node = plan_.nodes[static_cast<size_t>(n)];
    if (Skipped(node)) return;
    const std::vector<Use> uses = UsesOf(node);
    CheckUnchanged(n, uses);
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::kRead) continue;
      const Memory& m = At(uses[i].instance);
      if (node.decl < 0) {
        std::copy(source_[n].begin(), source_[n].end(), m.data());
      } else {
        Write(model_.nodes[static_cast<size_t>(node.decl)], node.decl, read_[n], source_[n].data(), m.data(), m.count,
              i);
      }
    }
  }

  void CheckUnchanged(int32_t n, const std::vector<Use>& uses) {
    for (size_t i = 0; i < uses.size(); ++i) {
      const Memory& m = At(uses[i].instance);
      bool own = false;  // written by the node itself
      for (const Use& other : uses)
        own = own || (other.instance == uses[i].instance && other.mode != AccessMode::kRead);
      if (own) {
        for (int64_t c = 0; c < m.count; ++c) {
          if (m.data()[c] != Mix(0xfeed, static_cast<uint64_t>(n))) {
            problem_ = "somebody writes what node " + Label(plan_, n) + " is writing";
          }
        }
      } else if (Digest(m.data(), m.count) != read_[n][i]) {
        problem_ = "somebody writes what node " + Label(plan_, n) + " is reading";
      }
    }
  }

  void CheckOutputs() {
    for (size_t b = 0; b < bound_.size(); ++b) {
      if (model_.buffers[b].role == BufferRole::kInternal || bound_[b] == ref_.contents[b]) continue;
      problem_ = "buffer '" + std::string(model_.buffers[b].name.view()) + "' has other contents at the end";
    }
  }

  const Model& model_;
  const Plan& plan_;
  const Execution run_;
  const Reference ref_;
  std::mt19937_64 random_;
  std::string problem_;
  std::vector<Cells> bound_;
  std::map<int32_t, Cells> arenas_;          // by device, -1 pinned
  std::vector<bool> pinned_by_user_;
  std::vector<Memory> memory_;               // of each instance
  std::map<int32_t, std::vector<uint64_t>> read_;
  std::map<int32_t, Cells> source_;
};

}  // namespace

std::string Interpret(const Model& model, const Plan& plan, uint64_t seed) {
  return Interpreter(model, plan, seed).Run();
}

std::string CheckFinish(const Plan& plan) {
  const int32_t all = plan.finish_begin;
  std::vector<std::pair<int32_t, int32_t>> runs = {{all, plan.finish_short_begin}};
  for (int32_t cut = 0; cut <= all; ++cut) runs.push_back({cut, plan.finish_begin});
  for (const auto& [cut, begin] : runs) {
    const Execution run(plan, cut, begin);
    if (!run.problem().empty()) return run.problem();
    for (int32_t n = 0; n < static_cast<int32_t>(plan.nodes.size()); ++n) {
      if (plan.nodes[static_cast<size_t>(n)].lane < 0) continue;
      bool done = false;
      for (const int32_t e : plan.done_events) {
        done = done || (plan.events[static_cast<size_t>(e)].device == plan.nodes[static_cast<size_t>(n)].device &&
                        run.BeforeEvent(n, e));
      }
      if (!done) return "after " + std::to_string(cut) + " commands the done event does not wait for " + Label(plan, n);
    }
  }
  return "";
}

std::string CheckShape(const Model& model, const Plan& plan) {
  std::vector<int> submitted(plan.nodes.size());
  int32_t at = 0;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (segment.begin != at || segment.end <= segment.begin) return "segments do not stand side by side";
    at = segment.end;
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const Command& command = plan.commands[static_cast<size_t>(c)];
      if (command.op == Command::Op::kRecord) {
        const PlanEvent& event = plan.events[static_cast<size_t>(command.arg)];
        if (event.device != plan.lanes[static_cast<size_t>(command.lane)].device) return "an event of another device";
      }
      if (command.op != Command::Op::kNode) continue;
      const PlanNode& node = plan.nodes[static_cast<size_t>(command.arg)];
      ++submitted[static_cast<size_t>(command.arg)];
      if (node.lane != command.lane || node.segment != static_cast<int32_t>(s)) return "a node on another lane";
      if (plan.lanes[static_cast<size_t>(node.lane)].device != node.device) return "a lane of another device";
    }
  }
  if (at != plan.finish_begin) return "finish commands do not follow the segments";
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(plan.host_steps[h].node)];
    ++submitted[static_cast<size_t>(plan.host_steps[h].node)];
    if (node.lane >= 0 || node.device >= 0 || !IsHostKind(node.kind) || node.segment != static_cast<int32_t>(h)) {
      return "a host step that is none";
    }
  }
  for (const int times : submitted) {
    if (times != 1) return "a node runs " + std::to_string(times) + " times";
  }
  std::set<int32_t> declared;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanNode& node = plan.nodes[n];
    if (node.decl >= 0) declared.insert(node.decl);
    for (const int32_t p : node.preds) {
      if (p < 0 || p >= static_cast<int32_t>(n)) return "nodes are not in topological order";
    }
    for (const Use& use : UsesOf(node)) {
      const Instance& instance = plan.instances[static_cast<size_t>(use.instance)];
      const bool device_side = instance.space == Space::kDevice;
      const bool copy = node.src >= 0;
      if (!copy && device_side != (node.device >= 0))
        return "node " + Label(plan, static_cast<int32_t>(n)) + " cannot reach its data";
      if (!copy && device_side && instance.device != node.device) return "data on another device";
    }
  }
  if (declared.size() != model.nodes.size()) return "a declared node is missing";
  for (const Instance& i : plan.instances) {
    if (i.bytes != MaxBytes(model, i.buffer)) return "an instance has another size than its buffer";
    if (i.space == Space::kBound) continue;
    bool inside = false;
    for (const Arena& arena : plan.arenas) {
      inside = inside ||
               (arena.device == i.device && i.offset >= 0 && i.offset % 256 == 0 && i.offset + i.bytes <= arena.bytes);
    }
    if (!inside) return "an instance lies outside its arena";
  }
  return "";
}

Redundant CountRedundant(const Model& model, const Plan& plan) {
  Redundant count;
  const auto noticed = [&](const Plan& changed) { return !CheckOrder(model, changed).empty(); };
  for (int32_t c = 0; c < plan.finish_begin; ++c) {
    if (plan.commands[static_cast<size_t>(c)].op != Command::Op::kWait) continue;
    Plan changed = plan;  // the wait becomes a second record of an event of its own: nothing waits for that
    changed.events.push_back(plan.events[0]);
    changed.commands[static_cast<size_t>(c)].op = Command::Op::kRecord;
    changed.commands[static_cast<size_t>(c)].arg = static_cast<int32_t>(changed.events.size()) - 1;
    ++count.tried_events;
    count.events += !noticed(changed);
  }
  const auto without_each = [&](auto list_of, size_t lists, int& tried, int& redundant) {
    Plan whole = plan;
    for (size_t i = 0; i < lists; ++i) {
      for (size_t k = 0; k < list_of(whole, i).size(); ++k) {
        Plan changed = plan;
        std::vector<int32_t>& list = list_of(changed, i);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
        ++tried;
        redundant += !noticed(changed);
      }
    }
  };
  without_each([](Plan& p, size_t i) -> auto& { return p.host_steps[i].after_events; }, plan.host_steps.size(),
               count.tried_events, count.events);
  without_each([](Plan& p, size_t i) -> auto& { return p.host_steps[i].after_hosts; }, plan.host_steps.size(),
               count.tried_hosts, count.hosts);
  without_each([](Plan& p, size_t i) -> auto& { return p.segments[i].after_hosts; }, plan.segments.size(),
               count.tried_hosts, count.hosts);
  return count;
}

}  // namespace penstock::graph
