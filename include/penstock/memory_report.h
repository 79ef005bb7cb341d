// MemoryReport: what an executable takes of each device's memory and of pinned memory, known before its first run. What
// Executable::memory() returns.
//
// An executable has one arena a slot in each place. It is planned for the declared maxima and does not grow. What lives
// outside it is not counted here: bound memory, States, what the runtime has for all executables together, and of
// graphs (mode.h) 512 bytes and the parameters on the device and some pinned ones a slot, beside what CUDA keeps of
// them.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

struct PENSTOCK_EXPORT MemoryReport {
  // The memory that all slots take in one place.
  struct Arena {
    std::string where;  // "cuda:0", or "pinned"
    int64_t slot_bytes = 0;  // of one slot
    int64_t all_bytes = 0;  // of all slots, of all devices that have some there
    // The most bytes that hold something at once where one slot's nodes run one after another in the plan's order. What
    // the arena has beyond is the price of packing and of nodes that may run at the same time.
    int64_t peak_bytes = 0;
  };
  // The part of a slot's memory that one buffer takes.
  struct Piece {
    std::string name;  // of the buffer
    std::string where;  // as in Arena
    int64_t bytes = 0;  // of one slot
  };

  std::string graph;  // its name
  int slots = 0;  // on each device
  std::vector<Arena> arenas;  // pinned memory first, then each device in use
  std::vector<Piece> largest;  // of one slot: at most 8, the largest first

  // The same as a table.
  std::string Text() const;
};

}  // namespace penstock
