// RegionTimestamps: when the nodes of a region of one slot began and ended in a run, if the executable has a trace.
//
// On a host device an operation before the first node and one after each record the time, so a node begins where the
// one before it ends. On a CUDA device the region's workers record them (penstock/detail/resident_protocol.h).
//
// Ownership: owns the memory of the times, which is pinned, and the operations that write it; regions borrow these.
// Threads:   used only by the slot's owner; the slot's last run has ended when it is asked or forgets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/graph_exec/node_timestamps.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

class RegionTimestamps {
 public:
  // `memory`: room for BytesOf the region.
  static size_t BytesOf(const RegionEntry& region) { return 2 * region.nodes.size() * sizeof(uint64_t); }
  RegionTimestamps(const RegionEntry& region, memory::PinnedBlock memory, driver::RunFault* fault);
  RegionTimestamps(const RegionTimestamps&) = delete;
  RegionTimestamps& operator=(const RegionTimestamps&) = delete;

  // For a host device: the operations of the region among those that record the time, each of which comes after the one
  // before it. So the checking driver does not see in a traced run whether the region's own edges suffice.
  std::vector<driver::NodeOp> Among(std::span<const driver::NodeOp> ops) const;
  std::vector<driver::RegionOp::Edge> Edges() const;
  // For ResidentImage.
  uint64_t* memory() const { return static_cast<uint64_t*>(memory_.data()); }

  NodeTimestamps::Times Of(size_t node) const;
  // The worker of a node; -1 on a host device.
  int32_t WorkerOf(size_t node) const {
    return region_.schedule.worker_of.empty() ? -1 : region_.schedule.worker_of[node];
  }
  void Forget();

 private:
  // Writes the time to some words.
  struct Recording final : driver::UseSource {
    std::span<uint64_t> words;
    void* argv = &words;
    driver::KernelOp op;
    void AppendUses(int32_t node, std::vector<driver::MemoryUse>& out) const override;
  };
  void MakeRecordings(driver::RunFault* fault);

  const RegionEntry& region_;
  const memory::PinnedBlock memory_;  // two words of each node
  std::vector<size_t> place_;  // of each node among them; empty: in their order
  std::vector<Recording> recordings_;
};

}  // namespace penstock::runtime
