// PipelineStats: what a pipeline is doing: how many items are where, how busy its stages are, and which stage
// limits the rest.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

// One stage; a stage on several devices has one entry per device.
struct StageStats {
  std::string name;  // "decode", or "edges on cuda:0"
  int capacity = 0;  // items it can work on simultaneously: its threads, or slots
  int64_t waiting = 0;  // items in front of it; shared by the devices of a stage on several
  int64_t working = 0;  // items in it
  int64_t done = 0;  // items that have left it so far, failed ones included
  int64_t failed = 0;  // how many of these failed
  double busy = 0;  // average share of its capacity in use since the pipeline was made, 0 to 1
};

// The share of the time since the pipeline was made that something was busy, 0 to 1.
struct BusyShare {
  std::string name;
  double busy = 0;
};

struct PipelineStats {
  std::vector<StageStats> stages;  // in the order that items pass them
  // "cuda:0 upload", "cuda:0 kernels", "cuda:0 download": from the traces of the executables (CompileOptions::trace;
  // trace.h gives the cost), which should share one. Empty without a trace.
  std::vector<BusyShare> engines;
  // For each of the library's threads in this process, those of other runtimes and pipelines included, the share
  // of a processor it has used since then. A stage's thread that waits in its callable uses none;
  // StageStats::busy counts it.
  std::vector<BusyShare> threads;
  int64_t accepted = 0;  // items submitted so far
  int64_t delivered = 0;  // of these: taken out at the end
  int64_t dropped = 0;  // of these: replaced by newer ones (WhenFull)
  int64_t refused = 0;  // calls that found no window slot and did not wait
  int64_t failed = 0;  // items that have ended with a failure so far
  int64_t retries = 0;  // how often a stage was retried with an item
  int64_t inside = 0;  // items submitted and not yet taken out
  int64_t ready = 0;  // of these: ended, and next to be taken out
  int window = 0;  // the limit for `inside` plus the items being filled
  int bottleneck = -1;  // the index in `stages` of the busiest one; -1: nothing has been done
};

// Formats the statistics as text, one stage per line.
PENSTOCK_EXPORT std::string Print(const PipelineStats& stats);

}  // namespace penstock
