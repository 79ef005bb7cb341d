// Walking over a model's records: they and their parts lie far apart, so those further on are asked for in time.
//
// Threads: free functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "penstock/model.h"

namespace penstock::graph {

inline void Prefetch(const void* begin, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(begin) + at);
}
inline void PrefetchParts(const BufferDecl& buffer) { __builtin_prefetch(buffer.name.c_str()); }
inline void PrefetchParts(const NodeDecl& node) {
  __builtin_prefetch(node.name.c_str());
  Prefetch(node.accesses.data(), node.accesses.size() * sizeof(AccessDecl));
  Prefetch(node.args.data(), node.args.size() * sizeof(ArgDecl));
}

// Calls `f` with each record and its index.
template <class Record, class F>
void ForEachRecord(const std::vector<Record>& records, F&& f) {
  constexpr size_t kParts = 8, kRecord = 16;  // records ahead
  for (size_t i = 0; i < records.size(); ++i) {
    if (i + kRecord < records.size()) {
      Prefetch(&records[i + kRecord], std::min<size_t>(sizeof(Record), 256));  // what the planner looks at
      PrefetchParts(records[i + kParts]);
    }
    f(records[i], i);
  }
}

}  // namespace penstock::graph
