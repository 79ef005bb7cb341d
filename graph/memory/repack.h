// Repack: chooses the offsets in one arena when all lifetimes are known.
//
// The packer (packer.h) places instances without knowing later ones, and so leaves holes. Here the largest tenants are
// placed first, each in the smallest hole that fits between those placed tenants with which it cannot share bytes,
// otherwise after them: "greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020). If much could still be gained, tenants that end too high are moved to the front, a few times
// (squeaky wheel optimization, Joslin and Clements 1999), and the same is tried from two other orders. The packer's
// rule decides which tenants may share.
//
// This is done if there are many holes and all pairs can be examined: for graphs with a single lane, or with at most
// 724 instances in the arena.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/memory/lifetimes.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

// The owner of some bytes: an instance, or a chain of instances that hand the bytes on.
struct Tenant {
  InstanceId first{}, last{};
  int64_t bytes = 0;
  int64_t offset = 0;
};

// Sets new offsets for all tenants if it finds an arena smaller than `bytes`; returns its size, or `bytes` if there is
// none or the search would cost too much. Tenants are ordered by first use. No arena can be smaller than `least`.
int64_t Repack(const Reduced& reduced, const Lifetimes& lives, int64_t least, int64_t bytes,
               std::vector<Tenant>& tenants);

}  // namespace penstock::graph
