// PipelineItem: what an item of a pipeline has. There are as many as the pipeline has places, made with it.
//
// Threads: belongs to whoever has the item: who fills it, the thread that works on it, who took it out. While it waits
//          nobody touches it but with the pipeline's lock held.
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

namespace penstock::runtime {

class PipelineCore;

struct PipelineItem {
  // What it has of one executable.
  struct Part {
    Bindings bindings;
    int wanted = -1;  // which of the executable's devices it has to be on; -1: any
    int device = -1;  // StageTable::devices: where it has a slot, so runs, ran last or has to; of the first executable
    Lease slot;  // from its beginning on where the stage has kSlot buffers, else for the run
    Run run;  // where another executable's comes behind it, which is `run` below
  };

  int index = 0;
  PipelineCore* core = nullptr;
  std::byte* value = nullptr;
  bool has_value = false;
  uint64_t id = 0, key = 0;
  Deadline deadline;
  absl::Status status;
  int tries = 0;  // of its stage, that failed
  int pin = -1;  // ItemOptions::device
  int device = -1;
  std::vector<Part> parts;  // of each executable
  Run run;  // in flight, or the last
  absl::Status cut_short;  // why what should have come behind `run` was not launched
  std::chrono::steady_clock::time_point begun;  // its stage
};

}  // namespace penstock::runtime
