// SimGraph: what Simulate (simulate.h) needs to know of a graph: what each node occupies, for how long, and after what.
// plan_sim_graph.h makes one of a Plan, src/analysis/sim_graph.h of a profile. To try something out, copy it and change
// the copy.
//
// Times are in microseconds, bandwidths in GB/s (10^9 bytes a second). Simulate checks what it is given.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace penstock::graph {

// What work occupies: places where so much work goes on at a time. Work waits for a place in the order in which it
// became ready.
//   kNothing   work that only takes time: a kernel that waits for the host, a node that has nothing to do
//   kKernel    one of a device's kernels (SimDevice::kernels)
//   kUpload    the copy engine of a device to it
//   kDownload  the copy engine of a device from it
//   kPeer      the link from one device to another, in this direction
//   kWorker    a worker thread of the host
//   kLaunch    a thread of the application that launches; no node does
enum class SimResource : uint8_t { kNothing, kKernel, kUpload, kDownload, kPeer, kWorker, kLaunch };

struct SimNode {
  SimResource resource = SimResource::kKernel;
  bool on_host = false;  // a host step: what follows it on a device is submitted after it has ended
  int32_t device = 0;  // a place in SimGraph::devices; -1: none, for host steps
  int32_t from = -1;  // kPeer: the device from which it copies
  // Where nodes are submitted as graphs: those of a segment with the same number are one. Numbers ascend in the order
  // of submission.
  int32_t graph = -1;
  int32_t lane = -1;  // the nodes of a lane run one after the other where nodes are submitted on streams; -1: no lane
  // What it takes, with the resource to itself: `us`, and in addition `bytes` by `gbs` unless that is 0.
  double us = 0;
  int64_t bytes = 0;
  double gbs = 0;
  absl::InlinedVector<int32_t, 4> after{};  // nodes, all before this one
  // How many events of other devices its lane waits for before it or, in a graph, how many edges from other devices
  // lead to it; -1: one for each node of `after` there.
  int32_t crossings = -1;

  double Cost() const { return gbs > 0 ? us + static_cast<double>(bytes) / (gbs * 1e3) : us; }
};

struct SimDevice {
  // How many kernels run at a time, each as fast as alone: 1 for kernels that fill the device.
  int32_t kernels = 1;
  // How many times as long a copy takes while the other direction is at work.
  double upload_slowdown = 1, download_slowdown = 1;
};

// Memory that a run holds from when the first of `users` begins until the last has ended; from its launch to its end if
// there are none.
struct SimMemory {
  int32_t device = -1;  // -1: pinned host memory
  int64_t bytes = 0;
  std::vector<int32_t> users{};
};

struct SimGraph {
  std::vector<SimNode> nodes;  // in the order in which they are submitted, each after those that it follows
  std::vector<SimDevice> devices;
  std::vector<SimMemory> memory;
  // For each State that the graph writes: the nodes that touch it. Those of a run begin after those of the run before.
  std::vector<std::vector<int32_t>> states;
};

}  // namespace penstock::graph
