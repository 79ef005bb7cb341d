// Place: assigns each node its pinned device or, without a pin, the one of PlanOptions::placement or the default one.
// Host nodes run on workers and have none; those that a device requests by hostcall have that device. States, and
// buffers for which device memory is bound, have their contents on a device before and after the run: users who bind
// memory need not know where nodes are placed.
#include <algorithm>

#include "graph/common/is_asked_for.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

bool IsBoundOnDevice(const BufferFacts& buffer) {
  return !buffer.is_alias && IsBound(buffer.role) && buffer.where == Where::kDevice;
}

// -1: none is declared. A keyed State is on the device for which the plan is made.
DeviceId DeclaredHome(const Records& records, BufferId b) {
  const BufferDecl& decl = records.model.buffers[b];
  if (decl.role != BufferRole::kState) return IsBoundOnDevice(records.buffers[b]) ? DeviceId(decl.device) : DeviceId();
  const StateRecord* const state = decl.state.get();
  return state != nullptr ? DeviceId(state->device) : records.options.default_device;
}

// Device memory that is bound belongs to the device of the first node that uses it. Copy nodes could run on either
// device, so they count only if there are no others.
void FindBoundHomes(const Records& records, const Checked& checked, Placed& placed) {
  for (const bool copies : {false, true}) {
    for (const DeclId n : checked.sequence) {
      if (placed.device[n] < 0 || (records.nodes[n].kind == NodeKind::kCopy) != copies) continue;
      for (const BoxRef& ref : records.boxes[n]) {
        DeviceId& home = placed.home[ref.base];
        if (home < 0 && IsBoundOnDevice(records.buffers[ref.base])) home = placed.device[n];
      }
    }
  }
  for (const BufferId b : records.buffers.ids()) {
    if (placed.home[b] < 0 && IsBoundOnDevice(records.buffers[b])) placed.home[b] = records.options.default_device;
  }
}

// Prefers a device of the node's predecessors, so that it need not wait for another device first. A graph that does all
// its work on the host has no work that could wait, unless the device decides whether it runs.
void FindHostcallers(const Records& records, const Checked& checked, Placed& placed) {
  const PlanOptions& options = records.options;
  const auto may = [&](DeclId n) { return records.nodes[n].host_way != HostWay::kWorker; };
  const bool any = std::any_of(checked.sequence.begin(), checked.sequence.end(), may);
  const bool works = options.in_construct ||
                     std::any_of(placed.device.begin(), placed.device.end(), [](DeviceId d) { return d >= 0; });
  if (!any || !works) return;
  placed.calling_device.assign(records.nodes.size(), -1);
  for (const DeclId n : checked.sequence) {
    if (!may(n)) continue;
    DeviceId device;
    for (const DeclId p : checked.declared[n]) device = std::max({device, placed.device[p], placed.CallingDevice(p)});
    if (device < 0) device = options.default_device;
    if (IsAskedFor(records.nodes[n].host_way, options.devices[device].no_hostcalls)) placed.calling_device[n] = device;
  }
}

}  // namespace

Placed Place(const Records& records, const Checked& checked) {
  Placed placed;
  placed.device.reserve(records.nodes.size());
  for (const NodeFacts& node : records.nodes) {
    const DeviceId device = node.device >= 0 ? DeviceId(node.device) : records.options.default_device;
    placed.device.push_back(node.kind == NodeKind::kHost ? DeviceId() : device);
  }
  placed.home.assign(records.buffers.size(), -1);
  for (const BufferId b : records.buffers.ids()) {
    placed.home[b] = DeclaredHome(records, b);
  }
  if (std::any_of(records.buffers.begin(), records.buffers.end(), IsBoundOnDevice))
    FindBoundHomes(records, checked, placed);
  if (!records.options.placement.empty()) {
    for (const DeclId n : records.nodes.ids()) {
      if (const DeviceId device = records.PlacedOn(n); device >= 0) placed.device[n] = device;
    }
  }
  FindHostcallers(records, checked, placed);
  return placed;
}

}  // namespace penstock::graph
