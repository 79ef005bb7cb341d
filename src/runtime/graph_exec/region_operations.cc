#include "src/runtime/graph_exec/region_operations.h"

#include <algorithm>
#include <utility>

#include "penstock/status_macros.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

}  // namespace

absl::Status RegionOperations::Make(bool timed) {
  const CompiledGraph& graph = slot_.graph();
  const GraphProgram& replay = graph.program().replay;
  if (replay.regions.empty()) return absl::OkStatus();
  const driver::DeviceRef& device = graph.device(graph.plan().lanes[replay.lane].device);
  for (const RegionEntry& entry : replay.regions) PENSTOCK_RETURN_IF_ERROR(MakeRegion(entry, device, timed));
  return absl::OkStatus();
}

absl::Status RegionOperations::MakeRegion(const RegionEntry& entry, const driver::DeviceRef& device, bool timed) {
  Region& region = regions_.emplace_back();
  const Slot::Options& options = slot_.options();
  if (timed) {
    PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock times,
                              options.pinned.Allocate(RegionTimestamps::BytesOf(entry), options.pinned_node));
    region.timestamps = std::make_unique<RegionTimestamps>(entry, std::move(times), &slot_.fault);
  }
  for (const GraphNodeEntry& node : entry.nodes) region.ops.push_back(OperationOf(slot_.tables, node));
  if (device.info.kind == driver::DeviceKind::kCuda) {
    PENSTOCK_ASSIGN_OR_RETURN(region.image,
                              ResidentImage::Create(slot_, device, {{.slot = &slot_, .region = &entry, .targets = {}}},
                                                    timed ? region.timestamps->memory() : nullptr));
  } else if (timed) {
    region.ops = region.timestamps->Among(region.ops);
    region.edges = region.timestamps->Edges();
  }
  return absl::OkStatus();
}

driver::NodeOp OperationOf(const SlotTables& tables, const GraphNodeEntry& node) {
  switch (node.op) {
    case Op::kFill: return &tables.fills[node.index];
    case Op::kCopy: return &tables.copies[node.index];
    default: return &tables.kernels[node.index];
  }
}

const driver::RegionOp& RegionOperations::Of(RegionId id) {
  const RegionEntry& entry = slot_.graph().program().replay.regions[id];
  const Region& region = regions_[id];
  op_ = {.ops = region.ops,
         .edges = region.edges.empty() ? entry.edges : region.edges,
         .tag = {&slot_.fault, entry.nodes[0].node}};
  if (region.image == nullptr) return op_;
  op_.resident = &region.image->op();
  return op_;
}

const driver::RegionOp& RegionOperations::Placeholder(RegionId id, const driver::FillOp& part) {
  Of(id);
  placeholder_.assign(regions_[id].ops.size(), &part);
  op_.ops = placeholder_;
  return op_;
}

void RegionOperations::Write(RegionId region) {
  if (regions_[region].image != nullptr) regions_[region].image->Write();
}

absl::Status RegionOperations::Refresh(driver::Stream stream) {
  for (const Region& region : regions_) {
    if (region.image != nullptr) PENSTOCK_RETURN_IF_ERROR(region.image->Refresh(stream));
  }
  return absl::OkStatus();
}

bool RegionOperations::IsEmpty(RegionId id) const {
  const std::vector<GraphNodeEntry>& nodes = slot_.graph().program().replay.regions[id].nodes;
  return std::all_of(nodes.begin(), nodes.end(), [this](const GraphNodeEntry& node) { return IsEmpty(node); });
}

bool RegionOperations::IsEmpty(const GraphNodeEntry& node) const {
  switch (node.op) {
    case Op::kFill: return driver::IsEmpty(slot_.tables.fills[node.index]);
    case Op::kCopy: return driver::IsEmpty(slot_.tables.copies[node.index]);
    default: return slot_.tables.kernels[node.index].rows == 0;
  }
}

}  // namespace penstock::runtime
