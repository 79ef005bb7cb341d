// How the work of an executable reaches its device.
//
// Threads: plain values.
#pragma once

#include <cstdint>

namespace penstock {

enum class Mode : uint8_t {
  // A call of the driver for each node, on streams.
  kStream,
  // CUDA graphs, one behind the other: the nodes between two host nodes are one graph, made by Compile and launched as
  // a
  // whole; a launch sets what differs from the one before. Fast to submit where there are many small nodes. Graphs are
  // parted where a State, or device memory that is bound, is touched first and last, and by what no graph takes, which
  // is submitted by itself. What one waits for, an event given to Bindings::After too, all behind it wait for. Plans on
  // several devices, with a trace or with PENSTOCK_SYNC are submitted on streams all the same. Executable::ledger()
  // says what became of it and why. Compile waits until the device has the graphs, whatever else it has to do.
  kGraph
};

}  // namespace penstock
