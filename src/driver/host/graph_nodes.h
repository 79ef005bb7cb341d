// The nodes of a host driver's graph: operations, the edges between them, and the nodes of children inlined among them.
//
// A child's nodes stand between two empty nodes. The first waits for the child's predecessors, and the child's roots
// wait for it; the last waits for all of the child's nodes, and the child's successors wait for it. So a launch sees
// only operations and edges, however deeply children are nested.
//
// A conditional node has the value that its handle stands for, and bodies, which are lists of nodes of their own.
//
// Ownership: copies a kernel's arguments; borrows everything else that operations point to. Shares the bodies and the
//            values: Clone copies the former.
// Threads:   plain values; the operations they share never change.
// Errors:    InvalidArgument for numbers, edges and operations that no node can have; SetChild: FailedPrecondition, and
//            for what conditional nodes refuse. After an error nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "src/driver/node_op.h"

namespace penstock::driver::host {

// An operation with its own copy of a kernel's arguments, or the tasks of a region in place of its operations.
class KeptOp {
 public:
  // `op` has passed a WorkMaker, so its arguments lie in their block. `tasks`: of a region.
  explicit KeptOp(const NodeOp& op, std::shared_ptr<const RegionTasks> tasks = nullptr);
  KeptOp(const KeptOp&) = delete;  // a kernel points into it
  KeptOp& operator=(const KeptOp&) = delete;

  NodeOp op() const {
    return std::visit([](const auto& of) { return NodeOp(&of); }, op_);
  }
  const NodeShape& shape() const { return shape_; }
  const std::shared_ptr<const RegionTasks>& tasks() const { return tasks_; }

 private:
  std::variant<CopyOp, BatchOp, FillOp, KernelOp, RegionOp> op_;  // a region's has no operations
  const NodeShape shape_;
  std::shared_ptr<const RegionTasks> tasks_;
  std::unique_ptr<const ArgBlock> args_;  // for a kernel
  std::vector<uint32_t> pointer_offsets_;
};

class GraphNodes;

// What a conditional node chooses, and by what: the handle is the value's address.
struct Bodies {
  ConditionalKind kind = ConditionalKind::kIf;
  std::shared_ptr<uint32_t> value;
  std::vector<std::shared_ptr<GraphNodes>> graphs;
};

struct GraphNode {
  // Null: the first or last node of a child, which does nothing, or a conditional node.
  std::shared_ptr<const KeptOp> kept{};
  std::shared_ptr<const Bodies> bodies{};  // of a conditional node
  std::vector<int32_t> after{};  // earlier nodes, by index in all()
  int priority = 0;
  int device = 0;  // of an operation
  bool enabled = true;
  bool calls_host = false;  // added by AddHost
  std::shared_ptr<uint32_t> is_on{};  // what AddSwitch returns the address of; null: it has no switch
};

class GraphNodes {
 public:
  enum class Kind : uint8_t { kBuilt, kCaptured, kBody };
  GraphNodes(int device, Kind kind) : device_(device), captured_(kind == Kind::kCaptured), body_(kind == Kind::kBody) {}
  // With bodies of its own; `on_body` is told each body and its copy.
  std::shared_ptr<GraphNodes> Clone(
      const std::function<void(const GraphNodes& body, const std::shared_ptr<GraphNodes>& copy)>& on_body) const;

  int device() const { return device_; }
  bool is_body() const { return body_; }
  bool has_conditional() const;
  bool has_switch() const;
  // All nodes, children's included, each after its predecessors.
  const std::vector<GraphNode>& all() const { return all_; }
  // The number of nodes; a child counts as one.
  int32_t count() const { return static_cast<int32_t>(captured_ ? all_.size() : numbered_.size()); }
  // Describes the node at an index in all(): "node 3 of a graph", "node 0 of the child that is node 2 of a graph".
  std::string TextOf(size_t place) const;

  // As in driver.h. The operations have passed a WorkMaker.
  absl::StatusOr<int32_t> Add(std::span<const int32_t> after, std::shared_ptr<const KeptOp> op, NodePlace place);
  absl::StatusOr<int32_t> AddHost(std::span<const int32_t> after, const NodeOp& call);
  absl::StatusOr<int32_t> AddChild(std::span<const int32_t> after, const GraphNodes& child);
  absl::Status Set(int32_t node, std::shared_ptr<const KeptOp> op);
  absl::Status SetChild(int32_t node, const GraphNodes& child);
  absl::Status Enable(int32_t node, bool enabled);
  // The device on which a node with this place is, or the numbered node is. Errors: of bodies, as in driver.h.
  absl::StatusOr<int> DeviceOf(NodePlace place, const NodeOp& op) const;
  absl::StatusOr<int> DeviceOf(int32_t node) const;
  // Appends a captured operation after the one before.
  void Append(const NodeOp& op, int priority);
  absl::StatusOr<ConditionalHandle> CreateConditional();
  // The bodies are those of the node.
  absl::StatusOr<int32_t> AddConditional(std::span<const int32_t> after, ConditionalHandle handle, ConditionalKind kind,
                                         int32_t bodies);
  absl::StatusOr<NodeSwitch> AddSwitch(int32_t node);
  const Bodies& bodies_of(int32_t node) const {
    return *all_[static_cast<size_t>(numbered_[static_cast<size_t>(node)].first)].bodies;
  }

 private:
  // The indices in all() of a numbered node, one except for children: [first, end).
  struct Places {
    int32_t first = 0, end = 0;
  };
  int32_t Number(int32_t first);
  bool IsChild(const Places& places) const { return places.end - places.first > 1; }
  absl::StatusOr<std::vector<int32_t>> EndsOf(std::span<const int32_t> after) const;
  absl::StatusOr<Places> PlacesOf(int32_t node) const;
  absl::StatusOr<GraphNode*> OwnOf(int32_t node);
  absl::Status CheckChild(const GraphNodes& child) const;

  int device_;
  bool captured_, body_;
  std::vector<GraphNode> all_;
  std::vector<Places> numbered_;  // empty for a capture
  std::vector<std::shared_ptr<uint32_t>> unused_;  // handles without a node
};

}  // namespace penstock::driver::host
