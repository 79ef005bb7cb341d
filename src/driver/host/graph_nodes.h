// The nodes of a host driver's graph: operations, the edges between them, and the nodes of its children among them.
//
// A child's nodes stand between two that do nothing. The first waits for what the child comes after, and those of the
// child's that wait for nothing wait for it; the last waits for them all, and who comes after the child waits for that.
// So a launch sees operations and edges only, however deep children lie in one another.
//
// Ownership: copies what a kernel's arguments are; borrows all else that operations point at.
// Threads:   plain values; the operations they share never change.
// Errors:    InvalidArgument for numbers, edges and operations that no node can have; SetChild: FailedPrecondition.
// Then
//            nothing has changed.
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
  // `op` has passed a WorkMaker: its arguments lie in their block.
  explicit KeptOp(const NodeOp& op);
  KeptOp(const KeptOp&) = delete;  // a kernel points into it
  KeptOp& operator=(const KeptOp&) = delete;

  NodeOp op() const {
    return std::visit([](const auto& of) { return NodeOp(&of); }, op_);
  }

 private:
  std::variant<CopyOp, BatchOp, FillOp, KernelOp> op_;
  std::unique_ptr<const ArgBlock> args_;  // of a kernel
  std::vector<uint32_t> pointer_offsets_;
};

struct GraphNode {
  std::shared_ptr<const KeptOp> kept{};  // null: the first or the last of a child, which does nothing
  std::vector<int32_t> after{};  // earlier ones, by their places among all
  int priority = 0;
  bool enabled = true;
};

class GraphNodes {
 public:
  // Of a graph that is built, or of a capture.
  GraphNodes(int device, bool captured) : device_(device), captured_(captured) {}

  int device() const { return device_; }
  // With those of children, each behind those it comes after.
  const std::vector<GraphNode>& all() const { return all_; }
  // A child is one.
  int32_t count() const { return static_cast<int32_t>(captured_ ? all_.size() : numbered_.size()); }
  // Of a place among all: "node 3 of a graph", "node 0 of the child that is node 2 of a graph".
  std::string TextOf(size_t place) const;

  // As in driver.h. Operations have passed a WorkMaker.
  absl::StatusOr<int32_t> Add(std::span<const int32_t> after, const NodeOp& op, int priority);
  absl::StatusOr<int32_t> AddChild(std::span<const int32_t> after, const GraphNodes& child);
  absl::Status Set(int32_t node, const NodeOp& op);
  absl::Status SetChild(int32_t node, const GraphNodes& child);
  absl::Status Enable(int32_t node, bool enabled);
  // What a capture does: behind the one before.
  void Append(const NodeOp& op, int priority);

 private:
  // The places of a node's own, one but for children: [first, end).
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
  std::vector<Places> numbered_;  // none of a capture
};

}  // namespace penstock::driver::host
