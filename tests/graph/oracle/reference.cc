#include "tests/graph/oracle/reference.h"

#include <utility>

#include "tests/graph/oracle/oracle.h"

namespace penstock::graph {

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

Contents InitialContents(const Model& model, int32_t buffer) {
  Contents contents(static_cast<size_t>(AtomCount(model, buffer)));
  for (size_t c = 0; c < contents.size(); ++c) contents[c] = Mix(Mix(5, static_cast<uint64_t>(buffer)), c);
  return contents;
}

RunAtoms RunAtomsOf(const Model& model, const std::vector<int64_t>& param_values) {
  RunAtoms atoms;
  for (const NodeDecl& node : model.nodes) {
    atoms.emplace_back();
    for (const AccessDecl& access : node.accesses) atoms.back().push_back(AtomsAt(model, access, param_values));
  }
  return atoms;
}

Contents Load(const Reach& reach) {
  Contents contents;
  for (size_t i = 0; i < reach.atoms.size(); ++i) contents.push_back(reach[i]);
  return contents;
}

uint64_t Digest(const Contents& contents) {
  uint64_t h = 17;
  for (const uint64_t c : contents) h = Mix(h, c);
  return h;
}

bool WritesAtom(const Model& model, const AccessDecl& access, size_t i) {
  if (access.mode == AccessMode::kRead) return false;
  const BufferRole role = model.buffers[RootOf(model, access.buffer)].role;
  return access.mode != AccessMode::kWriteSome || role == BufferRole::kInternal || i % 2 == 0;
}

void Store(const Model& model, const Reach& reach, int32_t index, size_t access, const std::vector<uint64_t>& read,
           const Contents& source) {
  const NodeDecl& node = model.nodes[index];
  uint64_t result = Mix(1000, static_cast<uint64_t>(index));
  for (const uint64_t r : read) result = Mix(result, r);
  result = Mix(result, access);
  for (size_t i = 0; i < reach.atoms.size(); ++i) {
    if (!WritesAtom(model, node.accesses[access], i)) continue;
    reach[i] = node.kind == NodeKind::kCopy ? source[i] : Mix(result, i);
  }
}

Reference RunInSequence(const Model& model, const RunAtoms& atoms) {
  Reference ref;
  ref.read.resize(model.nodes.size());
  for (int32_t b = 0; b < static_cast<int32_t>(model.buffers.size()); ++b) {
    ref.contents.push_back(InitialContents(model, b));
  }
  for (const int32_t n : SequenceOf(model)) {
    const NodeDecl& node = model.nodes[n];
    const auto reach = [&](size_t i) {
      const auto root = static_cast<size_t>(RootOf(model, node.accesses[i].buffer));
      return Reach{ref.contents[root].data(), atoms[n][i]};
    };
    std::vector<uint64_t>& read = ref.read[n];
    Contents source;
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      const AccessMode mode = node.accesses[i].mode;
      read.push_back(Reads(mode) ? Digest(Load(reach(i))) : 0);
      if (mode == AccessMode::kRead) source = Load(reach(i));
    }
    for (size_t i = 0; i < node.accesses.size(); ++i) {
      if (node.accesses[i].mode != AccessMode::kRead) Store(model, reach(i), n, i, read, source);
    }
  }
  return ref;
}

}  // namespace penstock::graph
