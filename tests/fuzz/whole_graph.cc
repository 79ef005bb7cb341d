#include "tests/fuzz/whole_graph.h"

#include <algorithm>
#include <bitset>
#include <string>
#include <utility>

#include "tests/graph/oracle/atoms.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/reference.h"

namespace penstock::fuzz {
namespace {

using graph::Footprint;
using Atoms = std::bitset<Footprint::kMaxAtoms>;

// Of each buffer: it has memory that is accessed in parts or through an alias.
std::vector<bool> CutBuffers(const Model& model) {
  std::vector<bool> cut(model.buffers.size());
  for (const NodeDecl& node : model.nodes) {
    for (const AccessDecl& a : node.accesses) {
      const auto root = static_cast<size_t>(graph::RootOf(model, a.buffer));
      cut[root] = cut[root] || !a.box.whole() || model.buffers[static_cast<size_t>(a.buffer)].is_alias;
    }
  }
  return cut;
}

// What has been written of each buffer, node by node.
class DataJudge {
 public:
  DataJudge(const HostileGraph& hostile, const std::vector<int32_t>& sequence)
      : hostile_(hostile), model_(hostile.graph.model()), state_(model_.buffers.size()) {
    const std::vector<bool> cut = CutBuffers(model_);
    for (size_t b = 0; b < state_.size(); ++b) {
      const int64_t atoms = model_.buffers[b].is_alias ? 0 : graph::AtomCount(model_, static_cast<int32_t>(b));
      for (int64_t i = 0; i < (cut[b] ? atoms : 1); ++i) state_[b].all.set(static_cast<size_t>(i));
      const BufferRole role = model_.buffers[b].role;
      state_[b].told = role != BufferRole::kOutput && role != BufferRole::kInternal;
      if (atoms > 0 || model_.buffers[b].is_alias) continue;
      state_[b].told = true;  // whether no elements are data, nobody knows
      verdict_.sure = false;
    }
    const graph::Footprints footprints = graph::FootprintsOf(model_);
    for (const int32_t n : sequence) {
      const auto node = static_cast<size_t>(n);
      for (const Footprint& f : footprints[node]) Read(node, f);
      for (const Footprint& f : footprints[node]) Write(node, f);
    }
    CheckOutputs();
  }

  Verdict verdict() && { return std::move(verdict_); }

 private:
  struct State {
    Atoms all, written;
    bool told = false;  // or never to be
  };

  void Tell(const std::string& subject, const std::string& text) { verdict_.wrong.push_back({subject, text}); }
  std::string NodeName(size_t node) const {
    const std::string name(model_.nodes[node].name.view());
    return name[0] == 'n' && name.size() < 8 ? name : "";  // others may be shown in another way
  }

  void Read(size_t node, const Footprint& f) {
    State& state = state_[static_cast<size_t>(f.root)];
    if (f.mode == AccessMode::kWrite || state.told) return;
    const Atoms read = f.whole ? state.all : f.atoms;
    if ((read & ~state.written).none()) return;
    if (!f.always && (read & state.written).any()) {
      verdict_.sure = false;
      return;
    }
    state.told = true;
    Tell(NodeName(node), "before any node has written");
  }

  void Write(size_t node, const Footprint& f) {
    State& state = state_[static_cast<size_t>(f.root)];
    if (f.mode == AccessMode::kRead) return;
    if (model_.buffers[static_cast<size_t>(f.root)].role == BufferRole::kInput) {
      Tell(NodeName(node), "which is an Input");
    }
    if (model_.buffers[static_cast<size_t>(f.root)].role == BufferRole::kParam) {
      Tell(NodeName(node), "the value of a parameter");
    }
    state.written |= f.whole ? state.all : f.atoms;
  }

  void CheckOutputs() {
    for (size_t b = 0; b < state_.size(); ++b) {
      if (model_.buffers[b].role != BufferRole::kOutput || state_[b].told || state_[b].written.any()) continue;
      Tell(hostile_.buffers[b].name, "an Output that no node writes");
    }
  }

  const HostileGraph& hostile_;
  const Model& model_;
  std::vector<State> state_;  // of each buffer
  Verdict verdict_;
};

bool OrderIsMissing(const Model& model) {
  const graph::Paths paths = graph::PathsOf(model, graph::DeclaredPairs(model));
  for (const auto& [a, b] : graph::LoosePairs(model)) {
    if (!paths[static_cast<size_t>(a)][static_cast<size_t>(b)] &&
        !paths[static_cast<size_t>(b)][static_cast<size_t>(a)])
      return true;
  }
  return false;
}

}  // namespace

bool CanBeCut(const HostileGraph& hostile) {
  if (!hostile.known.empty()) return false;
  const Model& model = hostile.graph.model();
  const std::vector<bool> cut = CutBuffers(model);
  for (size_t b = 0; b < cut.size(); ++b) {
    const auto root = static_cast<size_t>(graph::RootOf(model, static_cast<int32_t>(b)));
    if (!cut[root]) continue;
    if (!hostile.small) return false;
    if (model.buffers[b].type.size % graph::kAtomBytes != 0) return false;
    if (graph::AtomCount(model, static_cast<int32_t>(root)) > static_cast<int64_t>(Footprint::kMaxAtoms)) return false;
  }
  return true;
}

Verdict JudgeWhole(const HostileGraph& hostile) {
  const Model& model = hostile.graph.model();
  const std::vector<int32_t> sequence = graph::SequenceOf(model);
  if (sequence.size() < model.nodes.size()) return {{{"", "wait for each other"}}, true};
  Verdict verdict = DataJudge(hostile, sequence).verdict();
  if (OrderIsMissing(model)) verdict.wrong.push_back({"", "no path orders them"});
  return verdict;
}

bool ReadsOnlyData(const Model& model, const std::vector<int64_t>& values) {
  std::vector<std::vector<bool>> data;  // of each buffer, its atoms
  for (size_t b = 0; b < model.buffers.size(); ++b) {
    const BufferRole role = model.buffers[b].role;
    const bool none = role == BufferRole::kOutput || role == BufferRole::kInternal;
    data.emplace_back(static_cast<size_t>(graph::AtomCount(model, static_cast<int32_t>(b))), !none);
  }
  const graph::RunAtoms atoms = graph::RunAtomsOf(model, values);
  const auto all = [&](size_t node, size_t a) {
    const auto root = static_cast<size_t>(graph::RootOf(model, model.nodes[node].accesses[a].buffer));
    return std::all_of(atoms[node][a].begin(), atoms[node][a].end(),
                       [&](int32_t atom) { return data[root][static_cast<size_t>(atom)]; });
  };
  for (const int32_t n : graph::SequenceOf(model)) {
    const auto node = static_cast<size_t>(n);
    const std::vector<AccessDecl>& accesses = model.nodes[node].accesses;
    for (size_t a = 0; a < accesses.size(); ++a) {
      if (accesses[a].mode != AccessMode::kWrite && !all(node, a)) return false;
    }
    for (size_t a = 0; a < accesses.size(); ++a) {
      if (accesses[a].mode == AccessMode::kRead) continue;
      const auto root = static_cast<size_t>(graph::RootOf(model, accesses[a].buffer));
      for (const int32_t atom : atoms[node][a]) data[root][static_cast<size_t>(atom)] = true;
    }
  }
  return true;
}

}  // namespace penstock::fuzz
