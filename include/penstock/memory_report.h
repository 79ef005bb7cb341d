// MemoryReport: the device and pinned memory that an executable takes, known before its first run.
// Executable::memory() returns it.
//
// An executable has one arena per slot in each place, planned for the declared maxima; it never grows. If its runs are
// in order (CompileOptions::in_order), all slots share the arenas on devices. The report
// leaves out memory outside the arenas: bound memory, States, and what the runtime holds for all executables together.
// For graphs (mode.h) it also leaves out, per slot, 512 bytes and the parameters on the device and some pinned ones,
// and CUDA's own memory for them.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

struct PENSTOCK_EXPORT MemoryReport {
  // The memory that all slots take in one place.
  struct Arena {
    std::string where;  // "cuda:0", or "pinned"
    int64_t slot_bytes = 0;  // in one slot
    int64_t all_bytes = 0;  // in all slots, on all devices that have some there
    // The most bytes in use at any time if a slot's nodes ran one after another in the plan's order. The arena's excess
    // over this is the price of packing and of nodes that may run concurrently.
    int64_t peak_bytes = 0;
  };
  // The part of a slot's memory that one buffer takes.
  struct Piece {
    std::string name;  // the buffer's name
    std::string where;  // as in Arena
    int64_t bytes = 0;  // in one slot
  };

  std::string graph;  // the graph's name
  int slots = 0;  // on each device
  std::vector<Arena> arenas;  // pinned memory first, then each device in use
  std::vector<Piece> largest;  // in one slot: at most 8, the largest first

  // The same as a table.
  std::string Text() const;
};

}  // namespace penstock
