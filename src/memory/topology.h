// Topology: the NUMA nodes of this computer, which of them a PCI device hangs on, and host memory taken from a chosen
// one. A thin face of hwloc, which topology.cc alone includes.
//
// Nodes are numbered from 0 as hwloc does (its logical index). A virtual machine often shows one, whatever is below it.
//
// Ownership: owns hwloc's topology.
// Threads:   thread-safe: nothing changes after it is made. OnNode changes the calling thread's memory policy
//            only, RunOnNode its processors.
// Errors:    Of...: Unavailable (hwloc cannot read this computer), InvalidArgument (a description it does not take).
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
  // For tests, as if this computer were so: hwloc's short description ("numa:2 core:4"), or the XML that `lstopo`
  // writes, which may have PCI devices. Memory policies then really are set, as far as the nodes exist.
  static absl::StatusOr<Topology> OfDescription(const std::string& description);
  static absl::StatusOr<Topology> OfXml(const std::string& xml);

  int nodes() const;  // at least 1
  int processors(int node) const;  // of a node there is
  // The node nearest to the device at "0000:3b:00.0"; -1 where there is no such device, or no node is nearer to it than
  // the others.
  int NodeNear(const std::string& pci_bus_id) const;
  // Calls `f` while memory that this thread touches first comes from `node` as long as it has any, and then puts the
  // thread's policy back. With one node, or where `node` is none, or where somebody (numactl) has chosen a policy for
  // the thread, it only calls. Where the system refuses, `f` is called all the same and the result says why.
  absl::Status OnNode(int node, const std::function<void()>& f) const;
  // Has the calling thread run on the processors of `node` from now on. With one node, or where `node` is none, or
  // where somebody (taskset) has chosen processors for the thread, it stays as it is. Unavailable: the system refuses.
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
