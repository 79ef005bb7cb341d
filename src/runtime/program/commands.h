// ExecCommand: one call of the submitter, on one lane.
//
// Threads: plain data.
#pragma once

#include <cstdint>

#include "graph/plan/plan.h"

namespace penstock::runtime {

using detail::Id;
using detail::Table;
using graph::CommandId;
using graph::DeviceId;
using graph::EventId;
using graph::HostStepId;
using graph::InstanceId;
using graph::LaneId;
using graph::NodeId;
using graph::SegmentId;

// `index` is an entry of the table that the op names: for kRecord and kWait an event, for the State ops an entry of
// Plan::states, for kWaitExternal an entry of Plan::external_deps, for kGraph a graph of Program::replay, for
// kConditional the construct, in the order of their nodes. kRegion is only among the entries of graphs.
struct ExecCommand {
  enum class Op : uint8_t {
    kCopy,
    kBatch,
    kFill,
    kKernel,
    kLaunch,
    kHostcall,
    kConditional,
    kRegion,
    kRecord,
    kWait,
    kStateWait,
    kStateWrite,
    kStateDone,
    kWaitExternal,
    kGraph,
    kNone
  };
  // A lane holds at most kMostOutstanding (tuning.h) commands: CUDA blocks a submitter that is about 1020 commands
  // ahead of the device, and with it every other thread that makes a call there. Some commands are therefore
  // watermarks: before such a command the lane's latest watermark must be complete (kRecord: there is none yet), and
  // after it the lane records the next one.
  enum class FlowControl : uint8_t { kNone, kRecord, kWaitAndRecord };

  Op op;
  FlowControl flow = FlowControl::kNone;
  LaneId lane;
  int32_t index;
  NodeId node;
};

}  // namespace penstock::runtime
