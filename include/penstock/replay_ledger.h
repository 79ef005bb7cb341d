// ReplayLedger: how an executable's runs were submitted, and what changed from run to run. What Executable::ledger()
// returns. Nothing that keeps a node from being in a graph, or parts graphs but host nodes, goes without a note.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"
#include "penstock/mode.h"

namespace penstock {

struct PENSTOCK_EXPORT ReplayLedger {
  Mode mode = Mode::kStream;  // that runs use
  // Why not another one, and which nodes are in no graph and why: a sentence each.
  std::vector<std::string> notes;

  // Of all slots together, since Compile.
  int64_t graphs = 0;  // instantiated and uploaded
  int64_t graph_nodes = 0;  // in them
  int64_t graph_launches = 0;
  int64_t nodes_set = 0;  // given new parameters: CUDA takes 0.3 to 1 us for each
  int64_t nodes_switched = 0;  // on or off

  // The same in words.
  std::string Text() const;
};

}  // namespace penstock
