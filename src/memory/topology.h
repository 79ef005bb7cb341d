// Topology: the NUMA nodes of this computer, the node near a PCI device, and host memory from a chosen node. It is a
// thin wrapper of hwloc, which only topology.cc includes.
//
// Nodes are numbered from 0 by hwloc's logical index. A virtual machine often shows one node, whatever the hardware.
//
// Ownership: owns hwloc's topology.
// Threads:   thread-safe: immutable once made. OnNode changes only the calling thread's memory policy, RunOnNode only
//            its processors.
// Errors:    Of...: Unavailable (hwloc cannot read this computer), InvalidArgument (a description it does not accept).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct hwloc_topology;

namespace penstock::memory {

class Topology {
 public:
  static absl::StatusOr<Topology> OfThisComputer();
  // For tests, treats this computer as described: by hwloc's short form ("numa:2 core:4"), or by the XML that `lstopo`
  // writes, which may have PCI devices. Memory policies are really set, as far as the nodes exist.
  static absl::StatusOr<Topology> OfDescription(const std::string& description);
  static absl::StatusOr<Topology> OfXml(const std::string& xml);

  int nodes() const;  // at least 1
  int processors(int node) const;  // `node` must exist
  // The node nearest to the device at "0000:3b:00.0"; -1 if there is no such device, or no node is nearer
  // than the others.
  int NodeNear(const std::string& pci_bus_id) const;
  // Calls `f` with a memory policy under which memory that this thread touches first comes from `node` as long as it
  // has any, and then restores the thread's policy. Only calls `f` if there is one node, if `node` does not exist, or
  // if the thread's policy was already chosen (numactl). If the system refuses, `f` is called nevertheless, and the
  // result says why.
  absl::Status OnNode(int node, const std::function<void()>& f) const;
  // Makes the calling thread run on the processors of `node` from now on. Does nothing if there is one node, if `node`
  // does not exist, or if the thread's processors were already chosen (taskset). Unavailable: the system refuses.
  absl::Status RunOnNode(int node) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  using Handle = std::unique_ptr<hwloc_topology, Destroy>;

  explicit Topology(Handle handle) : handle_(std::move(handle)) {}
  static absl::StatusOr<Topology> Load(const std::function<int(hwloc_topology*)>& describe);

  Handle handle_;
};

}  // namespace penstock::memory
