// What accesses cover, element by element. Buffers are cut into atoms of 32 bytes; elements that are accessed in parts
// or through aliases of another type have whole ones. An access is the list of atoms it touches in the buffer that has
// the memory, found by walking over the elements of every box on the way. No interval is compared with another.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "graph/plan/region.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

inline constexpr int64_t kAtomBytes = 32;

// Bytes of a buffer's elements for its declared maximum, and the atoms that hold them; and bytes from the first to the
// last, where rows lie apart.
int64_t MaxBytes(const Model& model, int32_t buffer);
int64_t MaxSpan(const Model& model, int32_t buffer);
int64_t AtomCount(const Model& model, int32_t buffer);

// The buffer that has the memory.
int32_t RootOf(const Model& model, int32_t buffer);

// A value for each parameter that every box stays inside its buffer with, otherwise random. Those that are dimensions
// of buffers have their maximum.
std::vector<int64_t> ParamValues(const Model& model, uint64_t seed);

// The atoms that an access touches in a run with these values, in the order of its elements.
std::vector<int32_t> AtomsAt(const Model& model, const AccessDecl& access, const std::vector<int64_t>& values);

// The atoms of a buffer with memory that begin inside a part of it, at its largest extent.
std::vector<int32_t> AtomsOfPart(const Model& model, int32_t buffer, const Region& part);

// What an access may touch in some run. Parameters count with their maximum, and an offset that is one means all of the
// memory.
struct Footprint {
  static constexpr size_t kMaxAtoms = 128;  // of a buffer that is accessed in parts
  int32_t root = -1;
  AccessMode mode = AccessMode::kRead;
  bool unordered = false;
  bool whole = true;  // then `atoms` is empty
  bool always = true;  // touches all of it in every run
  std::bitset<kMaxAtoms> atoms{};
  bool Meets(const Footprint& other) const {
    if (root != other.root) return false;
    if (whole || other.whole) return (whole || atoms.any()) && (other.whole || other.atoms.any());
    return (atoms & other.atoms).any();
  }
  bool Conflicts(const Footprint& other) const {
    return Meets(other) && (mode != AccessMode::kRead || other.mode != AccessMode::kRead);
  }
};
Footprint FootprintOf(const Model& model, const AccessDecl& access);

// Of all accesses: (node, access).
using Footprints = std::vector<std::vector<Footprint>>;
Footprints FootprintsOf(const Model& model);

}  // namespace penstock::graph
