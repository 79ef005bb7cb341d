#include "src/driver/node_op.h"

#include <array>
#include <variant>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver {
namespace {

constexpr std::array<const char*, std::variant_size_v<NodeOp>> kKinds = {"copy", "batch", "fill", "kernel", "region"};

constexpr size_t kCopyKind = 0;  // NodeOp::index

absl::Status Nothing(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("a node of a graph cannot ", what, "; disable the node instead"));
}

bool IsLine(const CopyOp& op) {
  const CopyOp least = Collapse(op);
  return least.height == 1 && least.depth == 1;
}

bool AreWholeRows(size_t slice, size_t pitch) { return pitch != 0 && slice % pitch == 0; }

absl::Status Check(const CopyOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const CopySize size, SizeOf(op));
  if (size.bytes == 0) return Nothing("copy 0 bytes");
  const CopyOp least = Collapse(op);
  if (least.depth == 1) return absl::OkStatus();
  if (AreWholeRows(least.dst_slice, least.dst_pitch) && AreWholeRows(least.src_slice, least.src_pitch)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("CUDA's graphs copy slices that lie a whole number of rows apart, and these lie ", least.dst_slice,
                   " and ", least.src_slice, " bytes apart with row pitches ", least.dst_pitch, " and ",
                   least.src_pitch, "; make it a batch"));
}

absl::Status Check(const BatchOp& op) {
  if (op.kind == CopyKind::kPeer) {
    return absl::InvalidArgumentError("a batch stays on one device; make each copy between devices a node");
  }
  if (op.count == 0 || op.size.bytes == 0) return Nothing("copy a batch of nothing, or of a size that is not said");
  if (op.pieces == nullptr) return absl::InvalidArgumentError("a batch of pieces has no table");
  return absl::OkStatus();
}

absl::Status Check(const FillOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  return size.bytes == 0 ? Nothing("fill 0 bytes") : absl::OkStatus();
}

absl::Status Check(const KernelOp& op) {
  const bool blocks = op.grid[0] != 0 && op.grid[1] != 0 && op.grid[2] != 0;
  const bool rows = op.range == nullptr || op.rows != 0;  // a driver reports fewer rows in more detail
  return blocks && rows ? absl::OkStatus() : Nothing("be a kernel of no blocks or rows");
}

absl::Status CheckPart(const CopyOp& op) {
  if (op.kind == CopyKind::kDeviceToDevice) return SizeOf(op).status();
  return absl::InvalidArgumentError("a region copies within its device only; make the copy a node of its own");
}
absl::Status CheckPart(const FillOp& op) { return SizeOf(op).status(); }
absl::Status CheckPart(const KernelOp& op) {
  if (op.range != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("a region has only kernels over rows; make a callable a node of its own");
}
absl::Status CheckPart(const BatchOp& /*op*/) {
  return absl::InvalidArgumentError("a batch of copies is in no region; make it a node of its own");
}
absl::Status CheckPart(const RegionOp& /*op*/) {
  return absl::InvalidArgumentError("a region is in no other; give one all operations");
}

absl::Status Check(const RegionOp& op) {
  if (op.ops.empty()) return Nothing("be a region of no operations");
  for (const NodeOp& part : op.ops) {
    PENSTOCK_RETURN_IF_ERROR(std::visit([](const auto* of) { return CheckPart(*of); }, part));
  }
  for (const RegionOp::Edge& edge : op.edges) {
    if (edge.before >= 0 && edge.before < edge.after && edge.after < static_cast<int32_t>(op.ops.size())) continue;
    return absl::InvalidArgumentError(absl::StrCat("operation ", edge.after, " of a region of ", op.ops.size(),
                                                   " cannot come after operation ", edge.before,
                                                   "; name an earlier one"));
  }
  return absl::OkStatus();
}

}  // namespace

NodeShape ShapeOf(const NodeOp& op) {
  NodeShape shape{.kind = op.index()};
  if (const auto* const copy = std::get_if<const CopyOp*>(&op)) {
    shape.copy = (*copy)->kind;
    shape.line = IsLine(**copy);
    if ((*copy)->kind == CopyKind::kPeer)
      shape.dst_device = (*copy)->dst_device, shape.src_device = (*copy)->src_device;
  }
  if (const auto* const batch = std::get_if<const BatchOp*>(&op)) shape.copy = (*batch)->kind;
  if (const auto* const kernel = std::get_if<const KernelOp*>(&op)) shape.awaits = (*kernel)->awaits;
  if (const auto* const region = std::get_if<const RegionOp*>(&op)) shape.parts = (*region)->ops.size();
  return shape;
}

bool IsPeerCopy(const NodeOp& op) {
  const auto* const copy = std::get_if<const CopyOp*>(&op);
  const auto* const batch = std::get_if<const BatchOp*>(&op);
  return (copy != nullptr && (*copy)->kind == CopyKind::kPeer) ||
         (batch != nullptr && (*batch)->kind == CopyKind::kPeer);
}

absl::Status CheckNode(const NodeOp& op) {
  return std::visit([](const auto* of) { return Check(*of); }, op);
}

absl::Status CheckReplacement(const NodeShape& before, const NodeShape& after) {
  if (after.kind != before.kind) {
    return absl::InvalidArgumentError(absl::StrCat("a node keeps its kind of operation; this one is a ",
                                                   kKinds[before.kind], " and cannot become a ", kKinds[after.kind]));
  }
  if (after.copy != before.copy) {
    return absl::InvalidArgumentError("a copy in a graph keeps its direction (CopyKind)");
  }
  if (after.dst_device != before.dst_device || after.src_device != before.src_device) {
    return absl::InvalidArgumentError("a copy between devices keeps both of them in a graph; make another graph");
  }
  if (after.awaits != before.awaits) {
    return absl::InvalidArgumentError(
        "a kernel that begins by waiting for what it depends on and one that does not cannot take each other's place "
        "in a graph, whose edges differ; make another graph");
  }
  if (after.parts != before.parts) {
    return absl::InvalidArgumentError(absl::StrCat("a region keeps the number of its operations; this one has ",
                                                   before.parts, " and cannot have ", after.parts));
  }
  if (after.kind != kCopyKind || (before.line && after.line)) return absl::OkStatus();
  return absl::InvalidArgumentError("CUDA's graphs take new addresses for copies of lines only; make it a batch");
}

absl::Status NodesOfACapture() {
  return absl::InvalidArgumentError(
      "a captured graph stays as it is and its nodes have no numbers; make it a child of another graph");
}

absl::Status NodeIsAChild(int32_t node) {
  return absl::InvalidArgumentError(absl::StrCat(
      "node ", node,
      " is a child or calls the host: it is neither switched nor given an operation; of a child, see SetChild"));
}

absl::Status NodeIsNoChild(int32_t node) {
  return absl::InvalidArgumentError(absl::StrCat("node ", node, " is no child; see SetNode"));
}

absl::Status ChildOfItself() { return absl::InvalidArgumentError("a graph cannot be a child of itself"); }

absl::Status CheckDeviceInABody(int body_device, int device) {
  if (device == body_device) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a body of device ", body_device, " can have nothing of device ", device));
}

absl::Status PeerCopyInABody() {
  return absl::InvalidArgumentError("a body copies within its device only; copy between devices before or after it");
}

}  // namespace penstock::driver
