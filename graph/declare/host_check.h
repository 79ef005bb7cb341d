// The host fallback check: a graph whose device code is compared with its host fallback in every run.
//
// It is a rewrite of the model and nothing else. Before a node that has host code the parts of buffers and States that
// it reads and writes are copied aside; behind it a host node runs the host code on the copies (outputs that are only
// written begin as poison) and compares, byte for byte or within a tolerance. A difference fails the run. On host
// devices, where the device code is the host code, that compares two executions of it: a host fallback that keeps
// state, or writes less than it says, is found.
//
// Threads: pure functions; the checks themselves run as host nodes.
#pragma once

#include <string>
#include <vector>

#include "penstock/detail/model.h"

namespace penstock::graph {

// `model` has been planned without mistakes. `tolerance` is relative and for float and double; 0: equal bytes.
// `unchecked`, in words, are the nodes that have host code but cannot be checked: those that access one buffer twice
// (it could read what it has written), an alias (a copy of it would lie differently), or a buffer with Unordered
// accesses (what comes After the node would not come after its check).
Model WithHostChecks(const Model& model, double tolerance, std::vector<std::string>& unchecked);

}  // namespace penstock::graph
