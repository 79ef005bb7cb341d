#include "tests/graph/oracle/simulation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "tests/graph/oracle/execution.h"
#include "tests/graph/oracle/plan_uses.h"
#include "tests/graph/oracle/reference.h"
#include "tests/graph/oracle/schedule.h"

namespace penstock::graph {
namespace {

// A node starts and ends at different times: at its start it reads, and spoils what it will write; at its end it checks
// that what it only reads has not changed, and writes.
class Simulation {
 public:
  Simulation(const Model& model, const Plan& plan, uint64_t seed)
      : model_(model),
        plan_(plan),
        random_(seed),
        declared_(RunAtomsOf(model, ParamValues(model, seed))),
        ref_(RunInSequence(model, declared_)),
        running_(plan.nodes.size()) {}

  std::string Run() {
    const Execution run(plan_);
    if (!run.problem().empty()) return run.problem();
    LayOut();
    for (const Moment& moment : RandomSchedule(run, random_)) {
      if (!problem_.empty()) break;
      const PlanNode& node = plan_.nodes[moment.node];
      if (Skipped(node)) continue;
      moment.ends ? End(moment.node, node) : Start(moment.node, node);
    }
    if (problem_.empty()) CheckOutputs();
    return problem_;
  }

 private:
  struct Running {
    std::vector<Contents> loaded;  // of each use; empty where it reads nothing
    std::vector<uint64_t> read;  // digests of these
  };

  void LayOut() {
    for (int32_t b = 0; b < static_cast<int32_t>(model_.buffers.size()); ++b) {
      bound_.push_back(InitialContents(model_, b));
      pinned_by_user_.push_back(random_() % 2 == 0);
      whole_.emplace_back(bound_.back().size());
      std::iota(whole_.back().begin(), whole_.back().end(), 0);
    }
    for (const PlanNode& node : plan_.nodes) {
      part_atoms_.emplace_back();
      if (node.part < 0) continue;
      part_atoms_.back() = AtomsOfPart(model_, plan_.instances[node.src].buffer, plan_.parts[node.part]);
    }
    for (const Arena& arena : plan_.arenas) {
      arenas_[arena.device].assign(static_cast<size_t>(arena.bytes / kAtomBytes), 0xdead);
    }
    for (const Instance& i : plan_.instances) {
      const auto b = static_cast<size_t>(i.buffer);
      const bool in_place = !InArena(i.space) || i.leased || (i.stages && pinned_by_user_[b]);
      Contents& memory = in_place ? bound_[b] : arenas_[i.device];
      const auto first = in_place ? 0 : static_cast<size_t>(i.offset / kAtomBytes);
      if (first + whole_[b].size() > memory.size()) problem_ = "an instance lies outside its arena";
      memory_.push_back(memory.data() + first);
    }
  }

  bool Skipped(const PlanNode& node) const {
    const int32_t buffer = DecidingBuffer(plan_, node);
    return buffer >= 0 && pinned_by_user_[buffer] != (node.when == When::kIfPinned);
  }
  static uint64_t Spoilt(int32_t n) { return Mix(0xfeed, static_cast<uint64_t>(n)); }

  // What use `i` of a node touches: inserted copies all of a buffer or a part, declared nodes and both forms of Copy
  // nodes their boxes.
  Reach At(const PlanNode& node, size_t i, int32_t instance) const {
    const auto b = static_cast<size_t>(plan_.instances[instance].buffer);
    if (node.decl < 0 && node.copy >= 0) {
      const AccessMode mode = i == 0 ? AccessMode::kRead : AccessMode::kWrite;
      return {memory_[instance], declared_[node.copy][AccessOfCopy(model_, node, mode)]};
    }
    if (node.decl < 0 && node.part >= 0) return {memory_[instance], AtomsOf(node)};
    return {memory_[instance], node.decl < 0 ? whole_[b] : declared_[node.decl][i]};
  }

  const std::vector<int32_t>& AtomsOf(const PlanNode& copy) const {
    return part_atoms_.at(static_cast<size_t>(&copy - plan_.nodes.data()));
  }

  // Whether a node that writes in use `i` writes atom `k` of those it touches.
  bool Writes(const PlanNode& node, size_t i, size_t k) const {
    return node.decl < 0 || WritesAtom(model_, model_.nodes[node.decl].accesses[i], k);
  }

  void Start(int32_t n, const PlanNode& node) {
    const std::vector<Use> uses = UsesOf(node);
    Running& running = running_[n];
    for (size_t i = 0; i < uses.size(); ++i) {
      const bool reads = Reads(uses[i].mode);
      running.loaded.push_back(reads ? Load(At(node, i, uses[i].instance)) : Contents{});
      running.read.push_back(reads ? Digest(running.loaded.back()) : 0);
      if (node.decl >= 0 && running.read[i] != ref_.read[node.decl][i]) {
        problem_ = "node " + Label(plan_, n) + " reads something else in access " + std::to_string(i);
      }
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::kRead) continue;
      const Reach reach = At(node, i, uses[i].instance);
      for (size_t k = 0; k < reach.atoms.size(); ++k) {
        if (Writes(node, i, k)) reach[k] = Spoilt(n);
      }
    }
  }

  void End(int32_t n, const PlanNode& node) {
    const std::vector<Use> uses = UsesOf(node);
    CheckUnchanged(n, node, uses);
    const Running& running = running_[n];
    const Contents* source = nullptr;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::kRead) source = &running.loaded[i];
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::kRead) continue;
      const Reach reach = At(node, i, uses[i].instance);
      if (node.decl < 0) {
        for (size_t k = 0; k < reach.atoms.size(); ++k) reach[k] = (*source)[k];
      } else {
        Store(model_, reach, node.decl, i, running.read, source != nullptr ? *source : Contents{});
      }
    }
  }

  // Everything the node writes is still as it was spoilt, everything else as it was read.
  void CheckUnchanged(int32_t n, const PlanNode& node, const std::vector<Use>& uses) {
    std::vector<const uint64_t*> own;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode == AccessMode::kRead) continue;
      const Reach reach = At(node, i, uses[i].instance);
      for (size_t k = 0; k < reach.atoms.size(); ++k) {
        if (!Writes(node, i, k)) continue;
        own.push_back(&reach[k]);
        if (reach[k] != Spoilt(n)) problem_ = "somebody writes what node " + Label(plan_, n) + " is writing";
      }
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].mode != AccessMode::kRead) continue;
      const Reach reach = At(node, i, uses[i].instance);
      const Contents& before = running_[n].loaded[i];
      for (size_t k = 0; k < reach.atoms.size(); ++k) {
        if (reach[k] == before[k] || std::find(own.begin(), own.end(), &reach[k]) != own.end()) continue;
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
  std::mt19937_64 random_;
  const RunAtoms declared_;
  const Reference ref_;
  std::string problem_;
  std::vector<Contents> bound_;  // of each buffer
  std::vector<std::vector<int32_t>> whole_;  // of each buffer: all its atoms
  std::vector<std::vector<int32_t>> part_atoms_;  // of each node that copies a part
  std::map<int32_t, Contents> arenas_;  // by device, -1 pinned
  std::vector<bool> pinned_by_user_;  // of each buffer
  std::vector<uint64_t*> memory_;  // of each instance
  std::vector<Running> running_;  // of each node
};

}  // namespace

std::string Simulate(const Model& model, const Plan& plan, uint64_t seed) {
  return Simulation(model, plan, seed).Run();
}

}  // namespace penstock::graph
