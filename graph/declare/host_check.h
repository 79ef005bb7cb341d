// The host fallback check: rewrites a graph to compare its device code with its host fallbacks in every run.
//
// It only rewrites the model. Before a node that has host code, the parts of buffers and States that it changes are
// copied aside; after it, a host node runs the host code on the copies (outputs that are only written start as poison)
// and compares, byte for byte or within a tolerance. A difference fails the run. Of outputs that are written in part,
// node and host code start with different contents, and elements that both leave as they were are not compared. Scratch
// is another buffer for the host code, and is not compared. On host devices, where device code
// and host code are the same, this compares two executions: it finds host fallbacks that keep state, or write less
// than they declare.
//
// Threads: pure functions; the checks themselves run as host nodes.
#pragma once

#include <string>
#include <vector>

#include "penstock/detail/model.h"

namespace penstock::graph {

// `model` has been planned without mistakes. `tolerance` is relative, for float and double; 0: equal bytes. `unchecked`
// receives a line for each reason why nodes that have host code cannot be checked, with the first of them and their
// number: they access elements twice and write them (the host code could read what the node has written), an alias (its
// copy would have another layout), or a buffer with Unordered accesses (nodes After the node would not come after its
// check); or they tell of a loop (penstock/detail/telling.h), which only the node can.
Model WithHostChecks(const Model& model, double tolerance, std::vector<std::string>& unchecked);

}  // namespace penstock::graph
