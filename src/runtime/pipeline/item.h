// PipelineItem: the record of an item of a pipeline. There is one for each window slot, made with the pipeline.
//
// Threads: belongs to the thread that has the item: the one that fills it, works on it or took it out. While it waits,
//          it is touched only with the pipeline's lock held.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/lease.h"
#include "penstock/run.h"
#include "src/runtime/run/returned_counts.h"

namespace penstock::runtime {

class PipelineCore;

struct PipelineItem {
  // What the item holds of one executable.
  struct Part {
    Bindings bindings;
    int wanted = -1;  // the one of the executable's devices that it must be on; -1: any
    int device = -1;  // StageTable::devices: where it has its slot, last ran or must run (first executable)
    Lease slot;  // held from the item's beginning if the stage has kSlot buffers, otherwise for the run
    Run run;  // set if another executable's run follows, which is `run` below
    ReturnedCounts counts;  // of its last run that has ended well
  };

  int index = 0;
  PipelineCore* core = nullptr;
  std::byte* value = nullptr;
  bool has_value = false;
  uint64_t id = 0, key = 0;
  Deadline deadline;
  absl::Status status;
  int tries = 0;  // failed tries of its stage
  int pin = -1;  // ItemOptions::device
  int device = -1;
  std::vector<Part> parts;  // one for each executable
  Run run;  // the run in flight, or the last one
  absl::Status cut_short;  // why what should have followed `run` was not launched
  std::chrono::steady_clock::time_point begun;  // when its stage began
};

}  // namespace penstock::runtime
