// Algorithms over the standard types, declared as a user would declare them: the nodes have the kernels that
// src/driver/cuda/algorithm_code.cc gives to files that nvcc does not compile. What is declared here is what
// docs/howto/algorithms.md lists.
//
// Threads: as Graph.
#pragma once

#include <cstdint>

#include "penstock/penstock.h"

namespace penstock::detail {

void DeclareReductions(Graph& graph);
void DeclareRows(Graph& graph);
void DeclareRuns(Graph& graph);
void DeclareScans(Graph& graph);
void DeclareSelections(Graph& graph);
void DeclareHistograms(Graph& graph);
void DeclareSorts(Graph& graph);

// Algorithms declare other nodes for few elements than for many: these are few, and enough for every level of a tree.
inline constexpr int64_t kFew = 1, kMany = int64_t{1} << 31, kRows = 4;

template <class T>
AccessOf<T, AccessMode::kRead> From(Graph& graph, const Extent& extent) {
  return Read(graph.Input<T>("from", extent));
}
// Rows with gaps between them.
template <class T>
AccessOf<T, AccessMode::kRead> FromPart(Graph& graph, int64_t width) {
  return Read(graph.Input<T>("from", {kRows, width + 1}), Slice({0, 0}, {kRows, width}));
}
template <class T>
AccessOf<T, AccessMode::kWrite> To(Graph& graph, const Extent& extent) {
  return Write(graph.Output<T>("to", extent));
}

}  // namespace penstock::detail
