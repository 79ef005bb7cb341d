// Which operations may be graph nodes, and which may replace a node's operation: the rules of graphs (driver.h) that
// hold for every driver.
//
// Threads:   pure functions.
// Errors:    InvalidArgument, with what to do instead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// The properties of a node that a replacement must share.
struct NodeShape {
  size_t kind = 0;  // NodeOp::index
  CopyKind copy = CopyKind::kHostToDevice;  // for copies and batches
  int dst_device = -1, src_device = -1;  // of a copy between devices
  bool line = false;  // a copy of one row, or of rows without gaps
  bool awaits = false;  // for kernels: edges to one that awaits are different
  size_t parts = 0;  // of a region
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};
NodeShape ShapeOf(const NodeOp& op);

// Whether it is a copy, or a batch, between devices.
bool IsPeerCopy(const NodeOp& op);

// Checks that `op` may be a node. Reads no memory: a batch's table may still be empty.
absl::Status CheckNode(const NodeOp& op);
// Checks that an operation that may be a node may replace another, by their shapes.
absl::Status CheckReplacement(const NodeShape& before, const NodeShape& after);

// The error for naming or adding a node in a captured graph.
absl::Status NodesOfACapture();
// The errors of SetNode and EnableNode for a child or a call of the host, and of SetChild for what is no child.
absl::Status NodeIsAChild(int32_t node);
absl::Status NodeIsNoChild(int32_t node);
// The error of AddChild for a graph that would be a node of itself.
absl::Status ChildOfItself();
// The error of a node or a child on another device than the body that is to have it.
absl::Status CheckDeviceInABody(int body_device, int device);
// The error of a copy between devices in a body.
absl::Status PeerCopyInABody();

}  // namespace penstock::driver
