// How the work of an executable reaches its device.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

namespace penstock {

enum class Mode : uint8_t {
  // Submits each node to a stream with a driver call of its own.
  kStream,
  // Submits CUDA graphs one after another: the nodes between two host nodes form one graph, which Compile makes; a
  // launch updates what differs from the previous one and launches the graph as a whole. Submits many small nodes fast.
  //
  // Compile calls the callable of a Launch node once per slot to capture it, if its arguments are known by then;
  // otherwise the slot's first launch does. Each launch with another argument captures it again. If the callable
  // cannot be captured, Compile or Launch returns the reason. Graphs are split at the first and last touch of bound
  // device memory and of a State that the graph writes; a writer of a State that is only read waits for the whole graph
  // around the read. Graphs run in order: whatever delays one, such as an event passed to Bindings::After, delays all
  // later ones. A graph of a plan on several devices has the nodes of all of them. Plans with PENSTOCK_SYNC, and those
  // on several devices with a construct that a device decides, are submitted on streams nevertheless.
  // Executable::submission_report() tells which way was taken and why. A trace adds nodes to
  // the graphs that time the others (trace.h). Compile waits until the graphs are on the device, whatever else the
  // device is doing.
  kGraph,
  // Keeps the faster of the two, found on the first runs. These begin with the mode that should be faster by what
  // submitting the nodes costs, and try the other: two runs if it is far slower, a few dozen of both if they are close.
  // The choice is final; Executable::Decide makes it at once. Compile makes the graphs as for kGraph but waits for
  // nothing: the first launch of each uploads it. Graphs
  // that lose are freed. Launch nodes that cannot be captured are submitted on their own; if this shows only at a
  // launch, later runs are submitted on streams. With a trace nothing is tried, because timed runs make no fair
  // comparison: the mode that should be faster is kept. The submission_report gives the reason.
  kAuto
};

// Whether regions of small nodes run resident: as one node of a graph each, on a CUDA device one kernel whose workers
// walk the region's nodes without a launch for each, on a host device one thread that calls one after the other. A
// region has ParallelFor nodes of few elements, and the fills and copies between them; any other node ends it. A
// construct of such nodes that a CUDA device decides is a region too. Only graphs have regions.
// docs/explanation/resident.md
enum class Resident : uint8_t {
  kOff,
  // Forms the regions that should be faster than their nodes alone: those of at least 8 nodes that each have at most 32
  // elements or threads (one warp), and constructs of such nodes. On a host device it forms them only if no two nodes
  // could run side by side.
  kAuto,
  kOn  // every region of two nodes or more
};

}  // namespace penstock
