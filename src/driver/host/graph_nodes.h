// The nodes of a host driver's graph: operations, the edges between them, and the nodes of children inlined among them.
//
// A child's nodes stand between two empty nodes. The first waits for the child's predecessors, and the child's roots
// wait for it; the last waits for all of the child's nodes, and the child's successors wait for it. So a launch sees
// only operations and edges, however deeply children are nested.
//
// Ownership: copies a kernel's arguments; borrows everything else that operations point to.
// Threads:   plain values; the operations they share never change.
// Errors:    InvalidArgument for numbers, edges and operations that no node can have; SetChild: FailedPrecondition.
//            After an error nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/driver/host/tasks.h"

namespace penstock::driver::host {

// An operation with its own copy of a kernel's arguments.
class KeptOp {
 public:
  // `op` has passed a WorkMaker, so its arguments lie in their block.
  explicit KeptOp(const NodeOp& op);
  KeptOp(const KeptOp&) = delete;  // a kernel points into it
  KeptOp& operator=(const KeptOp&) = delete;

  NodeOp op() const {
    return std::visit([](const auto& of) { return NodeOp(&of); }, op_);
  }

 private:
  std::variant<CopyOp, BatchOp, FillOp, KernelOp> op_;
  std::unique_ptr<const ArgBlock> args_;  // for a kernel
  std::vector<uint32_t> pointer_offsets_;
};

struct GraphNode {
  std::shared_ptr<const KeptOp> kept{};  // null: the first or last node of a child, which does nothing
  std::vector<int32_t> after{};  // earlier nodes, by index in all()
  int priority = 0;
  bool enabled = true;
};

class GraphNodes {
 public:
  // For a graph that is built, or for a capture.
  GraphNodes(int device, bool captured) : device_(device), captured_(captured) {}

  int device() const { return device_; }
  // All nodes, children's included, each after its predecessors.
  const std::vector<GraphNode>& all() const { return all_; }
  // The number of nodes; a child counts as one.
  int32_t count() const { return static_cast<int32_t>(captured_ ? all_.size() : numbered_.size()); }
  // Describes the node at an index in all(): "node 3 of a graph", "node 0 of the child that is node 2 of a graph".
  std::string TextOf(size_t place) const;

  // As in driver.h. The operations have passed a WorkMaker.
  absl::StatusOr<int32_t> Add(std::span<const int32_t> after, const NodeOp& op, int priority);
  absl::StatusOr<int32_t> AddChild(std::span<const int32_t> after, const GraphNodes& child);
  absl::Status Set(int32_t node, const NodeOp& op);
  absl::Status SetChild(int32_t node, const GraphNodes& child);
  absl::Status Enable(int32_t node, bool enabled);
  // Appends a captured operation after the one before.
  void Append(const NodeOp& op, int priority);

 private:
  // The indices in all() of a numbered node, one except for children: [first, end).
  struct Places {
    int32_t first = 0, end = 0;
  };
  int32_t Number(int32_t first);
  bool IsChild(const Places& places) const { return all_[static_cast<size_t>(places.first)].kept == nullptr; }
  absl::StatusOr<std::vector<int32_t>> EndsOf(std::span<const int32_t> after) const;
  absl::StatusOr<Places> PlacesOf(int32_t node) const;
  absl::StatusOr<GraphNode*> OwnOf(int32_t node);

  int device_;
  bool captured_;
  std::vector<GraphNode> all_;
  std::vector<Places> numbered_;  // empty for a capture
};

}  // namespace penstock::driver::host
