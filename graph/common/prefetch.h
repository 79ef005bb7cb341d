// Prefetches a model's records while walking over them, since they and their parts lie far apart.
//
// Threads: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/detail/model.h"

namespace penstock::graph {

// Prefetches cache lines from `begin` on, unless it is null. The number of lines does not depend on the record, so
// nothing waits for it; prefetching too much does no harm.
template <int kLines>
void Prefetch(const void* begin) {
  if (begin == nullptr) return;
  constexpr ptrdiff_t kLine = 64;
  for (ptrdiff_t at = 0; at < kLines * kLine; at += kLine) __builtin_prefetch(static_cast<const char*>(begin) + at);
}
inline void PrefetchParts(const BufferDecl& buffer) { Prefetch<1>(buffer.name.c_str()); }
inline void PrefetchParts(const NodeDecl& node) {
  Prefetch<1>(node.name.c_str());
  Prefetch<2>(node.accesses.data());
  Prefetch<4>(node.args.data());
}

// Calls `f` with each record and its index.
template <class I, class Record, class F>
void ForEachRecord(const detail::Table<I, Record>& records, F&& f) {
  constexpr int32_t kParts = 8, kRecord = 16;  // how many records later
  constexpr int kLines = sizeof(Record) < 256 ? sizeof(Record) / 64 : 4;
  for (const I i : records.ids()) {
    if (i + kRecord < records.count()) {
      Prefetch<kLines>(&records[i + kRecord]);
      PrefetchParts(records[i + kParts]);
    }
    f(records[i], i);
  }
}

}  // namespace penstock::graph
