// What the host nodes do that WithHostChecks adds: copy aside, run host code, and compare.
//
// Threads: pure functions of the nodes' arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// The callable of a node that runs another node's host code and compares. Its arguments are those of the other node, on
// copies, and then views.
struct HostCheck {
  struct Output {
    std::string buffer;
    TypeInfo type;
    // Argument numbers: what the host code writes here, what the node has written, and, if it writes only some
    // elements, what was there before it; otherwise 0.
    size_t mine, actual, before;
    bool poison;  // nothing was copied aside
  };
  NodeCode code;
  int rank = 0, level = 0;  // for a ParallelFor; the rank is kTaskRank for a Task
  bool by_rows = false;  // as NodeDecl::by_rows
  double tolerance = 0;
  std::vector<Output> outputs;
};
absl::Status RunHostCheck(void* callable, LaunchContext*, void* const* argv);

// The callable of a node that copies argument 0 to argument 1, both views.
struct HostCheckKeep {
  uint32_t size;  // of an element
  bool poison;  // whether it first gives argument 0 contents
};
absl::Status RunHostCheckKeep(void* callable, LaunchContext*, void* const* argv);

}  // namespace penstock::graph
