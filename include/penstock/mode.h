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
  // a whole; a launch sets what differs from the one before. Fast to submit where there are many small nodes.
  //
  // The callable of a Launch node is called to be captured: by Compile, once a slot, where its arguments are known
  // then, else by the first launch in the slot; and again by each launch with another argument. Where it cannot be
  // captured, Compile or Launch returns why. Graphs are parted where a State that the graph writes, or device memory
  // that is bound, is touched first and last, and by copies between devices; who writes a State that is only read waits
  // for the whole graph around it. What one waits for, an event given to Bindings::After too, all behind it wait for.
  // Plans on several devices or with PENSTOCK_SYNC are submitted on streams all the same.
  // Executable::submission_report()
  // says what became of it and why. With a trace the graphs have more nodes, which time the others (trace.h). Compile
  // waits until the device has the graphs, whatever else it has to do.
  kGraph,
  // The faster of the two, found out on the first runs: these use either in turns, a few dozen in all, and from then on
  // nothing changes any more. Compile makes the graphs as for kGraph, but waits for nothing: the device gets them with
  // their first launch. Where they have lost they are given back. Launch
  // nodes that cannot be captured are submitted by themselves; where it is a launch that finds out, runs are submitted
  // on streams from then on. With a trace all runs are, since timed ones are no fair trial. The submission_report says
  // why.
  kAuto
};

}  // namespace penstock
