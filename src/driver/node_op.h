// What a graph takes as a node, and what a node may be given instead: the rules of graphs (driver.h) that hold for
// every driver.
//
// Threads: pure functions.
// Errors:  InvalidArgument, with what to do instead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// Of a node, what another operation in its place must have too.
struct NodeShape {
  size_t kind = 0;  // NodeOp::index
  CopyKind copy = CopyKind::kHostToDevice;  // of copies and batches
  bool line = false;  // a copy of one row, or of rows without gaps
  bool awaits = false;  // of kernels: the edges to one that does are others
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};
NodeShape ShapeOf(const NodeOp& op);

// Whether `op` may be a node. Looks at no memory: of a batch the table may still be empty.
absl::Status CheckNode(const NodeOp& op);
// Whether `op`, which may be a node, may take the place of one of that shape.
absl::Status CheckReplacement(const NodeShape& before, const NodeOp& op);

// What is said of a node of a captured graph that is named, or added.
absl::Status NodesOfACapture();
// What SetNode and EnableNode say of a child, and SetChild of any other node.
absl::Status NodeIsAChild(int32_t node);
absl::Status NodeIsNoChild(int32_t node);
// What AddChild says of a graph that is to be a node of itself.
absl::Status ChildOfItself();
// What AddChild and SetChild say of a graph of another device.
absl::Status CheckChildDevice(int device, int child_device);

}  // namespace penstock::driver
