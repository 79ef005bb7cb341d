// RegionOperations: what the regions of a slot's graphs are to do in the slot's next run.
//
// Ownership: owns the lists, the images of regions on a CUDA device and the times of their nodes; borrows the slot.
// Threads:   used only by the slot's owner.
// Errors:    the driver's and the pool's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/runtime/graph_exec/region_timestamps.h"
#include "src/runtime/graph_exec/resident_image.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

// What a node of a region does, with what the slot holds.
driver::NodeOp OperationOf(const SlotTables& tables, const GraphNodeEntry& node);

class RegionOperations {
 public:
  explicit RegionOperations(Slot& slot) : slot_(slot) {}

  // Must be called first. `timed`: the nodes of regions have times.
  absl::Status Make(bool timed);
  // The operation for the slot's next run, valid until the next call.
  const driver::RegionOp& Of(RegionId region);
  // One that is harmless but must be replaced before it runs: each of its operations does `part`, which must outlive
  // it.
  const driver::RegionOp& Placeholder(RegionId region, const driver::FillOp& part);
  // The region is to do what the slot holds now.
  void Write(RegionId region);
  // Before the graph with the regions is launched on the stream.
  absl::Status Refresh(driver::Stream stream);
  // Whether all nodes of the region, or one, have nothing to do.
  bool IsEmpty(RegionId region) const;
  bool IsEmpty(const GraphNodeEntry& node) const;
  // When its nodes ran; null: they have no times.
  RegionTimestamps* timestamps(RegionId region) const { return regions_[region].timestamps.get(); }

 private:
  struct Region {
    std::vector<driver::NodeOp> ops;
    std::vector<driver::RegionOp::Edge> edges;  // if not those of the entry
    std::unique_ptr<ResidentImage> image;  // null on a host device
    std::unique_ptr<RegionTimestamps> timestamps;
  };
  absl::Status MakeRegion(const RegionEntry& entry, const driver::DeviceRef& device, bool timed);

  Slot& slot_;
  Table<RegionId, Region> regions_;
  std::vector<driver::NodeOp> placeholder_;
  driver::RegionOp op_;
};

}  // namespace penstock::runtime
