// IsAskedFor: the rule by which devices ask for Host nodes, for the planner and for who decides a construct.
//
// Threads: a pure function.
#pragma once

#include <string>

#include "penstock/detail/model.h"

namespace penstock::graph {

// Whether a device that has work around a Host node asks for it; otherwise a worker calls the node, which parts the
// run. `no_hostcalls`: why no kernel of the device may wait for the host; empty: it may.
inline bool IsAskedFor(HostWay way, const std::string& no_hostcalls) {
  return way != HostWay::kWorker && no_hostcalls.empty();
}

}  // namespace penstock::graph
