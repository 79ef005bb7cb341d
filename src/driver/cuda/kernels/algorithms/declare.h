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

// Enough elements for every level of a tree, in several rows, and for every node of an algorithm.
inline constexpr int64_t kRows = 4, kWidth = int64_t{1} << 36;

template <class T>
AccessOf<T, AccessMode::kRead> AllOf(Graph& graph) {
  return Read(graph.Input<T>("from", {kRows, kWidth}));
}
template <class T>
AccessOf<T, AccessMode::kRead> LineOf(Graph& graph) {
  return Read(graph.Input<T>("from", kWidth));
}
// Rows with gaps between them.
template <class T>
AccessOf<T, AccessMode::kRead> PartOf(Graph& graph) {
  return Read(graph.Input<T>("from", {kRows, kWidth}), Slice({0, 0}, {kRows, kWidth / 2}));
}
template <class T>
AccessOf<T, AccessMode::kWrite> LineTo(Graph& graph, int64_t n = kWidth) {
  return Write(graph.Output<T>("to", n));
}

}  // namespace penstock::detail
