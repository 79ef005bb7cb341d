// What a pipeline is doing: how many items are where, how busy its stages are, and which of them holds up the rest.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

// One stage; of a stage on several devices one for each.
struct StageStats {
  std::string name;  // "decode", or "edges on cuda:0"
  int capacity = 0;  // items it can work on at once: its threads, or slots
  int64_t waiting = 0;  // items in front of it; a stage on several devices has them in common
  int64_t working = 0;  // items in it
  int64_t done = 0;  // items it has ended so far, failed ones too
  int64_t failed = 0;  // how many of these failed
  double busy = 0;  // share of its capacity that was in use since the pipeline was made, 0 to 1
};

// What has been at work for which part of the time since the pipeline was made, 0 to 1.
struct BusyShare {
  std::string name;
  double busy = 0;
};

struct PipelineStats {
  std::vector<StageStats> stages;  // in the order that items pass them
  // "cuda:0 upload", "cuda:0 kernels", "cuda:0 download": of the traces that the executables have
  // (CompileOptions::trace, which says what it costs). Share one among them. Without a trace nobody knows: none.
  std::vector<BusyShare> engines;
  // The library's threads in this process, those of other runtimes and pipelines too: how much of a processor each has
  // used since then. A stage's thread that waits in its callable uses none; StageStats::busy counts it.
  std::vector<BusyShare> threads;
  int64_t accepted = 0;  // items submitted so far
  int64_t delivered = 0;  // of these: taken out at the end
  int64_t dropped = 0;  // of these: by WhenFull::kDropOldest
  int64_t refused = 0;  // calls that found no room and did not wait
  int64_t failed = 0;  // items that ended with a failure so far
  int64_t retries = 0;  // how often a stage was tried again with an item
  int64_t inside = 0;  // items that have been submitted and not been taken out
  int64_t ready = 0;  // of these: ended, and next to be taken out
  int window = 0;  // the most that `inside` can be, and items being filled with it
  int bottleneck = -1;  // of `stages`: the busiest one; -1: nothing has been done
};

// Formats the statistics as text, one stage a line.
PENSTOCK_EXPORT std::string Print(const PipelineStats& stats);

}  // namespace penstock
