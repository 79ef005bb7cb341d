// What a graph computes, as numbers: its nodes executed one after the other on the buffers as declared. The simulation
// of a plan must come to the same contents.
//
// Contents are one number an atom (atoms.h). Node n makes of what it reads a digest, and of that and its place in the
// access what it writes to an atom, so a value tells where it comes from and where it belongs. Copies move atoms.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/detail/model.h"
#include "tests/graph/oracle/atoms.h"

namespace penstock::graph {

using Contents = std::vector<uint64_t>;

uint64_t Mix(uint64_t a, uint64_t b);
Contents InitialContents(const Model& model, int32_t buffer);

// The atoms of all accesses in one run: (node, access).
using RunAtoms = std::vector<std::vector<std::vector<int32_t>>>;
RunAtoms RunAtomsOf(const Model& model, const std::vector<int64_t>& param_values);

// One access of a running node: atoms of some memory that begins at `memory`.
struct Reach {
  uint64_t* memory;
  const std::vector<int32_t>& atoms;
  uint64_t& operator[](size_t i) const { return memory[atoms[i]]; }
};
Contents Load(const Reach& reach);
uint64_t Digest(const Contents& contents);
// Whether an access writes atom `i` of those it touches. Of contents that outlive the run, WriteSome writes every other
// one here, and keeps the rest; of others it writes all.
bool WritesAtom(const Model& model, const AccessDecl& access, size_t i);
// Leaves in access `access` of node `index` what it makes of digests `read`, one an access. `source`: what a copy
// moves.
void Store(const Model& model, const Reach& reach, int32_t index, size_t access, const std::vector<uint64_t>& read,
           const Contents& source);

struct Reference {
  std::vector<std::vector<uint64_t>> read;  // (node, access): digest of what it reads; 0 if it reads nothing
  std::vector<Contents> contents;  // buffers at the end
};
Reference RunInSequence(const Model& model, const RunAtoms& atoms);

}  // namespace penstock::graph
