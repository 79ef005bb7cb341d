// Place: assigns each node its pinned device, or the default one. Host nodes run on workers and have none; those that a
// device requests by hostcall have that device. States, and buffers for which device memory is bound, have their
// contents on a device before and after the run.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

bool IsBoundOnDevice(const BufferFacts& buffer) {
  return !buffer.is_alias && IsBound(buffer.role) && buffer.where == Where::kDevice;
}

// -1: none is declared. A keyed State is on the device for which the plan is made.
DeviceId DeclaredHome(const Draft& draft, size_t b) {
  const BufferDecl& decl = draft.model.buffers[b];
  if (decl.role != BufferRole::kState) return IsBoundOnDevice(draft.buffers[b]) ? DeviceId(decl.device) : DeviceId();
  const StateRecord* const state = decl.state.get();
  return state != nullptr ? DeviceId(state->device) : draft.options.default_device;
}

// Device memory that is bound belongs to the device of the first node that uses it. Copy nodes could run on either
// device, so they count only if there are no others.
void FindBoundHomes(Draft& draft) {
  for (const bool copies : {false, true}) {
    for (const int32_t n : draft.sequence) {
      const auto node = static_cast<size_t>(n);
      if (draft.device[node] < 0 || (draft.nodes[node].kind == NodeKind::kCopy) != copies) continue;
      for (const BoxRef& ref : draft.boxes[n]) {
        int32_t& home = draft.home[ref.base];
        if (home < 0 && IsBoundOnDevice(draft.buffers[ref.base])) home = draft.device[node];
      }
    }
  }
  for (size_t b = 0; b < draft.buffers.size(); ++b) {
    if (draft.home[b] < 0 && IsBoundOnDevice(draft.buffers[b])) draft.home[b] = draft.options.default_device;
  }
}

// Prefers a device of the node's predecessors, so that it need not wait for another device first. A graph that does all
// its work on the host has no work that could wait.
void FindHostcallers(Draft& draft) {
  const auto asked = [&](int32_t n) { return draft.nodes[n].host_way != HostWay::kWorker; };
  const bool any = std::any_of(draft.sequence.begin(), draft.sequence.end(), asked);
  const bool works = std::any_of(draft.device.begin(), draft.device.end(), [](int32_t d) { return d >= 0; });
  if (!any || !works) return;
  draft.calling_device.assign(draft.nodes.size(), -1);
  for (const int32_t n : draft.sequence) {
    if (!asked(n)) continue;
    int32_t device = -1;
    for (const int32_t p : draft.declared[n]) device = std::max({device, draft.device[p], draft.CallingDevice(p)});
    if (device < 0) device = draft.options.default_device;
    if (draft.options.devices[device].hostcalls) draft.calling_device[n] = device;
  }
}

}  // namespace

void Place(Draft& draft) {
  draft.device.reserve(draft.nodes.size());
  for (const NodeFacts& node : draft.nodes) {
    const DeviceId device = node.device >= 0 ? DeviceId(node.device) : draft.options.default_device;
    draft.device.push_back(node.kind == NodeKind::kHost ? DeviceId() : device);
  }
  FindHostcallers(draft);
  draft.home.assign(draft.buffers.size(), -1);
  for (size_t b = 0; b < draft.buffers.size(); ++b) {
    draft.home[b] = DeclaredHome(draft, b);
  }
  if (std::any_of(draft.buffers.begin(), draft.buffers.end(), IsBoundOnDevice)) FindBoundHomes(draft);
}

}  // namespace penstock::graph
