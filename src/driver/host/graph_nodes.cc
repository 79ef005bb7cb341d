#include "src/driver/host/graph_nodes.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/conditional_rules.h"
#include "src/driver/node_op.h"

namespace penstock::driver::host {
namespace {

absl::Status AnotherStructure(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("a child is given a graph of its own structure only, and ", what, "; instantiate the graph again"));
}

// Checks that `next` may replace `now`, `place` nodes after the first of its child; `shift` is the distance from the
// edges of `next` to those of `now`.
absl::Status CheckStandsFor(const GraphNode& now, const GraphNode& next, int32_t place, int32_t shift) {
  const auto of = [place](const char* what) { return absl::StrCat("node ", place - 1, " of this one ", what); };
  if ((now.kept == nullptr) != (next.kept == nullptr)) return AnotherStructure(of("is a child, or was one"));
  if (now.calls_host != next.calls_host) return AnotherStructure(of("is a call of the host, or was one"));
  const bool same_edges = std::equal(now.after.begin(), now.after.end(), next.after.begin(), next.after.end(),
                                     [shift](int32_t mine, int32_t other) { return mine == other + shift; });
  if (!same_edges) return AnotherStructure(of("comes after others"));
  if (now.priority != next.priority) return AnotherStructure(of("has another priority"));
  if (now.device != next.device) return AnotherStructure(of("is on another device"));
  if (now.kept == nullptr) return absl::OkStatus();
  absl::Status status = CheckReplacement(now.kept->shape(), next.kept->shape());
  if (status.ok()) return status;
  return AnotherStructure(absl::StrCat(of("cannot take the place of the one before: "), status.message()));
}

}  // namespace

KeptOp::KeptOp(const NodeOp& op, std::shared_ptr<const RegionTasks> tasks)
    : shape_(ShapeOf(op)), tasks_(std::move(tasks)) {
  std::visit([this](const auto* of) { op_ = *of; }, op);
  if (auto* const region = std::get_if<RegionOp>(&op_)) *region = {.ops = {}, .edges = {}, .tag = region->tag};
  auto* const kernel = std::get_if<KernelOp>(&op_);
  if (!kernel) return;
  args_ = std::make_unique<const ArgBlock>(*kernel);
  pointer_offsets_.assign(kernel->pointer_offsets, kernel->pointer_offsets + kernel->pointer_count);
  kernel->argv = args_->argv();
  kernel->args = args_->data();
  kernel->pointer_offsets = pointer_offsets_.data();
}

// --- edges and numbers ---

// The last indices of the nodes in `after`, which must be earlier nodes, each named once.
absl::StatusOr<std::vector<int32_t>> GraphNodes::EndsOf(std::span<const int32_t> after) const {
  if (captured_) return NodesOfACapture();
  std::vector<int32_t> ends, sorted(after.begin(), after.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] < 0 || after[i] >= count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", count(), " of a graph cannot come after node ", after[i], "; name earlier nodes"));
    }
    if (twice != sorted.end() && after[i] == *twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", count(), " of a graph comes after node ", after[i], " twice; name it once"));
    }
    ends.push_back(numbered_[static_cast<size_t>(after[i])].end - 1);
  }
  return ends;
}

std::string GraphNodes::TextOf(size_t place) const {
  const auto at = std::upper_bound(numbered_.begin(), numbered_.end(), place,
                                   [](size_t p, const Places& of) { return p < static_cast<size_t>(of.end); });
  if (at == numbered_.end()) return absl::StrCat("node ", place, " of a captured graph");
  std::string number = absl::StrCat("node ", at - numbered_.begin(), " of a graph");
  if (!IsChild(*at)) return number;
  return absl::StrCat("node ", static_cast<int64_t>(place) - at->first - 1, " of the child that is ", number);
}

// Gives the next number to all entries from index `first` on.
int32_t GraphNodes::Number(int32_t first) {
  numbered_.push_back({first, static_cast<int32_t>(all_.size())});
  return count() - 1;
}

absl::StatusOr<GraphNodes::Places> GraphNodes::PlacesOf(int32_t node) const {
  if (captured_) return NodesOfACapture();
  if (node >= 0 && node < count()) return numbered_[static_cast<size_t>(node)];
  return absl::InvalidArgumentError(absl::StrCat("there is no node ", node, "; this graph has ", count()));
}

// A node with one operation, of which SetNode and EnableNode know.
absl::StatusOr<GraphNode*> GraphNodes::OwnOf(int32_t node) {
  PENSTOCK_ASSIGN_OR_RETURN(const Places places, PlacesOf(node));
  if (IsChild(places) || all_[static_cast<size_t>(places.first)].calls_host) return NodeIsAChild(node);
  if (all_[static_cast<size_t>(places.first)].bodies) return NodeIsConditional(node);
  return &all_[static_cast<size_t>(places.first)];
}

// --- operations ---

absl::StatusOr<int32_t> GraphNodes::Add(std::span<const int32_t> after, std::shared_ptr<const KeptOp> op,
                                        NodePlace place) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<int32_t> ends, EndsOf(after));
  all_.push_back({.kept = std::move(op),
                  .after = std::move(ends),
                  .priority = place.priority,
                  .device = place.device < 0 ? device_ : place.device});
  return Number(static_cast<int32_t>(all_.size()) - 1);
}

absl::StatusOr<int32_t> GraphNodes::AddHost(std::span<const int32_t> after, const NodeOp& call) {
  if (body_) return HostCallInABody();
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t node, Add(after, std::make_shared<const KeptOp>(call), {}));
  all_.back().calls_host = true;
  return node;
}

void GraphNodes::Append(const NodeOp& op, int priority) {
  std::vector<int32_t> after;
  if (!all_.empty()) after.push_back(static_cast<int32_t>(all_.size()) - 1);
  all_.push_back(
      {.kept = std::make_shared<const KeptOp>(op), .after = std::move(after), .priority = priority, .device = device_});
}

absl::Status GraphNodes::Set(int32_t node, std::shared_ptr<const KeptOp> op) {
  PENSTOCK_ASSIGN_OR_RETURN(GraphNode* const own, OwnOf(node));
  PENSTOCK_RETURN_IF_ERROR(CheckReplacement(own->kept->shape(), op->shape()));
  own->kept = std::move(op);
  return absl::OkStatus();
}

absl::StatusOr<int> GraphNodes::DeviceOf(NodePlace place, const NodeOp& op) const {
  const int device = place.device < 0 ? device_ : place.device;
  if (!body_) return device;
  PENSTOCK_RETURN_IF_ERROR(CheckDeviceInABody(device_, device));
  if (IsPeerCopy(op)) return PeerCopyInABody();
  return device;
}

absl::StatusOr<int> GraphNodes::DeviceOf(int32_t node) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Places places, PlacesOf(node));
  return all_[static_cast<size_t>(places.first)].device;
}

absl::Status GraphNodes::Enable(int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(GraphNode* const own, OwnOf(node));
  own->enabled = enabled;
  return absl::OkStatus();
}

// --- children ---

absl::Status GraphNodes::CheckChild(const GraphNodes& child) const {
  for (const GraphNode& node : child.all_) {
    if (body_ && node.kept != nullptr) PENSTOCK_RETURN_IF_ERROR(CheckDeviceInABody(device_, node.device));
  }
  if (child.body_) return BodyIsNoChild();
  if (child.has_conditional()) return ConditionalInAChild();
  if (child.has_switch()) return SwitchInAChild();
  const bool calls_host =
      std::any_of(child.all_.begin(), child.all_.end(), [](const GraphNode& node) { return node.calls_host; });
  return body_ && calls_host ? ChildCannotBeInABody("a call of the host") : absl::OkStatus();
}

absl::StatusOr<int32_t> GraphNodes::AddChild(std::span<const int32_t> after, const GraphNodes& child) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<int32_t> ends, EndsOf(after));
  PENSTOCK_RETURN_IF_ERROR(CheckChild(child));
  const auto first = static_cast<int32_t>(all_.size());
  all_.push_back({.after = std::move(ends), .device = child.device_});
  std::vector<int32_t> before_last = {first};
  for (const GraphNode& node : child.all_) {
    before_last.push_back(static_cast<int32_t>(all_.size()));
    GraphNode& added = all_.emplace_back(node);
    for (int32_t& place : added.after) place += first + 1;
    if (added.after.empty()) added.after.push_back(first);
  }
  all_.push_back({.after = std::move(before_last), .device = child.device_});
  return Number(first);
}

absl::Status GraphNodes::SetChild(int32_t node, const GraphNodes& child) {
  PENSTOCK_ASSIGN_OR_RETURN(const Places places, PlacesOf(node));
  if (!IsChild(places)) return NodeIsNoChild(node);
  GraphNodes next(device_, body_ ? Kind::kBody : Kind::kBuilt);
  PENSTOCK_RETURN_IF_ERROR(next.AddChild({}, child).status());
  const std::span<GraphNode> now =
      std::span(all_).subspan(static_cast<size_t>(places.first), static_cast<size_t>(places.end - places.first));
  if (now.size() != next.all_.size()) {
    return AnotherStructure(
        absl::StrCat("this one has ", next.all_.size() - 2, " operations where it has ", now.size() - 2));
  }
  for (size_t i = 1; i < now.size(); ++i) {  // the predecessors of the first are not the child's
    PENSTOCK_RETURN_IF_ERROR(CheckStandsFor(now[i], next.all_[i], static_cast<int32_t>(i), places.first));
  }
  for (size_t i = 1; i < now.size(); ++i) now[i].kept = next.all_[i].kept;
  return absl::OkStatus();
}

// --- conditional nodes ---

bool GraphNodes::has_conditional() const {
  return std::any_of(all_.begin(), all_.end(), [](const GraphNode& node) { return node.bodies != nullptr; });
}

bool GraphNodes::has_switch() const {
  return std::any_of(all_.begin(), all_.end(), [](const GraphNode& node) { return node.is_on != nullptr; });
}

absl::StatusOr<NodeSwitch> GraphNodes::AddSwitch(int32_t node) {
  PENSTOCK_ASSIGN_OR_RETURN(const Places places, PlacesOf(node));
  GraphNode& of = all_[static_cast<size_t>(places.first)];
  if (!of.kept || of.calls_host || std::holds_alternative<const CopyOp*>(of.kept->op())) return NodeHasNoSwitch(node);
  if (of.is_on) return SwitchedBefore(node);
  of.is_on = std::make_shared<uint32_t>(1);
  return NodeSwitch{reinterpret_cast<uintptr_t>(of.is_on.get())};
}

absl::StatusOr<ConditionalHandle> GraphNodes::CreateConditional() {
  if (captured_) return NodesOfACapture();
  unused_.push_back(std::make_shared<uint32_t>(0));
  return ConditionalHandle{reinterpret_cast<uintptr_t>(unused_.back().get())};
}

absl::StatusOr<int32_t> GraphNodes::AddConditional(std::span<const int32_t> after, ConditionalHandle handle,
                                                   ConditionalKind kind, int32_t bodies) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<int32_t> ends, EndsOf(after));
  PENSTOCK_RETURN_IF_ERROR(CheckBodies(kind, bodies));
  const auto value = std::find_if(unused_.begin(), unused_.end(),
                                  [&](const auto& of) { return reinterpret_cast<uintptr_t>(of.get()) == handle.bits; });
  if (value == unused_.end()) return NoSuchHandle();
  Bodies made{.kind = kind, .value = std::move(*value), .graphs = {}};
  unused_.erase(value);
  for (int32_t i = 0; i < bodies; ++i) made.graphs.push_back(std::make_shared<GraphNodes>(device_, Kind::kBody));
  all_.push_back(
      {.bodies = std::make_shared<const Bodies>(std::move(made)), .after = std::move(ends), .device = device_});
  return Number(static_cast<int32_t>(all_.size()) - 1);
}

std::shared_ptr<GraphNodes> GraphNodes::Clone(
    const std::function<void(const GraphNodes&, const std::shared_ptr<GraphNodes>&)>& on_body) const {
  auto clone = std::make_shared<GraphNodes>(*this);
  for (GraphNode& node : clone->all_) {
    if (!node.bodies) continue;
    Bodies bodies = *node.bodies;
    for (std::shared_ptr<GraphNodes>& body : bodies.graphs) {
      const std::shared_ptr<GraphNodes> original = std::move(body);
      body = original->Clone(on_body);
      on_body(*original, body);
    }
    node.bodies = std::make_shared<const Bodies>(std::move(bodies));
  }
  return clone;
}

}  // namespace penstock::driver::host
