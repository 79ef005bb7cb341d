// Placement: which device executes which node of a graph, and the report of how that was chosen.
//
// Under Placement::kAutomatic, Compile plans the graph for several candidates: all nodes on one device; each node where
// most of what it reads is; and HEFT (heterogeneous earliest finish time), which puts each node where it should end
// first. It simulates a run of each plan
// by what the nodes declare and the machine can do (machine_figures.h), and takes the fastest, but only if that gains
// at least 5 % over one device. Results are the same, bit for bit, on any device of the same type.
// docs/explanation/planner.md
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"

namespace penstock {

// Where nodes go that have no pin (NodeRef::On).
enum class Placement : uint8_t {
  kOneDevice,  // to CompileOptions::device
  kAutomatic  // to all devices of the runtime that are of the kind of CompileOptions::device, as Compile chooses
};

// What Placement::kAutomatic compared, and where each node is. Executable::placement_report() returns it.
struct PENSTOCK_EXPORT PlacementReport {
  // One way to place the nodes. All figures are estimates of one run, and 0 if there is no plan.
  struct Candidate {
    std::string name;  // "one device", "affinity", "HEFT"
    bool taken = false;  // whether the plan is of it
    double makespan_us = 0;  // from the launch to the end
    double gain = 0;  // of the time that one device takes, the part that is saved; negative: it takes longer
    std::vector<double> work_us{};  // of the nodes on each device, as in `devices`
    int64_t between_bytes = 0;  // that are copied from device to device
    int64_t host_bytes = 0;  // that are copied between the host and devices
    std::string why{};  // it was taken, or left out; a sentence without a full stop
  };
  // One node as declared.
  struct Node {
    std::string name;  // the node's name
    int device = -1;  // place in `devices`; -1: it runs on the host, or is left out
    bool left_out = false;  // a copy that the plan does without
  };

  std::string graph;  // the graph's name
  std::vector<std::string> devices;  // the names of the runtime's devices
  std::vector<Candidate> candidates;  // empty: nothing was to be placed, or Placement::kOneDevice
  std::vector<Node> nodes;  // in the order of their declarations

  // The candidates as a table, and how many nodes each device has.
  std::string Text() const;
};

}  // namespace penstock
