// Fusion of Maps (penstock/map.h): rewrites a graph so that Maps become one node where Buffers between them are then
// not needed. What a Buffer holds from one write of it as a whole to the next is such a value, if a Map writes it, if
// only Maps read it, as a whole, and if all of these can become one node: they have one shape, device and priority,
// come After no node and take over no bytes (InPlace), and no other node between the first and the last comes After one
// of them or accesses what they do in a way that orders the two.
//
// It only rewrites the model. The new node stands where the last of its Maps stood, and computes, element by element,
// what they did in their order.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/detail/model.h"

namespace penstock::graph {

// A node that several Maps have become.
struct FusedMap {
  DeclId node{};  // in the new model
  std::vector<DeclId> maps;  // in the old one, in their order
  std::vector<BufferId> unused;  // Buffers that no node accesses any more
  int64_t traffic_bytes = 0;  // that a run no longer reads or writes, at most
  int64_t memory_bytes = 0;  // of the unused Buffers, at most
};

struct FusedModel {
  Model model;
  detail::Table<DeclId, DeclId> declared;  // of each node, the one in the old model; of a fused one, its last Map
  std::vector<FusedMap> fused;
};

// `model` has no mistakes. None: no two Maps can be fused.
std::optional<FusedModel> FuseMaps(const Model& model);
// Whether there are several Maps, without which nothing can be fused.
bool HasMaps(const Model& model);

// "one kernel for Maps 't' (a.cc:1) and 'e' (a.cc:2), without 'x' (a.cc:3): a run reads and writes 8 KiB less, and 4
// KiB of memory are not needed".
std::string TextOf(const FusedMap& fused, const Model& declared);

}  // namespace penstock::graph
