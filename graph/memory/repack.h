// Repack: offsets in one arena, chosen when all lifetimes are known.
//
// The packer (packer.h) places what comes without knowing what will come, and so leaves holes. Here the largest tenants
// are placed first, each into the smallest hole that it fits between those placed before that it may not share with,
// else behind them: "greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
// (2020). Where that leaves much to gain, those that end too high are placed first instead, a few times (squeaky wheel
// optimization, Joslin and Clements 1999), and the same is tried from two other orders. Whether two may share is the
// packer's rule.
//
// It is done where the holes are many, and where pairs can be looked at: of a graph with one lane and nothing else, or
// of at most 724 instances in the arena.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/memory/lifetimes.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

// What has some bytes: an instance, or a chain of them that hands the bytes on.
struct Tenant {
  int32_t first = -1, last = -1;  // instances
  int64_t bytes = 0;
  int64_t offset = 0;
};

// New offsets for all tenants where an arena of fewer than `bytes` is found; returns its size, or `bytes` where none
// is, or where looking would cost too much. Tenants stand in the order of their first use. No arena can be smaller than
// `least`.
int64_t Repack(const Draft& draft, const Lifetimes& lives, int64_t least, int64_t bytes, std::vector<Tenant>& tenants);

}  // namespace penstock::graph
